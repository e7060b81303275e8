package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"

	"goblin/registry/rawjson"
)

const maxDepth = 500 // nesting of arrays and objects

// largeText is the length of a text whose value may need much memory, in bytes.
const largeText = 4 << 10

// exactInteger is the text of an integer that no Lua number can represent exactly.
type exactInteger string

// decode converts JSON text to a Lua value. Objects keep their order, arrays get a
// marking metatable, and null becomes the value null. Exceeding the memory stops the
// script.
func (r *run) decode(L *glua.LState, text []byte) (glua.LValue, error) {
	if err := rawjson.Valid(text); err != nil {
		return nil, err
	}
	v, err := r.value(L, bytes.TrimSpace(text), 0)
	if len(text) >= largeText {
		r.enforceMemory()
		if e := r.failure(); e != nil {
			return nil, e
		}
	}
	return v, err
}

func (r *run) value(L *glua.LState, text []byte, depth int) (glua.LValue, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("JSON is nested more than %d levels deep", maxDepth)
	}
	switch text[0] {
	case '{':
		t := L.CreateTable(0, 4)
		for k, member := range rawjson.Members(text) {
			v, err := r.value(L, member, depth+1)
			if err != nil {
				return nil, err
			}
			name, _ := rawjson.String(k)
			t.RawSetString(strings.Clone(name), v)
		}
		return t, nil
	case '[':
		t := L.CreateTable(4, 0)
		t.Metatable = r.arrayMeta
		for element := range rawjson.Elements(text) {
			v, err := r.value(L, element, depth+1)
			if err != nil {
				return nil, err
			}
			t.Append(v)
		}
		return t, nil
	case '"':
		s, _ := rawjson.String(text)
		return glua.LString(strings.Clone(s)), nil
	case 't', 'f':
		return glua.LBool(text[0] == 't'), nil
	case 'n':
		return r.null, nil
	}
	return r.number(string(text)), nil
}

func (r *run) number(text string) glua.LValue {
	f, _ := strconv.ParseFloat(text, 64)
	if len(text) > 15 && !strings.ContainsAny(text, ".eE") && strconv.FormatFloat(f, 'f', -1, 64) != text {
		return &glua.LUserData{Value: exactInteger(text), Metatable: r.exactMeta}
	}
	return glua.LNumber(f)
}

// orNull replaces nil, which tables cannot contain, by null.
func (r *run) orNull(v glua.LValue) glua.LValue {
	if v == glua.LNil {
		return r.null
	}
	return v
}

type encoder struct {
	*run
	out []byte
	in  map[*glua.LTable]bool // tables that contain the current one
}

// encode converts a value to JSON. Exceeding the memory stops the script.
func (r *run) encode(v glua.LValue) ([]byte, error) {
	e := encoder{run: r, in: map[*glua.LTable]bool{}}
	err := e.value(v)
	return e.out, err
}

func (e *encoder) value(v glua.LValue) (err error) {
	switch v := v.(type) {
	case *glua.LNilType:
		e.out = append(e.out, "null"...)
	case glua.LBool:
		e.out = append(e.out, v.String()...)
	case glua.LNumber:
		e.out, err = appendNumber(e.out, float64(v))
	case glua.LString:
		e.out = rawjson.AppendString(e.out, string(v))
	case *glua.LTable:
		err = e.table(v)
	default:
		n, ok := exactOf(v)
		switch {
		case v == e.null:
			e.out = append(e.out, "null"...)
		case ok:
			e.out = append(e.out, n...)
		default:
			err = fmt.Errorf("cannot be JSON: it contains a %s", v.Type())
		}
	}
	if err == nil && int64(len(e.out)) > e.start.Memory {
		e.stop(MemoryError(e.start.Memory))
		return e.failure()
	}
	return err
}

func appendNumber(out []byte, f float64) ([]byte, error) {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return nil, errors.New("cannot be JSON: it contains a number that is not finite")
	case f == math.Trunc(f) && math.Abs(f) <= 1<<53:
		return strconv.AppendInt(out, int64(f), 10), nil
	}
	text, err := json.Marshal(f)
	return append(out, text...), err
}

func (e *encoder) table(t *glua.LTable) error {
	if srv := e.catalog.byTable[t]; srv != nil {
		return fmt.Errorf("cannot be JSON: it contains the table of server %q", srv.name)
	}
	if e.in[t] {
		return errors.New("cannot be JSON: a table contains itself")
	}
	if len(e.in) > maxDepth {
		return fmt.Errorf("cannot be JSON: nested more than %d levels deep", maxDepth)
	}
	e.in[t] = true
	defer delete(e.in, t)
	if n, ok := e.length(t); ok {
		return e.elements(t, n)
	}
	return e.members(t)
}

// length returns an array's length. A table is an array if it is marked, or if its keys
// are integers from 1 with few gaps.
func (e *encoder) length(t *glua.LTable) (int, bool) {
	n, filled := 0, 0
	for k, v := t.Next(glua.LNil); k != glua.LNil; k, v = t.Next(k) {
		i, ok := k.(glua.LNumber)
		if !ok || i < 1 || i > glua.LNumber(glua.MaxArrayIndex) || i != glua.LNumber(int(i)) {
			return 0, false // not an index
		}
		if v != glua.LNil {
			n, filled = max(n, int(i)), filled+1
		}
	}
	if t.Metatable == e.arrayMeta {
		return n, true
	}
	return n, n > 0 && n <= 2*filled+8
}

func (e *encoder) elements(t *glua.LTable, n int) error {
	e.out = append(e.out, '[')
	for i := 1; i <= n; i++ {
		if i > 1 {
			e.out = append(e.out, ',')
		}
		if err := e.value(t.RawGetInt(i)); err != nil {
			return err
		}
	}
	e.out = append(e.out, ']')
	return nil
}

func (e *encoder) members(t *glua.LTable) error {
	e.out = append(e.out, '{')
	first := true
	for k, v := t.Next(glua.LNil); k != glua.LNil; k, v = t.Next(k) {
		if k.Type() != glua.LTString && k.Type() != glua.LTNumber {
			return fmt.Errorf("cannot be JSON: a table has a %s as key", k.Type())
		}
		if k.Type() == glua.LTNumber && t.RawGetString(k.String()) != glua.LNil {
			return fmt.Errorf("cannot be JSON: a table has the key %s both as a number and as a string", k)
		}
		if !first {
			e.out = append(e.out, ',')
		}
		first = false
		e.out = append(rawjson.AppendString(e.out, k.String()), ':')
		if err := e.value(v); err != nil {
			return err
		}
	}
	e.out = append(e.out, '}')
	return nil
}

func exactOf(v glua.LValue) (exactInteger, bool) {
	u, ok := v.(*glua.LUserData)
	if !ok {
		return "", false
	}
	n, ok := u.Value.(exactInteger)
	return n, ok
}

var arithmetic = map[string]func(a, b float64) float64{
	"__add": func(a, b float64) float64 { return a + b },
	"__sub": func(a, b float64) float64 { return a - b },
	"__mul": func(a, b float64) float64 { return a * b },
	"__div": func(a, b float64) float64 { return a / b },
	"__mod": func(a, b float64) float64 { return a - math.Floor(a/b)*b },
	"__pow": math.Pow,
}
