package lua

import (
	"reflect"
	"unsafe"

	glua "github.com/yuin/gopher-lua"
)

// gopher-lua has no hook for allocations, and no way to see a thread's stack or
// the real length of an array from outside. These read three of its fields in
// place. Their types are checked when the program starts, so that another
// version of the library cannot be misread.
var (
	arrayField = fieldOf[[]glua.LValue](reflect.TypeFor[glua.LTable](), "array")
	keysField  = fieldOf[[]glua.LValue](reflect.TypeFor[glua.LTable](), "keys")
	stackField = func() uintptr {
		f, ok := reflect.TypeFor[glua.LState]().FieldByName("reg")
		if !ok || f.Type.Kind() != reflect.Pointer {
			panic("lua: gopher-lua's LState.reg is not what it was")
		}
		if fieldOf[[]glua.LValue](f.Type.Elem(), "array") != 0 {
			panic("lua: gopher-lua's registry.array is not what it was")
		}
		return f.Offset
	}()
)

func fieldOf[T any](in reflect.Type, name string) uintptr {
	f, ok := in.FieldByName(name)
	if !ok || f.Type != reflect.TypeFor[T]() {
		panic("lua: gopher-lua's " + in.Name() + "." + name + " is not what it was")
	}
	return f.Offset
}

func arrayOf(t *glua.LTable) []glua.LValue {
	return *(*[]glua.LValue)(unsafe.Add(unsafe.Pointer(t), arrayField))
}

func keysOf(t *glua.LTable) []glua.LValue {
	return *(*[]glua.LValue)(unsafe.Add(unsafe.Pointer(t), keysField))
}

// stackOf is a thread's stack: the first field of what LState.reg points to.
func stackOf(th *glua.LState) []glua.LValue {
	return **(**[]glua.LValue)(unsafe.Add(unsafe.Pointer(th), stackField))
}

// Sizes in bytes, of 64-bit machines. They may be a little high, never far too
// low: a test compares them with the growth of Go's heap.
const (
	slotSize    = 16
	numberSize  = 8
	stringSize  = 16
	tableSize   = 112
	hashSize    = 480 // of the first keys: two small maps and a list
	entrySize   = 96  // of a key
	closureSize = 96
	upvalueSize = 64
	boxSize     = 64
	shortString = 32
)

// walk adds up what can be reached from values.
type walk struct {
	seen map[unsafe.Pointer]struct{}
	todo []glua.LValue
	size int64
}

// reachable is what the script reaches, in bytes. It stops when that is clearly
// too much.
func (r *run) reachable() int64 {
	w := walk{seen: map[unsafe.Pointer]struct{}{}}
	for th := range r.threads {
		w.add(th)
	}
	for _, th := range r.free {
		w.add(th)
	}
	w.add(r.main.Get(glua.GlobalsIndex))
	w.add(r.main.Get(glua.RegistryIndex))
	w.size += int64(cap(r.printed) + cap(r.result))
	for i := 0; len(w.todo) > 0 && w.size <= 2*r.limits.Memory; i++ {
		if i&1023 == 0 && r.stopped.Load() {
			break // the run is over anyway
		}
		v := w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		w.inside(v)
	}
	return w.size
}

func (w *walk) first(p unsafe.Pointer) bool {
	if _, ok := w.seen[p]; ok {
		return false
	}
	w.seen[p] = struct{}{}
	return true
}

// add counts what a value is by itself, and puts down what it holds for later.
func (w *walk) add(v glua.LValue) {
	switch v := v.(type) {
	case glua.LNumber:
		w.size += numberSize
	case glua.LString:
		w.size += stringSize
		if len(v) <= shortString || w.first(unsafe.Pointer(unsafe.StringData(string(v)))) {
			w.size += int64(len(v))
		}
	case *glua.LTable:
		if v != nil && w.first(unsafe.Pointer(v)) {
			w.todo = append(w.todo, v)
		}
	case *glua.LFunction:
		if v != nil && w.first(unsafe.Pointer(v)) {
			w.todo = append(w.todo, v)
		}
	case *glua.LState:
		if v != nil && w.first(unsafe.Pointer(v)) {
			w.todo = append(w.todo, v)
		}
	case *glua.LUserData:
		if w.first(unsafe.Pointer(v)) {
			w.size += boxSize
			if n, ok := v.Value.(exact); ok {
				w.size += int64(len(n))
			}
			w.add(v.Metatable)
		}
	}
}

func (w *walk) inside(v glua.LValue) {
	switch v := v.(type) {
	case *glua.LTable:
		array, keys := arrayOf(v), keysOf(v)
		w.size += tableSize + slotSize*int64(cap(array)) + entrySize*int64(len(keys))
		if len(keys) > 0 {
			w.size += hashSize
		}
		for _, e := range array {
			w.add(e)
		}
		for _, k := range keys {
			w.add(k)
			w.add(v.RawGetH(k))
		}
		w.add(v.Metatable)
	case *glua.LFunction:
		w.size += closureSize
		for _, u := range v.Upvalues {
			if u != nil && w.first(unsafe.Pointer(u)) {
				w.size += upvalueSize
				w.add(u.Value())
			}
		}
		w.add(v.Env)
	case *glua.LState:
		w.size += perThread
		stack := stackOf(v)
		w.size += slotSize * int64(cap(stack))
		for _, e := range stack {
			w.add(e)
		}
	}
}
