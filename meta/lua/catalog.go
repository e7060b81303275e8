package lua

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"

	"goblin/registry"
	"goblin/registry/rawjson"
)

const (
	defaultCards = 100  // entries of a list
	maxCards     = 1000 // at most
)

// catalog is what a script sees of the servers.
type catalog struct {
	run     *run
	servers []*server
	byName  map[string]*server
	byID    map[string][]*server // by global(name)
	byTable map[*glua.LTable]*server
	meta    *glua.LTable
}

// server is one server with its tools, which are looked up when first needed.
type server struct {
	name    string
	table   *glua.LTable
	indexed bool
	version uint64                       // of the list of tools
	tools   map[string]string            // listed names by original
	byID    map[string][]*registry.Entry // by identifier(original)
}

func (r *run) openCatalog(L *glua.LState) {
	c := &catalog{run: r, byName: map[string]*server{}, byID: map[string][]*server{}, byTable: map[*glua.LTable]*server{}}
	r.catalog = c
	c.meta = meta(L, map[string]glua.LGFunction{"__index": c.tool})
	servers := L.NewTable()
	for _, name := range r.host.Servers() {
		t := L.NewTable()
		t.Metatable = c.meta
		s := &server{name: name, table: t}
		c.servers = append(c.servers, s)
		c.byName[name], c.byTable[t] = s, s
		c.byID[global(name)] = append(c.byID[global(name)], s)
		servers.RawSetString(name, t)
	}
	servers.Metatable = meta(L, map[string]glua.LGFunction{"__index": func(L *glua.LState) int {
		name := r.toString(L, L.Get(2))
		var names []string
		for _, s := range c.servers {
			names = append(names, s.name)
		}
		L.RaiseError("no server is called %q%s", name, nearestText(name, names))
		return 0
	}})
	L.SetGlobal("servers", servers)
	for name, funcs := range map[string]map[string]glua.LGFunction{
		"tools":     {"list": c.listTools},
		"resources": {"list": c.listResources, "read": c.readResource},
		"prompts":   {"list": c.listPrompts, "get": c.getPrompt},
	} {
		lib := L.NewTable()
		L.SetFuncs(lib, funcs)
		L.SetGlobal(name, lib)
	}
	L.SetGlobal("search", L.NewFunction(c.search))
}

// global is the table of the server with an identifier, nil if there is none.
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
		L.RaiseError("%s is the identifier of %d servers: use %s", id, len(found), strings.Join(names, " or "))
		return nil
	}
}

// names are all global names, for the nearest of a wrong one.
func (c *catalog) names(L *glua.LState) []string {
	var names []string
	for _, s := range c.servers {
		names = append(names, global(s.name))
	}
	for _, k := range keysOf(L.Get(glua.GlobalsIndex).(*glua.LTable)) {
		if name, ok := k.(glua.LString); ok && L.Get(glua.GlobalsIndex).(*glua.LTable).RawGet(k) != glua.LNil {
			names = append(names, string(name))
		}
	}
	return names
}

// tool is the __index of a server's table: the function that calls a tool.
func (c *catalog) tool(L *glua.LState) int {
	srv := c.byTable[L.CheckTable(1)]
	if srv == nil {
		L.RaiseError("this is no server")
	}
	key := keyText(L.Get(2))
	original, listed := c.find(L, srv, key)
	if listed == "" {
		L.RaiseError("server %q has no tool %q%s", srv.name, key, nearestText(key, srv.names()))
	}
	fn := L.NewFunction(c.run.callTool(srv, original, listed))
	srv.table.RawSetString(key, fn)
	L.Push(fn)
	return 1
}

func keyText(v glua.LValue) string {
	if s, ok := v.(glua.LString); ok {
		return string(s)
	}
	return v.String()
}

// find returns the names of a server's tool: by its own name, else by its
// identifier. A server that has not listed any tools yet may have it; who
// routes the call knows.
func (c *catalog) find(L *glua.LState, srv *server, key string) (original, listed string) {
	snap := c.run.host.Snapshot()
	if !srv.indexed || srv.version != snap.Version(registry.Tool) {
		srv.indexed, srv.version = true, snap.Version(registry.Tool)
		srv.tools, srv.byID = map[string]string{}, map[string][]*registry.Entry{}
		for e := range snap.Server(srv.name, registry.Tool) {
			c.run.step(L, 1)
			srv.tools[e.Name] = e.Listed
			id := identifier(e.Name)
			srv.byID[id] = append(srv.byID[id], e)
		}
	}
	if listed, ok := srv.tools[key]; ok {
		return key, listed
	}
	switch found := srv.byID[key]; {
	case len(found) == 1:
		return found[0].Name, found[0].Listed
	case len(found) > 1:
		var names []string
		for _, e := range found {
			names = append(names, fmt.Sprintf("%s[%q]", global(srv.name), e.Name))
		}
		L.RaiseError("%s is the identifier of %d tools of server %q: use %s", key, len(found), srv.name, strings.Join(names, " or "))
	case len(srv.tools) == 0:
		return key, srv.name + "/" + key
	}
	return "", ""
}

func (s *server) names() []string {
	var names []string
	for id := range s.byID {
		names = append(names, id)
	}
	for name := range s.tools {
		if identifier(name) != name {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// options reads the options of a list or search.
type options struct {
	L    *glua.LState
	what string
	t    *glua.LTable
}

func optionsAt(L *glua.LState, n int, what string, known ...string) options {
	o := options{L: L, what: what, t: L.OptTable(n, nil)}
	if o.t == nil {
		o.t = &glua.LTable{}
	}
	for _, k := range keysOf(o.t) {
		if name := keyText(k); o.t.RawGetH(k) != glua.LNil && !slices.Contains(known, name) {
			L.RaiseError("%s has no option %q: there are %s", what, name, strings.Join(known, ", "))
		}
	}
	return o
}

func (o options) text(name string) string {
	switch v := o.t.RawGetString(name).(type) {
	case *glua.LNilType:
		return ""
	case glua.LString:
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

// list makes cards of the entries of a kind that match.
func (c *catalog) list(L *glua.LState, o options, kind registry.Kind, match func(*registry.Entry) bool, card func(*registry.Entry, *glua.LTable)) int {
	r, srv := c.run, o.text("server")
	limit, offset := o.count("limit", defaultCards, maxCards), o.count("offset", 0, 1<<40)
	snap := r.host.Snapshot()
	entries := snap.All(kind)
	if srv != "" {
		if c.byName[srv] == nil {
			L.Push(L.GetGlobal("servers"))
			L.GetField(L.Get(-1), srv) // raises, with the nearest names
		}
		entries = snap.Server(srv, kind)
	}
	out := L.CreateTable(4, 0)
	out.Metatable = r.arrayMeta
	L.Push(out) // reachable while it grows
	for e := range entries {
		if out.Len() >= limit {
			break
		}
		r.step(L, 1)
		if e.Server == registry.Local || !match(e) {
			continue
		}
		if offset--; offset >= 0 {
			continue
		}
		r.grow(L, tableSize+hashSize+8*entrySize+int64(len(e.Name)+len(e.Listed)+len(e.Title)+len(e.Description)))
		t := L.CreateTable(0, 8)
		card(e, t)
		t.RawSetString("server", glua.LString(e.Server))
		if e.Title != "" {
			t.RawSetString("title", glua.LString(e.Title))
		}
		if e.Description != "" {
			t.RawSetString("description", glua.LString(e.Description))
		}
		out.Append(t)
	}
	L.Push(out)
	return 1
}

func every(*registry.Entry) bool { return true }

func named(e *registry.Entry, t *glua.LTable) { t.RawSetString("name", glua.LString(e.Listed)) }

func (c *catalog) listTools(L *glua.LState) int {
	o := optionsAt(L, 1, "tools.list", "server", "limit", "offset")
	return c.list(L, o, registry.Tool, every, func(e *registry.Entry, t *glua.LTable) {
		named(e, t)
		t.RawSetString("tool", glua.LString(e.Name))
	})
}

func (c *catalog) listPrompts(L *glua.LState) int {
	o := optionsAt(L, 1, "prompts.list", "server", "limit", "offset")
	return c.list(L, o, registry.Prompt, every, named)
}

func (c *catalog) listResources(L *glua.LState) int {
	o := optionsAt(L, 1, "resources.list", "server", "mime", "limit", "offset")
	mime := strings.ToLower(o.text("mime"))
	if _, err := path.Match(mime, ""); err != nil {
		L.RaiseError("resources.list: %q is no pattern of MIME types, such as text/*", mime)
	}
	match := func(e *registry.Entry) bool {
		if mime == "" || mime == "*" {
			return true
		}
		kind, _, _ := strings.Cut(strings.ToLower(e.MIME), ";")
		ok, _ := path.Match(mime, strings.TrimSpace(kind))
		return ok
	}
	return c.list(L, o, registry.Resource, match, func(e *registry.Entry, t *glua.LTable) {
		t.RawSetString("uri", glua.LString(e.Listed))
		if e.Label != "" {
			t.RawSetString("name", glua.LString(e.Label))
		}
		if e.MIME != "" {
			t.RawSetString("mimeType", glua.LString(e.MIME))
		}
		if e.Size >= 0 {
			t.RawSetString("size", glua.LNumber(e.Size))
		}
	})
}

func (c *catalog) readResource(L *glua.LState) int {
	uri := L.CheckString(1)
	params := append(rawjson.AppendString([]byte(`{"uri":`), uri), '}')
	raw := c.run.request(L, "", "", "resources.read "+uri, "resources/read", params)
	L.Push(c.run.converted(L, raw, "contents"))
	return 1
}

// getPrompt returns the whole result. Arguments of prompts are strings; other
// scalars become ones.
func (c *catalog) getPrompt(L *glua.LState) int {
	name, args := L.CheckString(1), L.OptTable(2, nil)
	params := rawjson.AppendString([]byte(`{"name":`), name)
	if args != nil {
		given := L.CreateTable(0, 4)
		for k, v := args.Next(glua.LNil); k != glua.LNil; k, v = args.Next(k) {
			if v.Type() == glua.LTTable || v.Type() == glua.LTFunction {
				L.RaiseError("prompts.get: the argument %s must be a string, not a %s", keyText(k), v.Type())
			}
			given.RawSetString(keyText(k), glua.LString(c.run.toString(L, v)))
		}
		text, err := c.run.encode(L, given)
		if err != nil {
			L.RaiseError("prompts.get: the arguments %s", err)
		}
		params = append(append(params, `,"arguments":`...), text...)
	}
	raw := c.run.request(L, "", "", "prompts.get "+name, "prompts/get", append(params, '}'))
	L.Push(c.run.mustDecode(L, raw))
	return 1
}

func (c *catalog) search(L *glua.LState) int {
	r, query := c.run, L.CheckString(1)
	o := optionsAt(L, 2, "search", "kind", "server", "limit")
	so := SearchOptions{Kind: o.text("kind"), Server: o.text("server"), Limit: o.count("limit", 20, maxCards)}
	switch so.Kind {
	case "", registry.Tool.String(), registry.Prompt.String(), registry.Resource.String(), registry.Template.String():
	default:
		L.RaiseError("search: kind must be tool, prompt, resource or template, not %s", strconv.Quote(so.Kind))
	}
	raw := r.ask(L, "", "", "search "+query, func() ([]byte, error) { return r.host.Search(r.ctx, query, so) })
	L.Push(r.mustDecode(L, raw))
	return 1
}
