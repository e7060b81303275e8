package interpreter

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// part is a part of a string. A small part of a large string is copied, or it
// would keep all of it alive unseen.
func part(s string, start, end int) glua.LValue {
	p := s[start:end]
	if len(p) < len(s)-len(s)/4 {
		p = strings.Clone(p)
	}
	return glua.LString(p)
}

// openString replaces what gopher-lua's string library does in another way than
// Lua, or in quadratic time.
func (r *run) openString(L *glua.LState) {
	glua.OpenString(L)
	L.Pop(1)
	lib := L.GetGlobal("string").(*glua.LTable)
	for _, name := range []string{"dump", "gfind", "__index"} {
		lib.RawSetString(name, glua.LNil)
	}
	L.SetFuncs(lib, map[string]glua.LGFunction{
		"find": stringFind, "match": stringMatch, "gmatch": stringGmatch, "gsub": stringGsub,
		"format": r.stringFormat, "rep": r.stringRep, "sub": stringSub,
	})
	meta := L.NewTable()
	meta.RawSetString("__index", lib)
	meta.RawSetString("__metatable", glua.LString("protected"))
	L.SetMetatable(glua.LString(""), meta)
}

func (r *run) stringRep(L *glua.LState) int {
	s, n := L.CheckString(1), max(L.CheckInt(2), 0)
	if len(s) > 0 && n > math.MaxInt/2/len(s) {
		n = math.MaxInt / 2 / len(s)
	}
	r.room(L, int64(n)*int64(len(s)))
	L.Push(glua.LString(strings.Repeat(s, n)))
	return 1
}

// index is a position of Lua's, from 1 or from the end, as one of Go's, from 0.
func index(i, n int) int {
	if i < 0 {
		i = max(n+i+1, 0)
	}
	return min(max(i, 1), n+1) - 1
}

func stringSub(L *glua.LState) int {
	s := L.CheckString(1)
	start, last := index(L.CheckInt(2), len(s)), L.OptInt(3, -1)
	if last < 0 {
		last = len(s) + last + 1
	}
	last = min(last, len(s))
	if start >= last {
		L.Push(glua.LString(""))
		return 1
	}
	L.Push(part(s, start, last))
	return 1
}

func newMatcher(L *glua.LState) *matcher {
	return &matcher{L: L, src: L.CheckString(1), pat: L.CheckString(2)}
}

func stringFind(L *glua.LState) int {
	m := newMatcher(L)
	init := index(L.OptInt(3, 1), len(m.src))
	if L.ToBool(4) || !strings.ContainsAny(m.pat, "^$*+?.([%-") {
		i := strings.Index(m.src[init:], m.pat)
		if i < 0 {
			L.Push(glua.LNil)
			return 1
		}
		L.Push(glua.LNumber(init + i + 1))
		L.Push(glua.LNumber(init + i + len(m.pat)))
		return 2
	}
	start, end := m.find(init)
	if end < 0 {
		L.Push(glua.LNil)
		return 1
	}
	L.Push(glua.LNumber(start + 1))
	L.Push(glua.LNumber(end))
	return 2 + m.push(start, end, false)
}

func stringMatch(L *glua.LState) int {
	m := newMatcher(L)
	start, end := m.find(index(L.OptInt(3, 1), len(m.src)))
	if end < 0 {
		L.Push(glua.LNil)
		return 1
	}
	return m.push(start, end, true)
}

func stringGmatch(L *glua.LState) int {
	src, pat, at := L.CheckString(1), L.CheckString(2), 0
	L.Push(L.NewFunction(func(L *glua.LState) int {
		if at > len(src) {
			return 0
		}
		m := &matcher{L: L, src: src, pat: pat}
		start, end := m.find(at)
		if end < 0 {
			at = len(src) + 1
			return 0
		}
		if at = end; start == end {
			at++
		}
		return m.push(start, end, true)
	}))
	return 1
}

func stringGsub(L *glua.LState) int {
	m := newMatcher(L)
	L.CheckTypes(3, glua.LTString, glua.LTNumber, glua.LTTable, glua.LTFunction)
	repl, most := L.Get(3), L.OptInt(4, len(m.src)+1)
	anchored := strings.HasPrefix(m.pat, "^")
	var b strings.Builder
	n, s := 0, 0
	for n < most {
		p := 0
		if anchored {
			p = 1
		}
		m.level, m.depth = 0, 0
		end := m.match(s, p)
		if end >= 0 {
			n++
			b.WriteString(m.replacement(repl, s, end))
		}
		switch {
		case end > s:
			s = end
		case s < len(m.src):
			b.WriteString(m.src[s : s+1])
			s++
		default:
			s++
		}
		if s > len(m.src) || anchored {
			break
		}
	}
	if s < len(m.src) {
		b.WriteString(m.src[s:])
	}
	L.Push(glua.LString(b.String()))
	L.Push(glua.LNumber(n))
	return 2
}

// replacement is what gsub puts in the place of a match.
func (m *matcher) replacement(repl glua.LValue, start, end int) string {
	L := m.L
	var v glua.LValue
	switch repl := repl.(type) {
	case *glua.LTable:
		v = L.GetTable(repl, m.captured(0, start, end))
	case *glua.LFunction:
		L.Push(repl)
		n := m.push(start, end, true)
		L.Call(n, 1)
		v = L.Get(-1)
		L.Pop(1)
	default:
		return m.expand(repl.String(), start, end)
	}
	if glua.LVIsFalse(v) {
		return m.src[start:end]
	}
	if !glua.LVCanConvToString(v) {
		L.RaiseError("invalid replacement value (a %s)", v.Type())
	}
	return v.String()
}

// expand puts captures in the place of %0 to %9.
func (m *matcher) expand(repl string, start, end int) string {
	if strings.IndexByte(repl, '%') < 0 {
		return repl
	}
	var b strings.Builder
	for i := 0; i < len(repl); i++ {
		c := repl[i]
		if c != '%' || i+1 == len(repl) {
			b.WriteString(repl[i : i+1])
			continue
		}
		i++
		switch c = repl[i]; {
		case c == '0':
			b.WriteString(m.src[start:end])
		case c >= '1' && c <= '9':
			b.WriteString(m.captured(int(c-'1'), start, end).String())
		default:
			b.WriteString(repl[i : i+1])
		}
	}
	return b.String()
}

// conversion is one of string.format's: what begins with a %.
var conversion = regexp.MustCompile(`(?s)%[-+ #0]*\d{0,2}(?:\.\d{0,2})?.?`)

// stringFormat knows the conversions of Lua 5.1; width and precision have two
// digits at most.
func (r *run) stringFormat(L *glua.LState) int {
	arg := 1
	L.Push(glua.LString(conversion.ReplaceAllStringFunc(L.CheckString(1), func(c string) string {
		if c == "%%" {
			return "%"
		}
		arg++
		return r.formatted(L, c[:len(c)-1], c[len(c)-1], arg)
	})))
	return 1
}

func (r *run) formatted(L *glua.LState, spec string, verb byte, arg int) string {
	switch verb {
	case 'c':
		return string([]byte{byte(L.CheckInt(arg))})
	case 'd', 'i':
		if n, ok := exactOf(L.Get(arg)); ok {
			return string(n)
		}
		return fmt.Sprintf(spec+"d", int64(L.CheckNumber(arg)))
	case 'u':
		return fmt.Sprintf(spec+"d", uint64(int64(L.CheckNumber(arg))))
	case 'x', 'X', 'o':
		return fmt.Sprintf(spec+string(verb), uint64(int64(L.CheckNumber(arg))))
	case 'e', 'E', 'f', 'g', 'G':
		if (verb|0x20) == 'g' && !strings.Contains(spec, ".") {
			spec += ".6" // as C does it
		}
		return fmt.Sprintf(spec+string(verb), float64(L.CheckNumber(arg)))
	case 'q':
		return quoted(L.CheckString(arg))
	case 's':
		s := r.toString(L, L.CheckAny(arg))
		return fmt.Sprintf(spec+"s", s)
	}
	L.RaiseError("invalid conversion '%%%c' in the format", verb)
	return ""
}

// quoted is a string as Lua reads it back.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", "\\\n", "\r", `\r`, "\x00", `\000`).Replace(s) + `"`
}
