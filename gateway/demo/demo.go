// Package demo implements the servers behind "goblin demo-server": notes, clock and
// library.
//
// They are ordinary MCP servers, and exist so that a fresh machine has something pleasant
// to look at.
//
// The package owns the demo content and a small server for it, on the types of
// mcp-go: its server package would be linked into every Goblin, and compiles JSON
// schemas before main. [Run]
// may be called any number of times and from any goroutine; every call is one
// server with one client and state of its own, and blocks until its input ends
// or its context does. Nothing is read from or written to disk or network.
//
// Requests are answered in the order they came, tool calls in parallel (64 at
// most, more are refused). Nothing is dropped: what is said to a client that does
// not read waits. Notifications of a call are written before its response.
//
// The servers speak the revisions with the initialize handshake only:
// server/discover and subscriptions/listen are unknown methods to them.
//
// The package is a leaf: it knows nothing of the gateway that runs it.
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

// version is reported by the demo servers in initialize.
const version = "1.0.0"

// backend is one demo server, ready to be served.
type backend struct {
	srv *server
	// exists tells whether a URI can be subscribed to.
	exists func(uri string) bool
	// background, if set, runs beside the server until its context ends.
	background func(ctx context.Context)
}

var backends = map[string]func(*peer) backend{
	"clock":   newClock,
	"library": newLibrary,
	"notes":   newNotes,
}

// Names lists the demo servers in alphabetical order.
func Names() []string {
	return slices.Sorted(maps.Keys(backends))
}

// Run serves the demo server called name to the one client at in and out, one
// JSON-RPC message per line, and returns nil once in ends or ctx is done. Calls
// still running then are cancelled. If ctx ends first, in and out are closed if they
// are an [io.Closer], which ends a read or write that waits for the client; a
// read or write that even this does not end is left behind.
//
// An unknown name is an error that lists the known ones. Lines over 16 MiB and
// failures of in or out end the server with an error.
func Run(ctx context.Context, name string, in io.Reader, out io.Writer) error {
	build, ok := backends[name]
	if !ok {
		return fmt.Errorf("unknown demo server %q: choose one of %s", name, strings.Join(Names(), ", "))
	}
	p := newPeer()
	if err := p.serve(ctx, build(p), in, out); err != nil {
		return fmt.Errorf("demo server %s: %w", name, err)
	}
	return nil
}

// newServer makes the part that the three servers have in common.
func newServer(p *peer, name, title, description, instructions, emoji string, completions completer) *server {
	s := &server{p: p, completions: completions}
	s.hello.Instructions = instructions
	s.hello.ServerInfo = mcp.Implementation{
		Name: name, Version: version, Title: title, Description: description, Icons: []mcp.Icon{icon(emoji)},
	}
	// Said in JSON, for mcp has no names for the types of these.
	const can = `{"completions":{},"logging":{},"prompts":{"listChanged":true},` +
		`"resources":{"listChanged":true,"subscribe":true},"tools":{"listChanged":true}}`
	if err := json.Unmarshal([]byte(can), &s.hello.Capabilities); err != nil {
		panic(err) // it is a constant
	}
	p.srv = s
	return s
}

// addTool offers a tool whose arguments are checked before call sees them.
func (s *server) addTool(t mcp.Tool, call toolHandler) {
	s.tools.put(t.Name, t, withCheckedArguments(t, call))
}

func (s *server) addPrompt(p mcp.Prompt, get promptHandler) { s.prompts.put(p.Name, p, get) }

func (s *server) addResource(r mcp.Resource, read resourceHandler) { s.resources.put(r.URI, r, read) }

func (s *server) addTemplate(t mcp.ResourceTemplate, read resourceHandler) {
	s.templates.put(t.URITemplate.Raw(), t, read)
}

// What a tool does, for the hints of its annotations.
const (
	readOnly    = 1 << iota // and changes nothing
	destructive             // what cannot be had back
	idempotent              // a second call changes nothing more
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

// icon draws an emoji as a data: URI, so that no icon needs a network.
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

// embedded puts a text resource into a prompt message or a tool result.
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

// structured answers a tool call with a value and the text that a client
// without structured content shows instead.
func structured(value any, text string, more ...mcp.Content) *mcp.CallToolResult {
	result := mcp.NewToolResultStructured(value, text)
	result.Content = append(result.Content, more...)
	return result
}

// outputSchema is mcp.WithOutputSchema, but for lists: a Go slice may be null, the
// lists here never are, and some clients cannot do with two types.
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

// complete offers the values that start with what was typed, then those that
// contain it; 100 at most, the most that the protocol allows.
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

// completer answers completion/complete from functions by "name argument":
// the prompt's name or the template's text, and the argument's name.
type completer map[string]func(resolved map[string]string) []string

func (c completer) find(about string, arg mcp.CompleteArgument, ctx mcp.CompleteContext) mcp.Completion {
	values, ok := c[about+" "+arg.Name]
	if !ok {
		return mcp.Completion{Values: []string{}}
	}
	return complete(arg.Value, values(ctx.Arguments))
}

// progress reports the steps of a tool call to a client that asked for them.
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

// wait sleeps, and tells whether the call is still wanted.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
