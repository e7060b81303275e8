package meta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"goblin/meta/embeddings"
	"goblin/meta/lua"
	"goblin/meta/search"
	"goblin/registry"
)

// Options configures the tools.
type Options struct {
	Registry *registry.Registry
	// Ask makes one MCP request in the name of the client whose call ctx belongs to. An
	// error with the methods ErrorCode() int and ErrorData() json.RawMessage is an error
	// response.
	Ask AskFunc
	// AwaitLists waits a limited time for servers that have never listed. Starting
	// returns the servers that are still missing then. Both may be nil.
	AwaitLists func(ctx context.Context)
	Starting   func() []string
	// Permits reports whether the config permits an unlisted target. Nil permits all.
	Permits func(registry.Target) bool
	Lua     lua.Limits
	// Embeddings are used by searches for tools.
	Embeddings Embeddings
	// ScriptCommand starts the process of a script, see [lua.NewRunner].
	ScriptCommand []string
}

// Embeddings configures the service for vectors, see [embeddings.Options]. It is disabled
// without a URL.
type Embeddings struct {
	URL, Model, Token string
	OnFailure         func(error) // may be nil
}

// AskFunc makes one MCP request, with names as clients see them.
type AskFunc = func(ctx context.Context, method string, params []byte) (result []byte, err error)

// Tools are Goblin's own tools for one registry.
type Tools struct {
	o           Options
	index       *search.Index // by words
	searcher    *embeddings.Searcher
	lua         *lua.Runner
	scriptQueue scriptQueue
	// outputs are the output schemas by tool name. Only describe_tool returns them: they
	// would take a third of the bytes in lists, and hardly any client passes them on.
	outputs map[string]string
}

// New returns the tools. Call Add to list them.
func New(o Options) *Tools {
	if o.AwaitLists == nil {
		o.AwaitLists = func(context.Context) {}
	}
	if o.Starting == nil {
		o.Starting = func() []string { return nil }
	}
	if o.Permits == nil {
		o.Permits = func(registry.Target) bool { return true }
	}
	t := &Tools{o: o, index: search.New(o.Registry), lua: lua.NewRunner(o.ScriptCommand...), outputs: map[string]string{}}
	e := o.Embeddings
	t.searcher = embeddings.New(embeddings.Options{URL: e.URL, Model: e.Model, Token: e.Token, OnFailure: e.OnFailure, Registry: o.Registry, Index: t.index})
	for _, one := range allTools {
		t.outputs[one.name] = one.output
	}
	return t
}

// Run keeps the search index up to date until ctx is done, and then stops the scripts'
// processes.
func (t *Tools) Run(ctx context.Context) {
	defer t.lua.Close()
	var vectors sync.WaitGroup
	vectors.Go(func() { t.searcher.Run(ctx) })
	t.index.Run(ctx)
	vectors.Wait()
}

type tool struct {
	name, title, description string
	params                   []param
	output                   string // JSON schema of the structured answer, or ""
	call                     func(*Tools, context.Context, arguments) (result []byte, err error)
	makesRequests            bool
	forwardsCall             bool // calls another tool; call is nil
}

// Add lists all tools; visibility is decided elsewhere. Call it before Run.
func (t *Tools) Add() error {
	var chosen []registry.LocalTool
	for _, one := range allTools {
		definition, err := json.Marshal(one.definition())
		if err != nil {
			return fmt.Errorf("define %s: %w", one.name, err)
		}
		local := registry.LocalTool{Definition: definition, MakesRequests: one.makesRequests, ForwardsCall: one.forwardsCall}
		if !one.forwardsCall {
			local.Call = func(ctx context.Context, args []byte) ([]byte, error) { return t.run(ctx, &one, args) }
		}
		chosen = append(chosen, local)
	}
	return t.o.Registry.AddTool(chosen...)
}

// starting returns the servers that may soon list more for the client.
func (t *Tools) starting(ctx context.Context) []string {
	return t.o.Registry.ViewFor(ctx).KnownServers(t.o.Starting())
}

// run calls a tool. Errors that a model can fix become results.
func (t *Tools) run(ctx context.Context, one *tool, raw []byte) ([]byte, error) {
	args, err := parseArguments(raw, one.params)
	if err != nil {
		return textResult(true, err.Error()), nil
	}
	t.o.AwaitLists(ctx)
	result, err := one.call(t, ctx, args)
	var (
		unknown   *registry.NotFoundError
		ambiguous *registry.AmbiguousError
	)
	switch {
	case errors.As(err, &unknown):
		return textResult(true, t.notFound(ctx, unknown)), nil
	case errors.As(err, &ambiguous):
		return textResult(true, ambiguous.Error()), nil
	case errors.Is(err, registry.ErrBadMIME):
		return textResult(true, invalidArguments("argument %q: %v", mimeType.name, err).Error()), nil
	}
	return result, err
}

func (t *tool) definition() mcp.Tool {
	options := []mcp.ToolOption{
		mcp.WithToolTitle(t.title), mcp.WithDescription(t.description),
		mcp.WithReadOnlyHintAnnotation(!t.makesRequests), mcp.WithDestructiveHintAnnotation(t.makesRequests),
		mcp.WithIdempotentHintAnnotation(!t.makesRequests), mcp.WithOpenWorldHintAnnotation(t.makesRequests),
		mcp.WithSchemaAdditionalProperties(false),
	}
	for _, p := range t.params {
		options = append(options, p.schema())
	}
	made := mcp.NewTool(t.name, options...)
	made.InputSchema.PropertyOrder = make([]string, len(t.params))
	for i, p := range t.params {
		made.InputSchema.PropertyOrder[i] = p.name
	}
	return made
}
