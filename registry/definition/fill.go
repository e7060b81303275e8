package definition

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"goblin/registry/rawjson"
)

// FixedArguments are arguments that the config adds to each call.
type FixedArguments []Member

// FixedError is the error for a client that sets an argument fixed by the config.
type FixedError struct {
	Argument string // as the client wrote it
	Fixed    string // the fixed argument that it matches
}

func (e *FixedError) Error() string {
	if e.Argument != e.Fixed {
		return fmt.Sprintf("argument %q can be mistaken for %q, which Goblin's config sets (overrides); omit it", e.Argument, e.Fixed)
	}
	return fmt.Sprintf("argument %q is set by Goblin's config (overrides); omit it", e.Argument)
}

// Edit returns the edit that adds the arguments to params of a call, in the member at
// path. It returns a *[FixedError] if the client sets one of them to another value or in
// an ambiguous spelling. It returns another error if a member on the path is not an
// object.
func (f FixedArguments) Edit(params []byte, path ...string) (rawjson.Edit, error) {
	obj := params
	for i, name := range path {
		if !rawjson.IsObject(obj) {
			return rawjson.Edit{}, fmt.Errorf("member %q must be an object", strings.Join(path[:i], "."))
		}
		inner := rawjson.Get(obj, name)
		if inner == nil {
			value, err := f.fillIn([]byte("{}"))
			for _, outer := range slices.Backward(path[i+1:]) {
				value = rawjson.AppendMember([]byte{'{'}, rawjson.Quote(outer), value)
				value = append(value, '}')
			}
			return insertEdit(params, obj, name, value), err
		}
		obj = inner
	}
	if string(obj) == "null" {
		value, err := f.fillIn([]byte("{}"))
		return rawjson.ReplaceEdit(params, obj, value), err
	}
	if !rawjson.IsObject(obj) {
		return rawjson.Edit{}, fmt.Errorf("member %q must be an object", strings.Join(path, "."))
	}
	value, err := f.fillIn(obj)
	return rawjson.ReplaceEdit(params, obj, value), err
}

// Permits returns an error if clients must not set an argument of this name to any value.
func (f FixedArguments) Permits(name string) error {
	for _, m := range f {
		if isSameName(name, m.Name) {
			return &FixedError{name, m.Name}
		}
	}
	return nil
}

func (f FixedArguments) fillIn(arguments []byte) ([]byte, error) {
	for k, v := range rawjson.Members(arguments) {
		name, _ := rawjson.String(k)
		for _, m := range f {
			if !isSameName(name, m.Name) {
				continue
			}
			if name != m.Name || !equalValues(v, m.Value) {
				return nil, &FixedError{name, m.Name}
			}
		}
	}
	for _, m := range f {
		arguments = setMember(arguments, m.Name, m.Value)
	}
	return arguments, nil
}

// isSameName reports whether some JSON reader treats two names as the same: Go ignores
// case, others end a name at a NUL.
func isSameName(name, other string) bool {
	if head, _, cut := strings.Cut(name, "\x00"); cut {
		name = head
	}
	return strings.EqualFold(name, other)
}

func equalValues(a, b []byte) bool {
	return bytes.Equal(a, b) || bytes.Equal(rawjson.AppendCanonical(nil, a), rawjson.AppendCanonical(nil, b))
}

func insertEdit(outer, obj []byte, name string, value []byte) rawjson.Edit {
	at := rawjson.Offset(outer, obj) + bytes.LastIndexByte(obj, '}')
	var text []byte
	for range rawjson.Members(obj) {
		text = append(text, ',')
		break
	}
	text = append(rawjson.AppendString(text, name), ':')
	return rawjson.Edit{Start: at, End: at, Text: append(text, value...)}
}
