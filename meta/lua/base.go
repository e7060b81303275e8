package lua

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// kept are the functions of gopher-lua's base library that a script gets as
// they are. Those that load code or files, change environments, or reach the
// process are not among them.
var kept = []string{
	"_G", "_VERSION", "error", "getmetatable", "ipairs", "next", "pairs", "rawequal", "rawget", "select",
	"type", "unpack",
}

// open makes the globals. Whatever is not put in here is not there.
func (r *run) open(L *glua.LState) {
	glua.OpenBase(L)
	L.Pop(1)
	globals := L.Get(glua.GlobalsIndex).(*glua.LTable)
	for _, k := range slices.Clone(keysOf(globals)) {
		if name, ok := k.(glua.LString); !ok || !slices.Contains(kept, string(name)) {
			globals.RawSet(k, glua.LNil)
		}
	}
	L.SetFuncs(globals, map[string]glua.LGFunction{
		"assert": assert, "pcall": r.pcall, "xpcall": r.xpcall, "print": r.print, "rawset": r.rawset, "setmetatable": setMetatable,
		"tonumber": toNumber, "tostring": func(L *glua.LState) int {
			L.Push(glua.LString(r.toString(L, L.CheckAny(1))))
			return 1
		},
	})
	r.openString(L)
	r.openTable(L)
	r.openMath(L)
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
		L.NewFunction(r.concat), L.NewFunction(r.set), L.NewFunction(r.key), L.NewFunction(await),
		L.NewFunction(r.allOf(L.GetGlobal("all"))),
	}
}

func (r *run) concat(L *glua.LState) int {
	n, size := L.GetTop(), 0
	for i := 1; i <= n; i++ {
		v := L.Get(i)
		if !glua.LVCanConvToString(v) {
			L.Push(r.concatWith(L, n))
			return 1
		}
		size += len(glua.LVAsString(v))
	}
	r.grow(L, int64(size)+stringSize)
	r.step(L, size/64)
	var b strings.Builder
	b.Grow(size)
	for i := 1; i <= n; i++ {
		b.WriteString(glua.LVAsString(L.Get(i)))
	}
	L.Push(glua.LString(b.String()))
	return 1
}

// concatWith joins n values from the right, with metamethods.
func (r *run) concatWith(L *glua.LState, n int) glua.LValue {
	right := L.Get(n)
	for i := n - 1; i >= 1; i-- {
		left := L.Get(i)
		if glua.LVCanConvToString(left) && glua.LVCanConvToString(right) {
			a, b := glua.LVAsString(left), glua.LVAsString(right)
			r.grow(L, int64(len(a)+len(b))+stringSize)
			right = glua.LString(a + b)
			continue
		}
		op := L.GetMetaField(left, "__concat")
		if op == glua.LNil {
			op = L.GetMetaField(right, "__concat")
		}
		if op == glua.LNil {
			L.RaiseError("cannot join %s and %s with ..", left.Type(), right.Type())
		}
		L.Push(op)
		L.Push(left)
		L.Push(right)
		L.Call(2, 1)
		right = L.Get(-1)
		L.Pop(1)
	}
	return right
}

// gap charges what an array grows by when key becomes an index of it.
func (r *run) gap(L *glua.LState, t *glua.LTable, key glua.LValue) {
	k, ok := key.(glua.LNumber)
	if !ok || k < 1 || k >= glua.LNumber(glua.MaxArrayIndex) {
		return
	}
	if n := int64(k) - int64(len(arrayOf(t))); n > 1 {
		r.grow(L, 2*slotSize*n) // it may grow by doubling
		r.step(L, int(n/16))
	}
}

func (r *run) set(L *glua.LState) int {
	object, key := L.Get(1), L.Get(2)
	if t, ok := object.(*glua.LTable); ok {
		r.gap(L, t, key)
	}
	if key == glua.LNil {
		L.RaiseError("the key of a table cannot be nil")
	}
	if k, ok := key.(glua.LNumber); ok && k != k {
		L.RaiseError("the key of a table cannot be NaN")
	}
	L.SetTable(object, key, L.Get(3))
	return 0
}

func (r *run) key(L *glua.LState) int {
	key := L.Get(1)
	if key == glua.LNil {
		L.RaiseError("the key of a table cannot be nil")
	}
	r.gap(L, &glua.LTable{}, key)
	L.SetTop(1)
	return 1
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

func (r *run) rawset(L *glua.LState) int {
	t, key := L.CheckTable(1), L.CheckAny(2)
	r.gap(L, t, key)
	L.RawSet(t, key, L.CheckAny(3))
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

func (r *run) print(L *glua.LState) int {
	for i := 1; i <= L.GetTop(); i++ {
		s := r.toString(L, L.Get(i))
		if i > 1 {
			s = "\t" + s
		}
		r.emit(L, s)
	}
	r.emit(L, "\n")
	return 0
}

func (r *run) emit(L *glua.LState, s string) {
	r.spend(L, len(s))
	r.printed = append(r.printed, s...)
}

func (r *run) openTable(L *glua.LState) {
	glua.OpenTable(L)
	L.Pop(1)
	lib := L.GetGlobal("table").(*glua.LTable)
	L.SetFuncs(lib, map[string]glua.LGFunction{
		"concat": r.tableConcat, "insert": r.tableInsert, "remove": r.tableRemove, "sort": r.tableSort,
	})
}

func (r *run) tableConcat(L *glua.LState) int {
	t, sep := L.CheckTable(1), L.OptString(2, "")
	first, last := L.OptInt(3, 1), L.OptInt(4, t.Len())
	b := builder{holding: holding{run: r, L: L}}
	defer b.release()
	for i := first; i <= last; i++ {
		r.step(L, 1)
		v := t.RawGetInt(i)
		if !glua.LVCanConvToString(v) {
			L.RaiseError("invalid value (%s) at index %d in table for concat", v.Type(), i)
		}
		b.add(v.String())
		if i < last {
			b.add(sep)
		}
	}
	L.Push(b.text())
	return 1
}

func (r *run) tableInsert(L *glua.LState) int {
	t := L.CheckTable(1)
	switch L.GetTop() {
	case 2:
		t.Append(L.Get(2))
	case 3:
		at := L.CheckInt(2)
		r.gap(L, t, glua.LNumber(at))
		r.step(L, max(len(arrayOf(t))-at, 0)/64)
		t.Insert(at, L.Get(3))
	default:
		L.RaiseError("wrong number of arguments to table.insert")
	}
	return 0
}

func (r *run) tableRemove(L *glua.LState) int {
	t := L.CheckTable(1)
	n := t.Len()
	at := L.OptInt(2, n)
	if n == 0 || at < 1 || at > n {
		L.Push(glua.LNil)
		return 1
	}
	r.step(L, (n-at)/64)
	L.Push(t.Remove(at))
	return 1
}

// sorter sorts a table in place; each comparison counts as an instruction.
type sorter struct {
	*run
	L    *glua.LState
	t    *glua.LTable
	n    int
	less *glua.LFunction
}

func (s *sorter) Len() int { return s.n }

func (s *sorter) Swap(i, j int) {
	a, b := s.t.RawGetInt(i+1), s.t.RawGetInt(j+1)
	s.t.RawSetInt(i+1, b)
	s.t.RawSetInt(j+1, a)
}

func (s *sorter) Less(i, j int) bool {
	s.step(s.L, 1)
	a, b := s.t.RawGetInt(i+1), s.t.RawGetInt(j+1)
	if s.less == nil {
		return s.L.LessThan(a, b)
	}
	s.L.Push(s.less)
	s.L.Push(a)
	s.L.Push(b)
	s.L.Call(2, 1)
	v := s.L.Get(-1)
	s.L.Pop(1)
	return glua.LVAsBool(v)
}

func (r *run) tableSort(L *glua.LState) int {
	t := L.CheckTable(1)
	sort.Sort(&sorter{run: r, L: L, t: t, n: t.Len(), less: L.OptFunction(2, nil)})
	return 0
}

// openMath gives each run a generator of its own: that of gopher-lua is the
// process's.
func (r *run) openMath(L *glua.LState) {
	glua.OpenMath(L)
	L.Pop(1)
	source := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	L.SetFuncs(L.GetGlobal("math").(*glua.LTable), map[string]glua.LGFunction{
		"randomseed": func(L *glua.LState) int {
			source = rand.New(rand.NewPCG(uint64(L.CheckInt64(1)), 0))
			return 0
		},
		"random": func(L *glua.LState) int {
			if L.GetTop() == 0 {
				L.Push(glua.LNumber(source.Float64()))
				return 1
			}
			from, to := int64(1), L.CheckInt64(1)
			if L.GetTop() > 1 {
				from, to = to, L.CheckInt64(2)
			}
			if to < from || to-from < 0 {
				L.RaiseError("math.random: there is nothing between %d and %d", from, to)
			}
			L.Push(glua.LNumber(from + int64(source.Uint64N(uint64(to-from)+1))))
			return 1
		},
	})
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
		return fmt.Sprintf("; nothing is called %q%s", r.missed, nearestText(r.missed, r.catalog.names(r.main)))
	}
	return ""
}
