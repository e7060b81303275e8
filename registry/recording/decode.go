package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/registry/termtext"
)

// lineMember is a member of [Line] and its place.
type lineMember struct {
	index int
	want  string // the expected type, for messages
}

// lineMembers returns the members of [Line] by name.
var lineMembers = sync.OnceValue(func() map[string]lineMember {
	all := make(map[string]lineMember)
	of := reflect.TypeFor[Line]()
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		all[name] = lineMember{index: i, want: typeName(f.Type)}
	}
	return all
})

func typeName(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[json.RawMessage]() || t == reflect.TypeFor[*Body]():
		return "a value"
	case t.Kind() == reflect.String:
		return "a string"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Slice:
		return "an array"
	case t.Kind() == reflect.Map:
		return "an object"
	case t.Kind() == reflect.Struct:
		return "a time such as 2026-01-02T03:04:05Z"
	case t.Kind() == reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// decodeLine decodes a line. Member names are case-sensitive; a member must not occur
// twice. It is several times as fast as encoding/json. If owned is set, values may be
// slices of text; otherwise they are copies.
func decodeLine(text []byte, owned bool) (*Line, error) {
	check := rawjson.Checker{Depth: maxDepth}
	if err := check.End(text); err != nil {
		return nil, syntaxError(err)
	}
	if !rawjson.IsObject(text) {
		return nil, errors.New("not a JSON object")
	}
	l := new(Line)
	of, all := reflect.ValueOf(l).Elem(), lineMembers()
	var seen [128]bool
	for key, value := range rawjson.Members(text) {
		m, known := all[string(key.Name())]
		switch {
		case !known:
			continue
		case seen[m.index]:
			return nil, fmt.Errorf("member %q occurs twice", key.Name())
		}
		seen[m.index] = true
		if string(value) == "null" {
			continue
		}
		// A small value must not keep a long line in memory.
		if !setMember(of.Field(m.index).Addr().Interface(), value, owned && len(value) > len(text)/2) {
			return nil, fmt.Errorf("member %q must be %s", key.Name(), m.want)
		}
	}
	return l, nil
}

func syntaxError(err error) error {
	var syntax *rawjson.SyntaxError
	switch {
	case !errors.As(err, &syntax):
		return err
	case syntax.Depth > 0:
		return fmt.Errorf("JSON is nested deeper than %d levels", syntax.Depth)
	}
	return fmt.Errorf("invalid JSON at byte %d: %s", syntax.Offset+1, syntax.Reason)
}

// setMember decodes a value and reports whether it has the type of to.
func setMember(to any, value []byte, owned bool) (ok bool) {
	var err error
	switch to := to.(type) {
	case *string:
		*to, ok = rawjson.String(value)
		*to = cut(*to)
		return ok
	case *[]registry.RuleEvent:
		err = json.Unmarshal(value, to)
		*to = slices.Clone((*to)[:min(len(*to), maxRules)])
		for i := range *to {
			(*to)[i].Text = cut((*to)[i].Text)
		}
	case *Type:
		text, ok := rawjson.String(value)
		*to = Type(text)
		return ok
	case *uint64:
		*to, err = strconv.ParseUint(string(value), 10, 64)
	case *int:
		*to, err = strconv.Atoi(string(value))
	case *float64:
		*to, err = strconv.ParseFloat(string(value), 64)
	case *bool:
		*to = string(value) == "true"
		return *to || string(value) == "false"
	case *json.RawMessage:
		*to = ownedValue(value, owned)
	case **Body:
		*to = new(Body)
		err = (*to).set(value, owned)
	default:
		err = json.Unmarshal(value, to)
	}
	return err == nil
}

// Limits of a line. Recorders do not exceed them.
const (
	maxText  = registry.MaxURI + 8<<10 // bytes of a name or error
	maxRules = 32                      // steps of rules
)

// cut limits a text and does not keep the rest in memory.
func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.Clone(termtext.Truncate(s, maxText))
}

func ownedValue(value []byte, owned bool) json.RawMessage {
	if owned {
		return value[:len(value):len(value)]
	}
	return bytes.Clone(value)
}
