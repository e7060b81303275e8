package lua

import (
	"fmt"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// holding is memory of a library function that the script does not reach yet.
type holding struct {
	run *run
	L   *glua.LState
	n   int64
}

func (h *holding) grow(n int64) {
	h.run.grow(h.L, n)
	h.run.held += n
	h.n += n
}

func (h *holding) release() { h.run.held -= h.n }

// builder builds a string within the budget.
type builder struct {
	holding
	buf []byte
}

func (b *builder) add(s string) {
	if need := len(b.buf) + len(s); need > cap(b.buf) {
		size := max(64, need, 2*cap(b.buf))
		b.grow(int64(size))
		buf := make([]byte, len(b.buf), size)
		copy(buf, b.buf)
		b.buf = buf
	}
	b.run.step(b.L, len(s)/64)
	b.buf = append(b.buf, s...)
}

// text is what was built, charged.
func (b *builder) text() glua.LString {
	b.grow(int64(len(b.buf)) + stringSize)
	return glua.LString(b.buf)
}

// cut is a part of a string. A small part of a large string is copied, or it
// would keep all of it alive unseen.
func (r *run) cut(L *glua.LState, s string, start, end int) glua.LValue {
	part := s[start:end]
	if len(part) < len(s)-len(s)/4 {
		r.grow(L, int64(len(part))+stringSize)
		part = strings.Clone(part)
	}
	return glua.LString(part)
}

// openString replaces what gopher-lua's string library does not bound.
func (r *run) openString(L *glua.LState) {
	glua.OpenString(L)
	L.Pop(1)
	lib := L.GetGlobal("string").(*glua.LTable)
	for _, name := range []string{"dump", "gfind", "__index"} {
		lib.RawSetString(name, glua.LNil)
	}
	L.SetFuncs(lib, map[string]glua.LGFunction{
		"find": r.stringFind, "match": r.stringMatch, "gmatch": r.stringGmatch, "gsub": r.stringGsub,
		"format": r.stringFormat, "rep": r.stringRep, "sub": r.stringSub,
		"lower": r.stringMap(strings.ToLower), "upper": r.stringMap(strings.ToUpper), "reverse": r.stringMap(reverse),
	})
	meta := L.NewTable()
	meta.RawSetString("__index", lib)
	meta.RawSetString("__metatable", glua.LString("protected"))
	L.SetMetatable(glua.LString(""), meta)
}

func reverse(s string) string {
	b := []byte(s)
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}

func (r *run) stringMap(f func(string) string) glua.LGFunction {
	return func(L *glua.LState) int {
		s := L.CheckString(1)
		r.step(L, len(s)/64)
		r.grow(L, 2*int64(len(s))+stringSize)
		L.Push(glua.LString(f(s)))
		return 1
	}
}

func (r *run) stringRep(L *glua.LState) int {
	s, n := L.CheckString(1), int64(max(L.CheckInt(2), 0))
	size := saturated(int64(len(s)), n)
	r.grow(L, size+stringSize)
	r.step(L, int(size/64))
	L.Push(glua.LString(strings.Repeat(s, int(size/int64(max(len(s), 1))))))
	return 1
}

// index is a position of Lua's, from 1 or from the end, as one of Go's, from 0.
func index(i, n int) int {
	if i < 0 {
		i = max(n+i+1, 0)
	}
	return min(max(i, 1), n+1) - 1
}

func (r *run) stringSub(L *glua.LState) int {
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
	L.Push(r.cut(L, s, start, last))
	return 1
}

func (r *run) matcher(L *glua.LState) *matcher {
	return &matcher{run: r, L: L, src: L.CheckString(1), pat: L.CheckString(2)}
}

func (r *run) stringFind(L *glua.LState) int {
	m := r.matcher(L)
	init := index(L.OptInt(3, 1), len(m.src))
	if L.ToBool(4) || !strings.ContainsAny(m.pat, "^$*+?.([%-") {
		r.step(L, (len(m.src)-init)/64)
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

func (r *run) stringMatch(L *glua.LState) int {
	m := r.matcher(L)
	start, end := m.find(index(L.OptInt(3, 1), len(m.src)))
	if end < 0 {
		L.Push(glua.LNil)
		return 1
	}
	return m.push(start, end, true)
}

func (r *run) stringGmatch(L *glua.LState) int {
	src, pat, at := L.CheckString(1), L.CheckString(2), 0
	L.Push(L.NewFunction(func(L *glua.LState) int {
		if at > len(src) {
			return 0
		}
		m := &matcher{run: r, L: L, src: src, pat: pat}
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

func (r *run) stringGsub(L *glua.LState) int {
	m := r.matcher(L)
	L.CheckTypes(3, glua.LTString, glua.LTNumber, glua.LTTable, glua.LTFunction)
	repl, most := L.Get(3), L.OptInt(4, len(m.src)+1)
	anchored := strings.HasPrefix(m.pat, "^")
	b := builder{holding: holding{run: r, L: L}}
	defer b.release()
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
			b.add(m.replacement(repl, s, end))
		}
		switch {
		case end > s:
			s = end
		case s < len(m.src):
			b.add(m.src[s : s+1])
			s++
		default:
			s++
		}
		if s > len(m.src) || anchored {
			break
		}
	}
	if s < len(m.src) {
		b.add(m.src[s:])
	}
	L.Push(b.text())
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
	b := builder{holding: holding{run: m.run, L: m.L}}
	defer b.release()
	for i := 0; i < len(repl); i++ {
		c := repl[i]
		if c != '%' || i+1 == len(repl) {
			b.add(repl[i : i+1])
			continue
		}
		i++
		switch c = repl[i]; {
		case c == '0':
			b.add(m.src[start:end])
		case c >= '1' && c <= '9':
			b.add(m.captured(int(c-'1'), start, end).String())
		default:
			b.add(repl[i : i+1])
		}
	}
	return string(b.buf)
}

// stringFormat knows the conversions of Lua 5.1; width and precision have two
// digits at most.
func (r *run) stringFormat(L *glua.LState) int {
	format, arg := L.CheckString(1), 1
	b := builder{holding: holding{run: r, L: L}}
	defer b.release()
	for {
		i := strings.IndexByte(format, '%')
		if i < 0 {
			break
		}
		b.add(format[:i])
		format = format[i+1:]
		if strings.HasPrefix(format, "%") {
			b.add("%")
			format = format[1:]
			continue
		}
		n := specLength(format)
		if n < 0 {
			L.RaiseError("invalid format (width or precision too long, or ends with '%%')")
		}
		arg++
		b.add(r.formatted(L, "%"+format[:n], format[n], arg))
		format = format[n+1:]
	}
	b.add(format)
	L.Push(b.text())
	return 1
}

// specLength is the length of flags, width and precision; -1 if they are none.
func specLength(s string) int {
	i := 0
	digits := func() int {
		n := 0
		for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
			n++
		}
		return n
	}
	for i < len(s) && i < 5 && strings.IndexByte("-+ #0", s[i]) >= 0 {
		i++
	}
	if digits() > 2 {
		return -1
	}
	if i < len(s) && s[i] == '.' {
		if i++; digits() > 2 {
			return -1
		}
	}
	if i >= len(s) {
		return -1
	}
	return i
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
		r.grow(L, int64(len(s)))
		return fmt.Sprintf(spec+"s", s)
	}
	L.RaiseError("invalid conversion '%%%c' in the format", verb)
	return ""
}

// quoted is a string as Lua reads it back.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", "\\\n", "\r", `\r`, "\x00", `\000`).Replace(s) + `"`
}
