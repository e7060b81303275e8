package savedcall

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"goblin/registry/rawjson"
	"goblin/registry/termtext"
)

// maxResolved is the largest size of all values with variables of a call, in bytes.
const maxResolved = 16 << 20

// Request is a call whose variables have values.
type Request struct {
	Call   *Call
	Method string
	Params json.RawMessage

	checks []Check // with values
	shown  []Check // with the values of captures; those of the environment may be secret
}

// Resolve replaces the variables of a call: in its name, arguments and expected values.
// The error names each missing variable as "path:line: what".
//
// A value that is just a variable keeps the JSON type of its capture. A value of the
// environment or a default is a text. Without quotes in YAML, it is a number, a boolean or
// null if JSON spells one so. Arguments of prompts are always texts.
func (c *Call) Resolve(vars Variables) (*Request, error) {
	r := &resolver{parser: parser{path: c.Path}, vars: vars}
	resolved := Call{Kind: c.Kind, Name: r.text(c.Line, c.Name, nil), Arguments: r.arguments(c)}
	request := &Request{Call: c, Method: c.Kind.Method(), Params: resolved.Params()}
	public := &resolver{vars: Variables{Captures: vars.Captures, Env: func(name string) (string, bool) { return "${" + name + "}", true }}}
	for _, check := range c.Expect {
		request.checks = append(request.checks, r.check(check))
		request.shown = append(request.shown, public.check(check))
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return request, nil
}

func (r *resolver) check(c Check) Check {
	c.Equals = r.json(nil, c.Equals, place{notes: c.notes, line: c.Line})
	c.Matches = r.text(c.Line, c.Matches, regexp.QuoteMeta)
	return c
}

type resolver struct {
	parser
	vars Variables
	seen map[mistake]bool
	size int // of all values so far
}

// place is the place of a value below a root with notes.
type place struct {
	notes notes
	at    string // JSON pointer
	line  int    // without a note
}

func (p place) step(name string) place {
	p.at += "/" + escapePointer(name)
	return p
}

func (r *resolver) arguments(c *Call) json.RawMessage {
	if c.Arguments == nil {
		return nil
	}
	all := r.json(nil, c.Arguments, place{notes: c.notes, line: c.Line})
	if c.Kind != KindPrompt || all == nil {
		return all
	}
	texts := []byte{'{'}
	for key, value := range rawjson.Members(all) {
		texts = rawjson.AppendMember(texts, key, rawjson.Quote(textOf(value)))
	}
	return append(texts, '}')
}

// textOf returns the content of a string, or the JSON text of another value.
func textOf(value []byte) string {
	if s, ok := rawjson.String(value); ok {
		return s
	}
	return string(value)
}

// json appends a value with the values of its variables.
func (r *resolver) json(dst, v []byte, at place) []byte {
	switch {
	case len(v) == 0:
		return dst
	case rawjson.IsObject(v):
		dst = append(dst, '{')
		for key, value := range rawjson.Members(v) {
			name, _ := rawjson.String(key)
			if dst[len(dst)-1] != '{' {
				dst = append(dst, ',')
			}
			dst = append(append(dst, key...), ':')
			dst = r.json(dst, value, at.step(name))
		}
		return append(dst, '}')
	case rawjson.IsArray(v):
		dst = append(dst, '[')
		i := 0
		for value := range rawjson.Elements(v) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = r.json(dst, value, at.step(strconv.Itoa(i)))
			i++
		}
		return append(dst, ']')
	}
	s, ok := rawjson.String(v)
	if !ok || !strings.Contains(s, "${") {
		return append(dst, v...)
	}
	n, ok := at.notes[at.at]
	if !ok {
		n.line = at.line
	}
	return append(dst, r.string(s, n, 0)...)
}

// string returns the JSON value of a text with variables.
func (r *resolver) string(s string, n note, depth int) []byte {
	if r.size > maxResolved {
		return []byte("null") // reported
	}
	name, lone := loneVariable(s)
	if !lone || depth > maxNesting {
		return rawjson.Quote(r.text(n.line, s, nil))
	}
	if value, ok := r.vars.Captures[name]; ok {
		r.grow(n.line, len(value))
		return value
	}
	if value, ok := r.env(name); ok && value != "" {
		r.grow(n.line, len(value))
		return r.typed(value, n)
	}
	if _, fallback, ok := strings.Cut(s[2:len(s)-1], ":-"); ok {
		if _, nested := loneVariable(fallback); nested {
			return r.string(fallback, n, depth+1)
		}
	}
	return r.typed(r.text(n.line, s, nil), n)
}

// typed returns the JSON value of a text from the environment.
func (r *resolver) typed(value string, n note) []byte {
	if text := []byte(value); n.plain && rawjson.Valid(text) == nil && strings.Trim(value, " \t\r\n") == value {
		if !rawjson.IsObject(text) && !rawjson.IsArray(text) && !rawjson.IsString(text) {
			return text
		}
	}
	return rawjson.Quote(value)
}

func (r *resolver) env(name string) (string, bool) {
	if r.vars.Env == nil {
		return "", false
	}
	return r.vars.Env(name)
}

// text replaces variables in a text. quote is applied to each value if it is not nil.
func (r *resolver) text(line int, s string, quote func(string) string) string {
	out, err := expand(s, 0, func(name string, hasDefault bool) (string, bool) {
		value, ok := r.env(name)
		if captured, found := r.vars.Captures[name]; found {
			value, ok = textOf(captured), true
		} else if value == "" && hasDefault {
			return "", false
		}
		if !ok {
			if !hasDefault {
				r.missing(line, name)
			}
			return "", false
		}
		if quote != nil {
			value = quote(value)
		}
		return value, true
	})
	if err != nil {
		r.failf(line, "%v", err)
	}
	r.grow(line, len(out))
	return out
}

func (r *resolver) grow(line, n int) {
	if r.size <= maxResolved && r.size+n > maxResolved {
		r.failf(line, "the call is larger than 16 MiB with its variables")
	}
	r.size += n
}

func (r *resolver) missing(line int, name string) {
	m := mistake{line, name}
	if r.seen == nil {
		r.seen = make(map[mistake]bool)
	}
	if !r.seen[m] {
		r.seen[m] = true
		r.failf(line, "${%s} is not set and no earlier file of the run captures it; set it or write ${%s:-default}", name, name)
	}
}

// Captures returns the values that later files can use. It fails if a path does not
// select exactly one value.
func (r *Request) Captures(a Answer) (map[string]json.RawMessage, error) {
	if len(r.Call.Capture) == 0 {
		return nil, nil
	}
	doc, err := r.document(a)
	if err != nil {
		return nil, err
	}
	all := make(map[string]json.RawMessage)
	var errs []error
	for _, c := range r.Call.Capture {
		value, err := doc.one(c.Path)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: capture %q: %s %w", termtext.Line(r.Call.Path), c.Line, c.Name, termtext.Line(c.Path), err))
			continue
		}
		all[c.Name] = value
	}
	return all, errors.Join(errs...)
}
