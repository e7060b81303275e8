package worker

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// keptFunctions are the unchanged functions of gopher-lua's base library.
var keptFunctions = []string{
	"_G", "_VERSION", "error", "getmetatable", "ipairs", "next", "pairs", "rawequal", "rawget", "rawset",
	"select", "setmetatable", "type", "unpack",
}

// open creates the globals. Scripts can use nothing else.
func (r *run) open(L *glua.LState) {
	glua.OpenBase(L)
	L.Pop(1)
	globals := L.Get(glua.GlobalsIndex).(*glua.LTable)
	numbers := L.GetGlobal("tonumber").(*glua.LFunction).GFunction
	globals.ForEach(func(k, _ glua.LValue) {
		if name, ok := k.(glua.LString); !ok || !slices.Contains(keptFunctions, string(name)) {
			globals.RawSet(k, glua.LNil)
		}
	})
	L.SetFuncs(globals, map[string]glua.LGFunction{
		"assert": assert, "pcall": r.pcall, "xpcall": r.xpcall, "print": r.print,
		"tonumber": toNumber(numbers), "tostring": func(L *glua.LState) int {
			L.Push(glua.LString(r.toString(L, L.CheckAny(1))))
			return 1
		},
	})
	r.openString(L)
	glua.OpenTable(L)
	glua.OpenMath(L)
	L.Pop(2)
	r.openCoroutine(L)
	r.openValues(L)
	r.openCatalog(L)
	meta := L.NewTable()
	meta.RawSetString("__index", L.NewFunction(r.lookUp))
	meta.RawSetString("__metatable", glua.LString("protected"))
	globals.Metatable = meta
}

func (r *run) guards(L *glua.LState) []glua.LValue {
	return []glua.LValue{
		L.NewFunction(awaitMethod), L.NewFunction(r.allOf(L.GetGlobal("all"))),
	}
}

// awaitMethod implements x:await(): it returns x, or calls the script's own method await.
func awaitMethod(L *glua.LState) int {
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

// assert raises its second argument unchanged, for example a tool's error.
func assert(L *glua.LState) int {
	L.CheckAny(1)
	if L.ToBool(1) {
		return L.GetTop()
	}
	message := L.Get(2)
	if L.GetTop() < 2 {
		message = glua.LString("assertion failed!")
	}
	L.Error(message, 0)
	return 0
}

// toNumber extends gopher-lua's tonumber by exact integers and exponents.
func toNumber(plain glua.LGFunction) glua.LGFunction {
	return func(L *glua.LState) int {
		v := L.CheckAny(1)
		s, _ := v.(glua.LString)
		f, err := strconv.ParseFloat(strings.TrimSpace(string(s)), 64)
		switch _, ok := exactOf(v); {
		case ok:
			L.Push(nearestNumber(v))
		case err == nil && L.Get(2) == glua.LNil && strings.ContainsAny(string(s), "123456789"): // rejects "inf"
			L.Push(glua.LNumber(f))
		default:
			return plain(L)
		}
		return 1
	}
}

// toString implements tostring(v), including __tostring.
func (r *run) toString(L *glua.LState, v glua.LValue) string {
	if n, ok := exactOf(v); ok {
		return string(n)
	}
	return L.ToStringMeta(v).String()
}

// print converts tables to JSON if possible.
func (r *run) print(L *glua.LState) int {
	var line strings.Builder
	for i := 1; i <= L.GetTop(); i++ {
		if i > 1 {
			line.WriteByte('\t')
		}
		line.WriteString(r.displayText(L, L.Get(i)))
	}
	r.notify(NotifyPrint, []byte(line.String()+"\n"))
	return 0
}

func (r *run) displayText(L *glua.LState, v glua.LValue) string {
	if t, ok := v.(*glua.LTable); ok && L.GetMetaField(t, "__tostring") == glua.LNil {
		if text, err := r.encode(t); err == nil {
			return string(text)
		}
	}
	return r.toString(L, v)
}

// openString removes string.dump, which exposes bytecode, supports this package's values,
// and limits memory.
func (r *run) openString(L *glua.LState) {
	glua.OpenString(L)
	L.Pop(1)
	lib := L.GetGlobal("string").(*glua.LTable)
	lib.RawSetString("dump", glua.LNil)
	plain := map[string]glua.LGFunction{}
	for _, name := range []string{"rep", "format", "sub", "match"} {
		plain[name] = lib.RawGetString(name).(*glua.LFunction).GFunction
	}
	// A substring would keep the whole string in memory.
	parts := func(find glua.LGFunction) glua.LGFunction {
		return func(L *glua.LState) int {
			n := find(L)
			for i := 1; i <= n; i++ {
				if s, ok := L.Get(-i).(glua.LString); ok {
					L.Replace(-i, glua.LString(strings.Clone(string(s))))
				}
			}
			return n
		}
	}
	L.SetFuncs(lib, map[string]glua.LGFunction{
		"rep": func(L *glua.LState) int {
			if n := int64(len(L.CheckString(1))); n > 0 && L.CheckInt64(2) > r.start.Memory/n {
				r.checkRoom(L, math.MaxInt64)
			}
			return plain["rep"](L)
		},
		"format": func(L *glua.LState) int {
			for i := 2; i <= L.GetTop(); i++ {
				if v := L.Get(i); v.Type() == glua.LTTable || v.Type() == glua.LTUserData {
					L.Replace(i, glua.LString(r.toString(L, v)))
				}
			}
			return plain["format"](L)
		},
		"sub": parts(plain["sub"]), "match": parts(plain["match"]),
	})
	meta := L.NewTable()
	meta.RawSetString("__index", lib)
	meta.RawSetString("__metatable", glua.LString("protected"))
	L.SetMetatable(glua.LString(""), meta)
}

// lookUp is the __index of the globals: the server with that identifier, or nil.
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
	r.lastUnknown = string(name)
	L.Push(glua.LNil)
	return 1
}

func splitLine(text string) (line int, message string) {
	rest, ok := strings.CutPrefix(text, chunkName+":")
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

func (r *run) hint(message string) string {
	switch {
	case strings.Contains(message, "attempt to call a non-function object") && r.prog.shadowed > 0:
		return "." + r.prog.shadowHint()
	case strings.HasPrefix(message, "attempt to index a non-table object(nil)"), strings.Contains(message, "attempt to call a non-function object"):
		if r.lastUnknown == "" {
			return ""
		}
		if slices.Contains(reservedNames, r.lastUnknown) {
			return fmt.Sprintf("; %s is not available in scripts", r.lastUnknown)
		}
		return fmt.Sprintf("; unknown name %q%s", r.lastUnknown, DidYouMean(r.lastUnknown, r.catalog.names(r.main)))
	}
	return ""
}
