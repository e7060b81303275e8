package interpreter

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"

	"goblin/meta/lua/wire"
	"goblin/registry/rawjson"
)

const maxDepth = 500 // arrays and objects within each other

// exact is the text of an integer that no Lua number holds exactly.
type exact string

// decode makes a Lua value of JSON text. Objects keep their order, arrays get
// the metatable that marks them, null becomes the value null.
func (r *run) decode(L *glua.LState, text []byte) (glua.LValue, error) {
	d := decoder{run: r, L: L, text: text}
	if err := rawjson.Valid(text); err != nil {
		return nil, err
	}
	return d.value(0)
}

// decoder reads text that is known to be valid.
type decoder struct {
	run  *run
	L    *glua.LState
	text []byte
	at   int
}

func (d *decoder) space() {
	for d.at < len(d.text) && strings.IndexByte(" \t\r\n", d.text[d.at]) >= 0 {
		d.at++
	}
}

// sign skips one of the signs that stand between values, and says which.
func (d *decoder) sign() byte {
	d.space()
	c := d.text[d.at]
	d.at++
	return c
}

func (d *decoder) value(depth int) (glua.LValue, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("JSON is more than %d deep", maxDepth)
	}
	d.run.check(d.L)
	d.space()
	switch c := d.text[d.at]; c {
	case '{':
		return d.object(depth)
	case '[':
		return d.array(depth)
	case '"':
		return glua.LString(d.str()), nil
	case 't':
		d.at += len("true")
		return glua.LTrue, nil
	case 'f':
		d.at += len("false")
		return glua.LFalse, nil
	case 'n':
		d.at += len("null")
		return d.run.null, nil
	default:
		return d.number(), nil
	}
}

func (d *decoder) object(depth int) (glua.LValue, error) {
	t := d.L.CreateTable(0, 4)
	for d.at++; ; {
		if d.space(); d.text[d.at] == '}' {
			d.at++
			return t, nil
		}
		d.space()
		key := d.str()
		d.sign() // colon
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		t.RawSetString(key, v)
		if d.sign() == '}' {
			return t, nil
		}
	}
}

func (d *decoder) array(depth int) (glua.LValue, error) {
	t := d.L.CreateTable(4, 0)
	t.Metatable = d.run.arrayMeta
	for d.at++; ; {
		if d.space(); d.text[d.at] == ']' {
			d.at++
			return t, nil
		}
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		t.Append(v)
		if d.sign() == ']' {
			return t, nil
		}
	}
}

func (d *decoder) str() string {
	start := d.at
	for d.at++; d.text[d.at] != '"'; d.at++ {
		if d.text[d.at] == '\\' {
			d.at++
		}
	}
	d.at++
	s, _ := rawjson.String(d.text[start:d.at])
	return strings.Clone(s)
}

func (d *decoder) number() glua.LValue {
	start := d.at
	for d.at < len(d.text) && strings.IndexByte("+-.eE0123456789", d.text[d.at]) >= 0 {
		d.at++
	}
	text := string(d.text[start:d.at])
	f, _ := strconv.ParseFloat(text, 64)
	if len(text) > 15 && !strings.ContainsAny(text, ".eE") && strconv.FormatFloat(f, 'f', -1, 64) != text {
		return d.run.exact(text)
	}
	return glua.LNumber(f)
}

func (r *run) exact(text string) glua.LValue {
	return &glua.LUserData{Value: exact(text), Metatable: r.exactMeta}
}

// orNull is v, or null for nil, which no table can hold.
func (r *run) orNull(v glua.LValue) glua.LValue {
	if v == glua.LNil {
		return r.null
	}
	return v
}

// encoder writes Lua values as JSON of at most most bytes.
type encoder struct {
	*run
	out  []byte
	most int64
	in   map[*glua.LTable]bool // tables around the one at hand
}

var errLong = errors.New("is too long")

// encode returns a value as JSON; what the script has no memory for ends it.
func (r *run) encode(L *glua.LState, v glua.LValue) ([]byte, error) {
	e := encoder{run: r, most: r.start.Memory}
	err := e.value(v)
	if errors.Is(err, errLong) {
		r.fail(L, wire.Large(r.start.Memory))
	}
	return e.out, err
}

// encodeOutput returns a value as JSON; its length is taken from the output. It
// raises no error.
func (r *run) encodeOutput(v glua.LValue) ([]byte, error) {
	r.written -= int64(len(r.result)) // which it replaces
	r.setResult(nil)
	e := encoder{run: r, most: r.start.Output - r.written}
	err := e.value(v)
	if (err == nil || errors.Is(err, errLong)) && !r.write(len(e.out)) {
		return nil, r.err.Load()
	}
	return e.out, err
}

func (e *encoder) add(s string) error {
	e.out = append(e.out, s...)
	return e.fits()
}

func (e *encoder) str(s string) error {
	e.out = rawjson.AppendString(e.out, s)
	return e.fits()
}

func (e *encoder) fits() error {
	if int64(len(e.out)) > e.most {
		return errLong
	}
	return nil
}

func (e *encoder) value(v glua.LValue) error {
	switch v := v.(type) {
	case *glua.LNilType:
		return e.add("null")
	case glua.LBool:
		return e.add(v.String())
	case glua.LNumber:
		text, err := numberText(float64(v))
		if err != nil {
			return err
		}
		return e.add(text)
	case glua.LString:
		return e.str(string(v))
	case *glua.LUserData:
		if v == e.null {
			return e.add("null")
		}
		if n, ok := v.Value.(exact); ok {
			return e.add(string(n))
		}
	case *glua.LTable:
		if srv := e.catalog.byTable[v]; srv != nil {
			return fmt.Errorf("cannot be JSON: it holds the table of server %q", srv.name)
		}
		return e.table(v)
	}
	return fmt.Errorf("cannot be JSON: it holds a %s", v.Type())
}

func numberText(f float64) (string, error) {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return "", errors.New("cannot be JSON: it holds a number that is not finite")
	case f == math.Trunc(f) && math.Abs(f) <= 1<<53:
		return strconv.FormatInt(int64(f), 10), nil
	}
	text, err := json.Marshal(f)
	return string(text), err
}

func (e *encoder) table(t *glua.LTable) error {
	if e.in[t] {
		return errors.New("cannot be JSON: a table holds itself")
	}
	if len(e.in) > maxDepth {
		return fmt.Errorf("cannot be JSON: more than %d deep", maxDepth)
	}
	if e.in == nil {
		e.in = map[*glua.LTable]bool{}
	}
	e.in[t] = true
	defer delete(e.in, t)
	if n, ok := e.length(t); ok {
		return e.elements(t, n)
	}
	return e.members(t)
}

// length says whether a table is an array, and how long: it is marked as one,
// or all its keys are whole numbers from 1 with few gaps.
func (e *encoder) length(t *glua.LTable) (int, bool) {
	n, filled := 0, 0
	for k, v := t.Next(glua.LNil); k != glua.LNil; k, v = t.Next(k) {
		i, ok := k.(glua.LNumber)
		if !ok || i < 1 || i > glua.LNumber(glua.MaxArrayIndex) || i != glua.LNumber(int(i)) {
			return 0, false // a key that is no index
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
	if err := e.add("["); err != nil {
		return err
	}
	for i := 1; i <= n; i++ {
		if i > 1 {
			if err := e.add(","); err != nil {
				return err
			}
		}
		if err := e.value(t.RawGetInt(i)); err != nil {
			return err
		}
	}
	return e.add("]")
}

func (e *encoder) members(t *glua.LTable) error {
	if err := e.add("{"); err != nil {
		return err
	}
	first := true
	for k, v := t.Next(glua.LNil); k != glua.LNil; k, v = t.Next(k) {
		var name string
		switch k := k.(type) {
		case glua.LString:
			name = string(k)
		case glua.LNumber:
			name = k.String()
			if t.RawGetString(name) != glua.LNil {
				return fmt.Errorf("cannot be JSON: a table has the key %s as number and as string", name)
			}
		default:
			return fmt.Errorf("cannot be JSON: a table has a %s as key", k.Type())
		}
		if !first {
			if err := e.add(","); err != nil {
				return err
			}
		}
		first = false
		if err := e.str(name); err != nil {
			return err
		}
		if err := e.add(":"); err != nil {
			return err
		}
		if err := e.value(v); err != nil {
			return err
		}
	}
	return e.add("}")
}

// exactOf returns the text of an exact integer.
func exactOf(v glua.LValue) (exact, bool) {
	u, ok := v.(*glua.LUserData)
	if !ok {
		return "", false
	}
	n, ok := u.Value.(exact)
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

// compareExact compares the texts of two integers, as JSON writes them.
func compareExact(a, b string) int {
	minusA, minusB := strings.HasPrefix(a, "-"), strings.HasPrefix(b, "-")
	if minusA != minusB {
		if minusA {
			return -1
		}
		return 1
	}
	c := cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	if minusA {
		return -c
	}
	return c
}
