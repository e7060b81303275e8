package form

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"goblin/gateway/display"
)

const (
	maxSchema = 1 << 20 // bytes that are compiled
	maxTangle = 1 << 14 // schemas that apply to one value, references followed
)

// validator checks the whole value against the server's schema.
type validator struct{ schema *jsonschema.Schema }

// closed loads nothing: a server's schema does not choose what this process
// reads. Metaschemas are built in.
type closed struct{}

func (closed) Load(string) (any, error) {
	return nil, errors.New("other documents are not loaded")
}

// newValidator compiles a schema. A schema that would take a long time to
// apply is refused like one that does not compile.
func newValidator(raw json.RawMessage) (v *validator, err error) {
	if len(raw) > maxSchema {
		return nil, errors.New("it is too large")
	}
	defer func() {
		// A library at work on foreign input; the form goes on without it.
		if p := recover(); p != nil {
			v, err = nil, errors.New("it cannot be understood")
		}
	}()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("read it: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(closed{})
	const name = "mem:///schema.json"
	if err := c.AddResource(name, doc); err != nil {
		return nil, err
	}
	s, err := c.Compile(name)
	if err != nil {
		return nil, err
	}
	t := tangle{cost: make(map[*jsonschema.Schema]int)}
	t.todo = []*jsonschema.Schema{s}
	for len(t.todo) > 0 {
		next := t.todo[0]
		t.todo = t.todo[1:]
		t.walk(next)
	}
	if t.most >= maxTangle {
		return nil, errors.New("it is too tangled")
	}
	return &validator{s}, nil
}

// tangle counts how many schemas apply to one and the same value: alternatives
// that refer to each other multiply, and would hold up the screen.
type tangle struct {
	cost map[*jsonschema.Schema]int
	most int
	todo []*jsonschema.Schema // what applies to other values
}

func (t *tangle) walk(s *jsonschema.Schema) int {
	if s == nil {
		return 0
	}
	if n, ok := t.cost[s]; ok {
		return n
	}
	t.cost[s] = 1 // seen again within itself: validation stops there
	n := 1
	here := []*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else}
	here = append(append(append(here, s.AllOf...), s.AnyOf...), s.OneOf...)
	if s.DynamicRef != nil {
		here = append(here, s.DynamicRef.Ref)
	}
	for _, d := range s.DependentSchemas {
		here = append(here, d)
	}
	for _, d := range s.Dependencies {
		if sub, ok := d.(*jsonschema.Schema); ok {
			here = append(here, sub)
		}
	}
	for _, sub := range here {
		n = min(n+t.walk(sub), maxTangle)
	}
	t.cost[s] = n
	t.most = max(t.most, n)
	t.parts(s)
	return n
}

// parts leaves for later what applies to members and items.
func (t *tangle) parts(s *jsonschema.Schema) {
	inner := append([]*jsonschema.Schema{s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems}, s.PrefixItems...)
	for _, sub := range s.Properties {
		inner = append(inner, sub)
	}
	for _, sub := range s.PatternProperties {
		inner = append(inner, sub)
	}
	for _, one := range []any{s.AdditionalProperties, s.AdditionalItems, s.Items} {
		switch v := one.(type) {
		case *jsonschema.Schema:
			inner = append(inner, v)
		case []*jsonschema.Schema:
			inner = append(inner, v...)
		}
	}
	t.todo = append(t.todo, inner...)
}

// problem is something wrong at a member of the value; name is "" for the
// whole.
type problem struct{ name, text string }

// check validates a value; the first problem of each member is told.
func (v *validator) check(value json.RawMessage) (found []problem) {
	if v == nil {
		return nil
	}
	defer func() {
		if recover() != nil {
			found = nil // what the library cannot check, the server will
		}
	}()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil || beyond(doc) {
		return nil
	}
	var wrong *jsonschema.ValidationError
	if !errors.As(v.schema.Validate(doc), &wrong) {
		return nil
	}
	seen := make(map[string]bool)
	printer := message.NewPrinter(language.English)
	leaves(wrong, 0, func(e *jsonschema.ValidationError) {
		for _, p := range problemsOf(e, printer) {
			if !seen[p.name] && len(found) < MaxFields {
				seen[p.name] = true
				found = append(found, p)
			}
		}
	})
	return found
}

// leaves visits the errors that have no further cause.
func leaves(e *jsonschema.ValidationError, depth int, visit func(*jsonschema.ValidationError)) {
	if len(e.Causes) == 0 || depth > 64 {
		visit(e)
		return
	}
	for _, c := range e.Causes {
		leaves(c, depth+1, visit)
	}
}

func problemsOf(e *jsonschema.ValidationError, printer *message.Printer) []problem {
	if len(e.InstanceLocation) == 0 {
		if missing, ok := e.ErrorKind.(*kind.Required); ok {
			var out []problem
			for _, name := range missing.Missing {
				out = append(out, problem{name, "required"})
			}
			return out
		}
		return []problem{{"", display.Line(e.ErrorKind.LocalizedString(printer))}}
	}
	text := display.Line(e.ErrorKind.LocalizedString(printer))
	if rest := e.InstanceLocation[1:]; len(rest) > 0 {
		text = "at /" + display.Line(strings.Join(rest, "/")) + ": " + text
	}
	return []problem{{e.InstanceLocation[0], text}}
}

// beyond reports numbers so large that computing with them takes seconds.
func beyond(v any) bool {
	switch v := v.(type) {
	case json.Number:
		_, err := numeral(v.String())
		return err != nil
	case []any:
		for _, item := range v {
			if beyond(item) {
				return true
			}
		}
	case map[string]any:
		for _, item := range v {
			if beyond(item) {
				return true
			}
		}
	}
	return false
}
