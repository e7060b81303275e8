package worker

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"

	"goblin/registry"
)

const (
	defaultCards = 100 // of a list
	maxCards     = 1000
)

type catalog struct {
	run     *run
	servers []*server
	byName  map[string]*server
	byID    map[string][]*server // by Global(name)
	byTable map[*glua.LTable]*server
	meta    *glua.LTable
}

// server is one server. Its tools are looked up when first needed.
type server struct {
	name  string
	table *glua.LTable
}

func (r *run) openCatalog(L *glua.LState) {
	c := &catalog{run: r, byName: map[string]*server{}, byID: map[string][]*server{}, byTable: map[*glua.LTable]*server{}}
	r.catalog = c
	c.meta = newMetatable(L, map[string]glua.LGFunction{"__index": c.tool})
	servers := L.NewTable()
	for _, name := range r.start.Servers {
		t := L.NewTable()
		t.Metatable = c.meta
		s := &server{name: name, table: t}
		c.servers = append(c.servers, s)
		c.byName[name], c.byTable[t] = s, s
		c.byID[Global(name)] = append(c.byID[Global(name)], s)
		servers.RawSetString(name, t)
	}
	servers.Metatable = newMetatable(L, map[string]glua.LGFunction{"__index": func(L *glua.LState) int {
		name := r.toString(L, L.Get(2))
		var names []string
		for _, s := range c.servers {
			names = append(names, s.name)
		}
		L.RaiseError("unknown server %q%s", name, DidYouMean(name, names))
		return 0
	}})
	L.SetGlobal("servers", servers)
	for name, funcs := range map[string]map[string]glua.LGFunction{
		"tools":     {"list": c.list("tools.list", registry.Tool)},
		"resources": {"list": c.list("resources.list", registry.Resource, "mime"), "read": c.readResource},
		"prompts":   {"list": c.list("prompts.list", registry.Prompt), "get": c.getPrompt},
	} {
		lib := L.NewTable()
		L.SetFuncs(lib, funcs)
		lib.Metatable = newMetatable(L, map[string]glua.LGFunction{"__index": func(L *glua.LState) int {
			L.RaiseError("%s has no %q; available: %s", name, r.toString(L, L.Get(2)), strings.Join(slices.Sorted(maps.Keys(funcs)), ", "))
			return 0
		}})
		L.SetGlobal(name, lib)
	}
	L.SetGlobal("search", L.NewFunction(c.search))
}

// global returns the table of the server with an identifier, or nil. It raises an error
// if several have it.
func (c *catalog) global(L *glua.LState, id string) *glua.LTable {
	switch found := c.byID[id]; len(found) {
	case 0:
		return nil
	case 1:
		return found[0].table
	default:
		var names []string
		for _, s := range found {
			names = append(names, fmt.Sprintf("servers[%q]", s.name))
		}
		L.RaiseError("%s is the identifier of %d servers; use %s", id, len(found), strings.Join(names, " or "))
		return nil
	}
}

func (c *catalog) names(L *glua.LState) []string {
	var names []string
	for _, s := range c.servers {
		names = append(names, Global(s.name))
	}
	L.Get(glua.GlobalsIndex).(*glua.LTable).ForEach(func(k, v glua.LValue) {
		if name, ok := k.(glua.LString); ok && v != glua.LNil {
			names = append(names, string(name))
		}
	})
	return names
}

// tool is the __index of a server's table: the function that calls a tool.
func (c *catalog) tool(L *glua.LState) int {
	srv := c.byTable[L.CheckTable(1)]
	if srv == nil {
		L.RaiseError("not the table of a server")
	}
	key := L.Get(2).String()
	checkLength(L, "tool name", key, MaxName-len(srv.name)-1)
	var t Tool
	_ = json.Unmarshal(c.run.askCatalog(L, ScriptMessage{Ask: AskTool, Server: srv.name, Name: key}), &t)
	fn := L.NewFunction(c.run.callTool(srv, t.Name, t.Listed))
	srv.table.RawSetString(key, fn)
	L.Push(fn)
	return 1
}

type options struct {
	L    *glua.LState
	what string
	t    *glua.LTable
}

func optionsAt(L *glua.LState, n int, what string, known ...string) options {
	o := options{L: L, what: what, t: L.OptTable(n, nil)}
	if o.t == nil {
		o.t = L.NewTable()
	}
	o.t.ForEach(func(k, _ glua.LValue) {
		if name := k.String(); !slices.Contains(known, name) {
			L.RaiseError("%s has no option %q; available: %s", what, name, strings.Join(known, ", "))
		}
	})
	return o
}

func (o options) text(name string) string {
	switch v := o.t.RawGetString(name).(type) {
	case *glua.LNilType:
		return ""
	case glua.LString:
		checkLength(o.L, name, string(v), MaxName)
		return string(v)
	default:
		o.L.RaiseError("%s: %s must be a string, not a %s", o.what, name, v.Type())
		return ""
	}
}

func (o options) count(name string, def, most int) int {
	switch v := o.t.RawGetString(name).(type) {
	case *glua.LNilType:
		return def
	case glua.LNumber:
		if v >= 0 {
			return int(min(v, glua.LNumber(most)))
		}
	}
	o.L.RaiseError("%s: %s must be a number of 0 or more", o.what, name)
	return 0
}

func (c *catalog) list(what string, kind registry.Kind, also ...string) glua.LGFunction {
	return func(L *glua.LState) int {
		o := optionsAt(L, 1, what, append([]string{"server"}, append(also, "limit", "offset")...)...)
		q := ScriptMessage{
			Ask: AskList, Kind: kind.String(), Server: o.text("server"), MIME: o.text("mime"),
			Limit: o.count("limit", defaultCards, maxCards), Offset: o.count("offset", 0, 1<<40),
		}
		if q.Server != "" && c.byName[q.Server] == nil {
			L.Push(L.GetGlobal("servers"))
			L.GetField(L.Get(-1), q.Server) // raises an error with suggestions
		}
		L.Push(c.run.mustDecode(L, c.run.askCatalog(L, q)))
		return 1
	}
}

func (c *catalog) readResource(L *glua.LState) int {
	uri := L.CheckString(1)
	checkLength(L, "URI", uri, MaxURI)
	raw := c.run.askCall(L, ScriptMessage{Ask: AskRead, Name: uri}, nil)
	L.Push(c.run.convertResult(L, raw, "contents"))
	return 1
}

// getPrompt returns the whole result. It converts scalar arguments to strings, as prompts
// require.
func (c *catalog) getPrompt(L *glua.LState) int {
	name, args := L.CheckString(1), L.OptTable(2, nil)
	checkLength(L, "prompt name", name, MaxName)
	var body []byte
	if args != nil {
		given := L.CreateTable(0, 4)
		for k, v := args.Next(glua.LNil); k != glua.LNil; k, v = args.Next(k) {
			if v.Type() == glua.LTTable || v.Type() == glua.LTFunction {
				L.RaiseError("prompts.get: the argument %s must be a string, not a %s", k.String(), v.Type())
			}
			given.RawSetString(k.String(), glua.LString(c.run.toString(L, v)))
		}
		text, err := c.run.encode(given)
		if err != nil {
			L.RaiseError("prompts.get: the arguments %s", err)
		}
		body = text
	}
	raw := c.run.askCall(L, ScriptMessage{Ask: AskPrompt, Name: name}, body)
	L.Push(c.run.mustDecode(L, raw))
	return 1
}

func (c *catalog) search(L *glua.LState) int {
	r, query := c.run, L.CheckString(1)
	o := optionsAt(L, 2, "search", "kind", "server", "limit")
	checkLength(L, "query", query, MaxName)
	q := ScriptMessage{Ask: AskSearch, Name: query, Server: o.text("server"), Kind: o.text("kind"), Limit: o.count("limit", 20, maxCards)}
	switch q.Kind {
	case "", registry.Tool.String(), registry.Prompt.String(), registry.Resource.String(), registry.Template.String(), registry.Skill.String():
	default:
		L.RaiseError("search: kind must be tool, prompt, resource, template or skill, not %s", strconv.Quote(q.Kind))
	}
	raw := r.askCall(L, q, nil)
	L.Push(r.mustDecode(L, raw))
	return 1
}
