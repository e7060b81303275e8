package worker

import (
	"fmt"
	"math/big"
	"strings"
	"sync"

	glua "github.com/yuin/gopher-lua"

	"goblin/registry/rawjson"
)

const maxParallel = 8 // of one run

// askCall sends a request that counts as a call. It raises an error if the call fails.
func (r *run) askCall(L *glua.LState, q ScriptMessage, body []byte) []byte {
	a := r.waitAnswer(L, q, body)
	server := q.Server
	if q.Ask != AskCall {
		server = ""
	}
	if a.Error != "" {
		e := r.newError(L, server, q.Tool, a.Error)
		if a.Code != nil {
			e.RawSetString("code", glua.LNumber(*a.Code))
			if len(a.body) > 0 {
				if v, err := r.decode(L, a.body); err == nil {
					e.RawSetString("data", v)
				}
			}
		}
		L.Error(e, 0)
	}
	if err := rawjson.Valid(a.body); err != nil {
		L.Error(r.newError(L, server, q.Tool, "the answer is not JSON: "+err.Error()), 0)
	}
	return a.body
}

// waitAnswer releases the lock while it waits, so that other threads can run.
func (r *run) waitAnswer(L *glua.LState, q ScriptMessage, body []byte) (a answer) {
	current := L.G.CurrentThread
	r.lock.Unlock()
	r.requestMemory() // the answer may take long, and watchMemory may be late
	select {
	case r.slots <- struct{}{}:
		a, _ = r.conn.ask(q, body, r.ended)
		<-r.slots
	case <-r.ended:
	}
	r.lock.Lock()
	L.G.CurrentThread = current
	r.enforceMemory()
	if r.isOver() {
		r.raise(L)
	}
	return a
}

// askCatalog sends a request about the catalog, which does not count as a call.
func (r *run) askCatalog(L *glua.LState, q ScriptMessage) []byte {
	a := r.waitAnswer(L, q, nil)
	if a.Error != "" {
		L.RaiseError("%s", a.Error)
	}
	return a.body
}

// checkLength raises an error for a name or URI that is too long for any server.
func checkLength(L *glua.LState, what, text string, most int) {
	if len(text) > most {
		L.RaiseError("the %s has %d bytes; the limit is %s", what, len(text), FormatSize(int64(most)))
	}
}

func (r *run) newError(L *glua.LState, server, tool, message string) *glua.LTable {
	e := L.CreateTable(0, 8)
	e.Metatable = r.errorMeta
	e.RawSetString("message", glua.LString(message))
	if server != "" {
		e.RawSetString("server", glua.LString(server))
	}
	if tool != "" {
		e.RawSetString("tool", glua.LString(tool))
	}
	if line, _ := splitLine(L.Where(1)); line > 0 {
		e.RawSetString("line", glua.LNumber(line))
	}
	return e
}

// errorText converts an error like tostring, but without running script code.
func (r *run) errorText(v glua.LValue) string {
	t, ok := v.(*glua.LTable)
	if !ok {
		return v.String()
	}
	message, ok := t.RawGetString("message").(glua.LString)
	if !ok {
		return "the script raised a table as error"
	}
	var b strings.Builder
	if line, ok := t.RawGetString("line").(glua.LNumber); ok {
		fmt.Fprintf(&b, "%s:%d: ", chunkName, int(line))
	}
	if server, ok := t.RawGetString("server").(glua.LString); ok {
		b.WriteString(string(server))
		if tool, ok := t.RawGetString("tool").(glua.LString); ok {
			b.WriteString("." + string(tool))
		}
		b.WriteString(": ")
	}
	b.WriteString(string(message))
	return b.String()
}

func (r *run) callTool(srv *server, tool, listed string) glua.LGFunction {
	return func(L *glua.LState) int {
		at := 1
		if L.Get(1) == srv.table { // server:tool{…}
			at = 2
		}
		args := "{}"
		switch v := L.Get(at).(type) {
		case *glua.LNilType:
		case *glua.LTable:
			text, err := r.encode(v)
			if err != nil {
				L.RaiseError("%s.%s: the arguments %s", srv.name, tool, err)
			}
			if args = string(text); !strings.HasPrefix(args, "{") && args != "[]" {
				L.RaiseError("%s.%s takes its arguments by name: %s{name = value}", srv.name, tool, tool)
			} else if args == "[]" {
				args = "{}"
			}
		default:
			L.RaiseError("%s.%s takes a table of arguments, not a %s", srv.name, tool, v.Type())
		}
		raw := r.askCall(L, ScriptMessage{Ask: AskCall, Server: srv.name, Tool: tool, Name: listed}, []byte(args))
		if string(rawjson.Get(raw, "isError")) == "true" {
			e := r.newError(L, srv.name, tool, errorResultText(raw))
			if v, err := r.decode(L, raw); err == nil {
				e.RawSetString("result", v)
			}
			L.Error(e, 0)
		}
		L.Push(r.convertResult(L, raw, "content"))
		return 1
	}
}

func errorResultText(raw []byte) string {
	var texts []string
	for c := range rawjson.Elements(rawjson.Get(raw, "content")) {
		if s, ok := rawjson.String(rawjson.Get(c, "text")); ok {
			texts = append(texts, s)
		}
	}
	if len(texts) == 0 {
		return "the tool reported an error without a text"
	}
	return strings.Join(texts, "\n")
}

// convertResult converts a result for a script: its structured content, or its only text,
// parsed if it is a JSON object or array; otherwise the whole result. list is the member
// with the contents.
func (r *run) convertResult(L *glua.LState, raw []byte, list string) glua.LValue {
	if s := rawjson.Get(raw, "structuredContent"); s != nil && string(s) != "null" {
		return r.mustDecode(L, s)
	}
	var only []byte
	n := 0
	for c := range rawjson.Elements(rawjson.Get(raw, list)) {
		only = c
		if n++; n > 1 {
			break
		}
	}
	text, ok := rawjson.String(rawjson.Get(only, "text"))
	if n != 1 || !ok {
		return r.mustDecode(L, raw)
	}
	if t := strings.TrimSpace(text); strings.HasPrefix(t, "{") || strings.HasPrefix(t, "[") {
		if v, err := r.decode(L, []byte(t)); err == nil {
			return v
		}
	}
	return glua.LString(text)
}

func (r *run) mustDecode(L *glua.LState, text []byte) glua.LValue {
	v, err := r.decode(L, text)
	if err != nil {
		L.RaiseError("the answer cannot be converted to Lua: %s", err)
	}
	return v
}

// allOf implements all{…} after compilation. Its arguments are the value of the variable
// all, the table, and the indices of deferred entries.
func (r *run) allOf(builtin glua.LValue) glua.LGFunction {
	return func(L *glua.LState) int {
		fn, t := L.Get(1), L.CheckTable(2)
		deferred := map[int]bool{}
		for _, index := range strings.Fields(L.CheckString(3)) {
			var i int
			_, _ = fmt.Sscan(index, &i)
			deferred[i] = true
		}
		if fn == builtin {
			return r.all(L, t, deferred)
		}
		for i := range deferred { // the script redefined all
			L.Push(t.RawGetInt(i))
			L.Call(0, 1)
			t.RawSetInt(i, L.Get(-1))
			L.Pop(1)
		}
		L.SetTop(3)
		L.Push(fn)
		L.Push(t)
		L.Call(1, glua.MultRet)
		return L.GetTop() - 3
	}
}

// all calls the functions in a table concurrently and returns their first results in
// order. Other entries stay unchanged; nil becomes null. It waits for all calls, then
// raises the first error.
func (r *run) all(L *glua.LState, t *glua.LTable, deferred map[int]bool) int {
	n := t.Len()
	out := L.CreateTable(n, 0)
	out.Metatable = r.arrayMeta
	var jobs []int
	for i := 1; i <= n; i++ {
		v := t.RawGetInt(i)
		out.RawSetInt(i, r.orNull(v))
		if v.Type() == glua.LTFunction {
			out.RawSetInt(i, r.null)
			jobs = append(jobs, i)
		}
	}
	failed := make([]error, n+1)
	next := 0
	work := func(th *glua.LState) {
		for next < len(jobs) && !r.isOver() {
			i := jobs[next]
			next++
			err := r.invoke(th, t.RawGetInt(i))
			if fn, ok := th.Get(1).(*glua.LFunction); ok && err == nil && deferred[i] {
				err = r.invoke(th, fn)
			}
			failed[i] = err
			if err == nil {
				out.RawSetInt(i, r.orNull(th.Get(1)))
			}
		}
	}
	r.parallel(L, min(len(jobs), maxParallel), work)
	if r.isOver() {
		r.raise(L)
	}
	for _, err := range failed {
		if err != nil {
			L.Error(errorValue(err), 0)
		}
	}
	L.Push(out)
	return 1
}

// parallel runs work on n threads and waits for them. Only one executes Lua at a time.
func (r *run) parallel(L *glua.LState, n int, work func(th *glua.LState)) {
	var threads []*glua.LState
	current := L.G.CurrentThread
	defer func() {
		L.G.CurrentThread = current
		for _, th := range threads {
			r.release(th)
		}
	}()
	for range n {
		threads = append(threads, r.thread(L))
	}
	var wg sync.WaitGroup
	for _, th := range threads {
		wg.Go(func() {
			r.lock.Lock()
			defer r.lock.Unlock()
			L.G.CurrentThread = th
			work(th)
		})
	}
	r.lock.Unlock()
	wg.Wait()
	r.lock.Lock()
}

func (r *run) openValues(L *glua.LState) {
	r.null = &glua.LUserData{Metatable: newMetatable(L, map[string]glua.LGFunction{
		"__tostring": func(L *glua.LState) int { L.Push(glua.LString("null")); return 1 },
	})}
	L.SetGlobal("null", r.null)
	r.arrayMeta = newMetatable(L, nil)
	r.arrayMeta.RawSetString("__metatable", glua.LNil) // scripts may replace it
	r.exactMeta = r.exactArithmetic(L)
	tostring := func(L *glua.LState) int {
		L.Push(glua.LString(r.errorText(L.Get(1))))
		return 1
	}
	r.errorMeta = newMetatable(L, map[string]glua.LGFunction{"__tostring": tostring, "__concat": func(L *glua.LState) int {
		a, b := L.Get(1), L.Get(2)
		s := r.toString(L, a) + r.toString(L, b)
		L.Push(glua.LString(s))
		return 1
	}})
	lib := L.NewTable()
	L.SetFuncs(lib, map[string]glua.LGFunction{
		"encode": func(L *glua.LState) int {
			text, err := r.encode(L.CheckAny(1))
			if err != nil {
				L.RaiseError("json.encode: the value %s", err)
			}
			L.Push(glua.LString(text))
			return 1
		},
		"decode": func(L *glua.LState) int {
			v, err := r.decode(L, []byte(L.CheckString(1)))
			if err != nil {
				L.RaiseError("json.decode: %s", err)
			}
			L.Push(v)
			return 1
		},
		"array": func(L *glua.LState) int {
			t := L.OptTable(1, L.NewTable())
			t.Metatable = r.arrayMeta
			L.Push(t)
			return 1
		},
	})
	L.SetGlobal("json", lib)
	L.SetGlobal("result", L.NewFunction(func(L *glua.LState) int {
		if err := r.setResult(L.Get(1)); err != nil {
			L.RaiseError("result: the value %s", err)
		}
		return 0
	}))
	L.SetGlobal("all", L.NewFunction(func(L *glua.LState) int { return r.all(L, L.CheckTable(1), nil) }))
}

// newMetatable returns a metatable that scripts cannot read.
func newMetatable(L *glua.LState, funcs map[string]glua.LGFunction) *glua.LTable {
	t := L.NewTable()
	L.SetFuncs(t, funcs)
	t.RawSetString("__metatable", glua.LString("protected"))
	return t
}

// exactArithmetic returns the metatable of exact integers. Arithmetic uses the nearest
// number; comparisons are exact.
func (r *run) exactArithmetic(L *glua.LState) *glua.LTable {
	compare := func(L *glua.LState) int {
		var n [2]big.Int
		for i := range n {
			text, _ := exactOf(L.Get(i + 1))
			_, _ = n[i].SetString(string(text), 10)
		}
		return n[0].Cmp(&n[1])
	}
	funcs := map[string]glua.LGFunction{
		"__tostring": func(L *glua.LState) int { L.Push(glua.LString(r.toString(L, L.Get(1)))); return 1 },
		"__concat": func(L *glua.LState) int {
			L.Push(glua.LString(r.toString(L, L.Get(1)) + r.toString(L, L.Get(2))))
			return 1
		},
		"__eq":  func(L *glua.LState) int { L.Push(glua.LBool(compare(L) == 0)); return 1 },
		"__lt":  func(L *glua.LState) int { L.Push(glua.LBool(compare(L) < 0)); return 1 },
		"__le":  func(L *glua.LState) int { L.Push(glua.LBool(compare(L) <= 0)); return 1 },
		"__unm": func(L *glua.LState) int { L.Push(-nearestNumber(L.Get(1))); return 1 },
	}
	for name, f := range arithmetic {
		funcs[name] = func(L *glua.LState) int {
			L.Push(glua.LNumber(f(float64(nearestNumber(L.Get(1))), float64(nearestNumber(L.Get(2))))))
			return 1
		}
	}
	return newMetatable(L, funcs)
}

func nearestNumber(v glua.LValue) glua.LNumber {
	if n, ok := exactOf(v); ok {
		v = glua.LString(n)
	}
	return glua.LVAsNumber(v)
}
