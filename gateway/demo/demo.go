// Package demo implements the servers behind "goblin demo-server": notes, clock and
// library.
//
// They are ordinary MCP servers that give a new user something to look at. They use
// mcp-go's types, but not its server package: that would be linked into every Goblin, and
// compiles JSON schemas before main.
//
// [Run] is safe for concurrent use. Each call serves one client with its own state,
// without access to disk or network. Requests are answered in order. Up to 64 tool calls
// run in parallel; further ones are refused. Messages to a client that doesn't read wait,
// and none is dropped. Notifications of a call are written before its response.
//
// The servers only support revisions with the initialize handshake, so server/discover
// and subscriptions/listen are unknown methods. The package must not depend on the
// gateway.
package demo

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

const version = "1.0.0"

type backend struct {
	// exists reports whether a URI can be subscribed to.
	exists func(uri string) bool
	// background runs beside the server until its context ends. It may be nil.
	background func(ctx context.Context)
}

var backends = map[string]func(*peer) backend{
	"clock":   newClock,
	"library": newLibrary,
	"notes":   newNotes,
}

// Names returns the demo servers in alphabetical order.
func Names() []string {
	return slices.Sorted(maps.Keys(backends))
}

// Run serves the named demo server to one client, one JSON-RPC message per line. It
// cancels running calls and returns nil when in ends or ctx is done. When ctx ends, it
// closes in and out if they are an [io.Closer], which unblocks reads and writes. It
// abandons a read or write that stays blocked.
//
// An unknown name is an error that lists the known ones. Lines over 16 MiB and I/O errors
// stop the server with an error.
func Run(ctx context.Context, name string, in io.Reader, out io.Writer) error {
	build, ok := backends[name]
	if !ok {
		return fmt.Errorf("unknown demo server %q; known: %s", name, strings.Join(Names(), ", "))
	}
	p := newPeer()
	if err := p.serve(ctx, build(p), in, out); err != nil {
		return fmt.Errorf("demo server %s: %w", name, err)
	}
	return nil
}

func newServer(p *peer, name, title, description, instructions, emoji string, completions completer) *server {
	s := &server{p: p, completions: completions}
	s.hello.Instructions = instructions
	s.hello.ServerInfo = mcp.Implementation{
		Name: name, Version: version, Title: title, Description: description, Icons: []mcp.Icon{icon(emoji)},
	}
	// JSON, because mcp-go's types for these are anonymous.
	const can = `{"completions":{},"logging":{},"prompts":{"listChanged":true},` +
		`"resources":{"listChanged":true,"subscribe":true},"tools":{"listChanged":true}}`
	if err := json.Unmarshal([]byte(can), &s.hello.Capabilities); err != nil {
		panic(err) // it is a constant
	}
	p.srv = s
	return s
}

func (s *server) addTool(t mcp.Tool, call toolHandler) {
	s.tools.put(t.Name, t, withCheckedArguments(t, call))
}

func (s *server) addPrompt(p mcp.Prompt, get promptHandler) { s.prompts.put(p.Name, p, get) }

func (s *server) addResource(r mcp.Resource, read resourceHandler) { s.resources.put(r.URI, r, read) }

func (s *server) addTemplate(t mcp.ResourceTemplate, read resourceHandler) {
	s.templates.put(t.URITemplate.Raw(), t, read)
}

const (
	readOnly    = 1 << iota // changes nothing
	destructive             // can't be undone
	idempotent              // a second call has no further effect
)

func newTool(name, title, emoji string, does int, description string, more ...mcp.ToolOption) mcp.Tool {
	return mcp.NewTool(name, append(more,
		mcp.WithToolTitle(title), mcp.WithDescription(description), mcp.WithToolIcons(icon(emoji)),
		mcp.WithReadOnlyHintAnnotation(does&readOnly != 0), mcp.WithDestructiveHintAnnotation(does&destructive != 0),
		mcp.WithIdempotentHintAnnotation(does&idempotent != 0), mcp.WithOpenWorldHintAnnotation(false),
	)...)
}

func newPrompt(name, title, emoji, description string, arguments ...mcp.PromptOption) mcp.Prompt {
	return mcp.NewPrompt(name, append(arguments,
		mcp.WithPromptTitle(title), mcp.WithPromptDescription(description), mcp.WithPromptIcons(icon(emoji)))...)
}

func argument(name, title, description string, more ...mcp.ArgumentOption) mcp.PromptOption {
	return mcp.WithArgument(name, append(more, mcp.ArgumentTitle(title), mcp.ArgumentDescription(description))...)
}

func newTemplate(uri, name, title, emoji, mime, description string) mcp.ResourceTemplate {
	return mcp.NewResourceTemplate(uri, name, mcp.WithTemplateTitle(title), mcp.WithTemplateDescription(description),
		mcp.WithTemplateMIMEType(mime), mcp.WithTemplateIcons(icon(emoji)))
}

// icon returns an emoji as a data: URI, which needs no network.
func icon(emoji string) mcp.Icon {
	svg := `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><text x="16" y="25" font-size="24" text-anchor="middle">` + emoji + `</text></svg>`
	return mcp.Icon{
		Src:      "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(svg)),
		MIMEType: "image/svg+xml",
		Sizes:    []string{"any"},
	}
}

func textContents(uri, mime, text string) []mcp.ResourceContents {
	return []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, MIMEType: mime, Text: text}}
}

func embedded(uri, mime, text string) mcp.EmbeddedResource {
	return mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: uri, MIMEType: mime, Text: text})
}

func promptResult(description string, contents ...mcp.Content) *mcp.GetPromptResult {
	messages := make([]mcp.PromptMessage, len(contents))
	for i, c := range contents {
		messages[i] = mcp.NewPromptMessage(mcp.RoleUser, c)
	}
	return mcp.NewGetPromptResult(description, messages)
}

// structured adds text for clients without support for structured content.
func structured(value any, text string, more ...mcp.Content) *mcp.CallToolResult {
	result := mcp.NewToolResultStructured(value, text)
	result.Content = append(result.Content, more...)
	return result
}

// outputSchema declares lists as "array" only. They are never null, and some clients
// don't support two types.
func outputSchema[T any]() mcp.ToolOption {
	return func(t *mcp.Tool) {
		mcp.WithOutputSchema[T]()(t)
		for _, property := range t.OutputSchema.Properties {
			if p, ok := property.(map[string]any); ok && p["items"] != nil {
				p["type"] = "array"
			}
		}
	}
}

// complete returns values that start with typed, then values that contain it, 100 at most
// (the protocol's limit).
func complete(typed string, values []string) mcp.Completion {
	const most = 100
	typed = strings.ToLower(typed)
	var first, second []string
	for _, v := range values {
		switch low := strings.ToLower(v); {
		case strings.HasPrefix(low, typed):
			first = append(first, v)
		case strings.Contains(low, typed):
			second = append(second, v)
		}
	}
	found := append(append([]string{}, first...), second...)
	return mcp.Completion{
		Values:  found[:min(len(found), most)],
		Total:   len(found),
		HasMore: len(found) > most,
	}
}

// completer answers completion/complete. Its keys are "name argument": the prompt's name
// or the template's text, and the argument's name.
type completer map[string]func(resolved map[string]string) []string

func (c completer) find(about string, arg mcp.CompleteArgument, ctx mcp.CompleteContext) mcp.Completion {
	values, ok := c[about+" "+arg.Name]
	if !ok {
		return mcp.Completion{Values: []string{}}
	}
	return complete(arg.Value, values(ctx.Arguments))
}

// progress reports the progress of a tool call to clients that requested it.
type progress struct {
	p     *peer
	token mcp.ProgressToken
	total int
}

func (p *peer) progress(req mcp.CallToolRequest, total int) progress {
	pr := progress{p: p, total: total}
	if req.Params.Meta != nil {
		pr.token = req.Params.Meta.ProgressToken
	}
	return pr
}

func (pr progress) step(done int, message string) {
	if pr.token == nil {
		return
	}
	pr.p.notify("notifications/progress", map[string]any{
		"progressToken": pr.token,
		"progress":      done,
		"total":         pr.total,
		"message":       message,
	})
}

// wait returns false if ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
