package interpreter

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"

	"goblin/meta/lua/wire"
)

// kept are the functions of gopher-lua's base library that a script gets as
// they are. Those that load code or files, change environments, or reach the
// process are not among them.
var kept = []string{
	"_G", "_VERSION", "error", "getmetatable", "ipairs", "next", "pairs", "rawequal", "rawget", "rawset",
	"select", "type", "unpack",
}

// open makes the globals. Whatever is not put in here is not there.
func (r *run) open(L *glua.LState) {
	glua.OpenBase(L)
	L.Pop(1)
	globals := L.Get(glua.GlobalsIndex).(*glua.LTable)
	globals.ForEach(func(k, _ glua.LValue) {
		if name, ok := k.(glua.LString); !ok || !slices.Contains(kept, string(name)) {
			globals.RawSet(k, glua.LNil)
		}
	})
	L.SetFuncs(globals, map[string]glua.LGFunction{
		"assert": assert, "pcall": r.pcall, "xpcall": r.xpcall, "print": r.print, "setmetatable": setMetatable,
		"tonumber": toNumber, "tostring": func(L *glua.LState) int {
			L.Push(glua.LString(r.toString(L, L.CheckAny(1))))
			return 1
		},
	})
	r.openString(L)
	r.openTable(L)
	glua.OpenMath(L)
	L.Pop(1)
	r.openCoroutine(L)
	r.openValues(L)
	r.openCatalog(L)
	meta := L.NewTable()
	meta.RawSetString("__index", L.NewFunction(r.lookUp))
	meta.RawSetString("__metatable", glua.LString("protected"))
	globals.Metatable = meta
}

// guards are the functions behind guardNames, in their order.
func (r *run) guards(L *glua.LState) []glua.LValue {
	return []glua.LValue{
		L.NewFunction(await), L.NewFunction(r.allOf(L.GetGlobal("all"))),
	}
}

// await is x:await(): x, which is there already, or what a method of that name
// of the script's own gives.
func await(L *glua.LState) int {
	v := L.Get(1)
	if _, ok := v.(*glua.LTable); ok {
		if own := L.GetField(v, "await"); own.Type() == glua.LTFunction {
			L.Push(own)
			L.Push(v)
			L.Call(1, glua.MultRet)
			return L.GetTop() - 1
		}
	}
	L.SetTop(1)
	return 1
}

// assert raises its second argument as it is, a tool's error for instance.
func assert(L *glua.LState) int {
	if L.CheckAny(1); L.ToBool(1) {
		return L.GetTop()
	}
	message := L.Get(2)
	if L.GetTop() < 2 {
		message = glua.LString("assertion failed!")
	}
	L.Error(message, 0)
	return 0
}

func setMetatable(L *glua.LState) int {
	t := L.CheckTable(1)
	L.CheckTypes(2, glua.LTNil, glua.LTTable)
	if old, ok := t.Metatable.(*glua.LTable); ok && old.RawGetString("__metatable") != glua.LNil {
		L.RaiseError("cannot change a protected metatable")
	}
	t.Metatable = L.Get(2)
	L.SetTop(1)
	return 1
}

// toNumber is tonumber(v, base). A whole number of any length is what it is in
// JSON: exact.
func toNumber(L *glua.LState) int {
	v := L.CheckAny(1)
	if n, ok := exactOf(v); ok {
		v = glua.LString(n)
	}
	s, ok := v.(glua.LString)
	if n, is := v.(glua.LNumber); is && L.Get(2) == glua.LNil {
		L.Push(n)
		return 1
	} else if is {
		s, ok = glua.LString(n.String()), true
	}
	L.Push(glua.LNil)
	if !ok {
		return 1
	}
	text, base := strings.TrimSpace(string(s)), L.OptInt(2, 10)
	if hex := strings.TrimPrefix(strings.ToLower(text), "0x"); len(hex) < len(text) && (base == 16 || L.Get(2) == glua.LNil) {
		text, base = hex, 16
	} else if base == 10 {
		if f, err := strconv.ParseFloat(text, 64); err == nil && text[len(text)-1] <= '9' { // not "inf", "nan"
			L.Push(glua.LNumber(f))
		}
		return 1
	}
	if base < 2 || base > 36 {
		L.RaiseError("tonumber: the base must be 2 to 36")
	}
	if n, err := strconv.ParseUint(text, base, 64); err == nil {
		L.Push(glua.LNumber(n))
	}
	return 1
}

// toString is tostring(v); __tostring counts.
func (r *run) toString(L *glua.LState, v glua.LValue) string {
	if n, ok := exactOf(v); ok {
		return string(n)
	}
	return L.ToStringMeta(v).String()
}

// print collects its arguments as texts, tables as JSON where they can be.
func (r *run) print(L *glua.LState) int {
	for i := 1; i <= L.GetTop(); i++ {
		s := r.shown(L, L.Get(i))
		if i > 1 {
			s = "\t" + s
		}
		r.emit(L, s)
	}
	r.emit(L, "\n")
	return 0
}

func (r *run) shown(L *glua.LState, v glua.LValue) string {
	if t, ok := v.(*glua.LTable); ok && L.GetMetaField(t, "__tostring") == glua.LNil {
		if text, err := r.encode(L, t); err == nil {
			return string(text)
		}
	}
	return r.toString(L, v)
}

func (r *run) emit(L *glua.LState, s string) {
	if !r.write(len(s)) {
		r.raise(L)
	}
	r.output.Lock()
	defer r.output.Unlock()
	r.printed = append(r.printed, s...)
}

func (r *run) openTable(L *glua.LState) {
	glua.OpenTable(L)
	L.Pop(1)
	lib := L.GetGlobal("table").(*glua.LTable)
	L.SetFuncs(lib, map[string]glua.LGFunction{"concat": tableConcat, "sort": tableSort})
}

// tableConcat takes more than the stack of gopher-lua's would hold.
func tableConcat(L *glua.LState) int {
	t, sep := L.CheckTable(1), L.OptString(2, "")
	first, last := L.OptInt(3, 1), L.OptInt(4, t.Len())
	var b strings.Builder
	for i := first; i <= last; i++ {
		v := t.RawGetInt(i)
		if !glua.LVCanConvToString(v) {
			L.RaiseError("invalid value (%s) at index %d in table for concat", v.Type(), i)
		}
		b.WriteString(v.String())
		if i < last {
			b.WriteString(sep)
		}
	}
	L.Push(glua.LString(b.String()))
	return 1
}

// tableSort sorts a table in place, and nothing behind a gap.
func tableSort(L *glua.LState) int {
	t, less := L.CheckTable(1), L.OptFunction(2, nil)
	values := make([]glua.LValue, t.Len())
	for i := range values {
		values[i] = t.RawGetInt(i + 1)
	}
	sort.Slice(values, func(i, j int) bool {
		if less == nil {
			return L.LessThan(values[i], values[j])
		}
		L.Push(less)
		L.Push(values[i])
		L.Push(values[j])
		L.Call(2, 1)
		v := L.Get(-1)
		L.Pop(1)
		return glua.LVAsBool(v)
	})
	for i, v := range values {
		t.RawSetInt(i+1, v)
	}
	return 0
}

// lookUp is the __index of the globals: the server of that identifier, or nil.
func (r *run) lookUp(L *glua.LState) int {
	name, ok := L.Get(2).(glua.LString)
	if !ok {
		L.Push(glua.LNil)
		return 1
	}
	if t := r.catalog.global(L, string(name)); t != nil {
		L.Push(t)
		return 1
	}
	r.missed = string(name)
	L.Push(glua.LNil)
	return 1
}

// splitLine takes the line off an error's text.
func splitLine(text string) (line int, message string) {
	rest, ok := strings.CutPrefix(text, wire.ChunkName+":")
	if !ok {
		return 0, text
	}
	num, message, ok := strings.Cut(rest, ":")
	if !ok {
		return 0, text
	}
	if _, err := fmt.Sscanf(num, "%d", &line); err != nil {
		return 0, text
	}
	return line, strings.TrimPrefix(message, " ")
}

// hint adds to an error what the script may have meant.
func (r *run) hint(message string) string {
	switch {
	case strings.Contains(message, "attempt to call a non-function object") && r.prog.shadowed > 0:
		return "." + r.prog.shadowHint()
	case strings.HasPrefix(message, "attempt to index a non-table object(nil)"), strings.Contains(message, "attempt to call a non-function object"):
		if r.missed == "" {
			return ""
		}
		if slices.Contains(reserved, r.missed) {
			return fmt.Sprintf("; scripts have no %s", r.missed)
		}
		return fmt.Sprintf("; nothing is called %q%s", r.missed, meant(r.missed, r.catalog.names(r.main)))
	}
	return ""
}
