package meta

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"goblin/meta/lua"
	"goblin/meta/search"
	"goblin/registry"
	"goblin/registry/rawjson"
)

const luaDescription = `Runs a Lua 5.1 script with access to all servers and returns its result. Combine several calls into one, and return only what matters.
A tool is a function of its server's table: local r = my_server.my_tool{a = 1}. For names that are not identifiers: servers["my-server"]["my-tool"]{}.
Results are tables (structured or JSON answers) or strings. Errors of tools are raised; pcall catches them. all{a.x{}, b.y{}} runs calls concurrently.
Also: resources.read(uri), resources.list{server=, mime=, limit=}, prompts.get(name, args), tools.list{server=}, search(query, {kind=, server=, limit=}), json.encode, json.decode, null, print. End with return VALUE.`

var script = param{
	name: "script", required: true, maximum: lua.MaxScript,
	description: `The Lua source, for example: local t = clock.time_in{zone = "UTC"} return {now = t}`,
}

func (t *Tools) executeLua(ctx context.Context, a arguments) ([]byte, error) {
	leave, err := t.scriptQueue.acquire(ctx, registry.Client(ctx), t.queueTimeout())
	if err != nil {
		return textResult(true, err.Error()), nil
	}
	defer leave()
	r, err := t.Script(ctx, a.text(script), t.o.Ask)
	t.lua.Prepare() // more scripts will probably follow
	var failed *lua.Error
	switch {
	case errors.As(err, &failed):
		return textResult(true, failed.Error(), printedText(r)), nil
	case err != nil:
		return nil, err
	}
	if r.JSON == nil {
		return textResult(false, r.Hint, printedText(r)), nil
	}
	value, plain := rawjson.String(r.JSON)
	if !plain {
		value = string(r.JSON)
	}
	if !rawjson.IsObject(r.JSON) {
		return textResult(false, value, printedText(r)), nil
	}
	return withStructured(textResult(false, value, printedText(r)), r.JSON), nil
}

func (t *Tools) queueTimeout() time.Duration {
	if t.o.Lua.Timeout > 0 {
		return t.o.Lua.Timeout
	}
	return time.Minute
}

// Script runs a script that sends its requests through ask, see [Options].Ask. An error
// of the script itself is a *[lua.Error].
func (t *Tools) Script(ctx context.Context, source string, ask AskFunc) (lua.Result, error) {
	return t.lua.Run(ctx, source, &scriptHost{t, ctx, ask}, t.o.Lua)
}

func printedText(r lua.Result) string {
	if r.Printed == "" {
		return ""
	}
	return "Printed:\n" + r.Printed
}

type scriptHost struct {
	*Tools
	ctx context.Context // of the call
	ask AskFunc
}

func (h *scriptHost) Snapshot() *registry.Snapshot { return h.o.Registry.ViewFor(h.ctx) }

func (h *scriptHost) Servers() []string {
	states := h.o.Registry.StatesIn(h.Snapshot())
	names := make([]string, len(states))
	for i := range states {
		names[i] = states[i].Name
	}
	return names
}

func (h *scriptHost) Request(ctx context.Context, method string, params []byte) ([]byte, error) {
	return h.ask(ctx, method, params)
}

func (h *scriptHost) Progress(done int, message string) {
	registry.Progress(h.ctx, float64(done), 0, message)
}

func (h *scriptHost) Search(ctx context.Context, query string, o lua.SearchOptions) ([]byte, error) {
	kinds, err := kindsOf(o.Kind)
	if err != nil {
		return nil, err
	}
	most := min(o.Limit, maxLimit)
	if most <= 0 {
		most = defaultSearchCards
	}
	// Scripts cannot call Goblin's own tools, so exclude them.
	found, err := h.index.Search(ctx, search.Query{Text: query, Kinds: kinds, Server: o.Server, Limit: most + len(allTools), View: h.Snapshot()})
	if err != nil {
		return nil, err
	}
	hits := slices.DeleteFunc(found.Hits, func(hit search.Hit) bool {
		return hit.Entry.Kind == registry.Tool && hit.Entry.Server == registry.Local
	})
	var cards [][]byte
	for _, hit := range hits[:min(len(hits), most)] {
		cards = append(cards, scriptCard(hit))
	}
	return rawjson.Array(cards...), nil
}

// The members server and tool are the keys in servers[hit.server][hit.tool].
func scriptCard(h search.Hit) []byte {
	o := newObjectWriter()
	o.text("kind", h.Entry.Kind.String())
	o.text("server", h.Entry.Server)
	if h.Entry.Kind == registry.Tool {
		o.text("tool", h.Entry.ClientName())
	}
	o.entry(h.Entry)
	o.score(h.Score)
	return o.end()
}

var kinds = map[string]registry.Kind{
	"tools": registry.Tool, "prompts": registry.Prompt, "resources": registry.Resource, "templates": registry.Template, "skills": registry.Skill,
	"tool": registry.Tool, "prompt": registry.Prompt, "resource": registry.Resource, "template": registry.Template, "skill": registry.Skill,
}

// kindsOf returns the kinds with a name, or all for "".
func kindsOf(name string) ([]registry.Kind, error) {
	if name == "" {
		return []registry.Kind{registry.Tool, registry.Prompt, registry.Resource, registry.Template, registry.Skill}, nil
	}
	k, ok := kinds[name]
	if !ok {
		return nil, fmt.Errorf("unknown kind %q; known: tools, prompts, resources, templates, skills", name)
	}
	return []registry.Kind{k}, nil
}
