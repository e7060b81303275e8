package definition

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"goblin/registry/rawjson"
)

// FixedArguments are arguments that the config decides: each call gets them, whoever makes it.
type FixedArguments []Member

// FixedError says that a client gave an argument that the config decides.
type FixedError struct {
	Argument string // as the client wrote it
	Fixed    string // which it is, or may be read as
}

func (e *FixedError) Error() string {
	if e.Argument != e.Fixed {
		return fmt.Sprintf("argument %q may be read as %q, which Goblin's config decides (overrides); leave it out", e.Argument, e.Fixed)
	}
	return fmt.Sprintf("argument %q is decided by Goblin's config (overrides); leave it out", e.Argument)
}

// Edit is the change that puts the arguments into params of a call, which are in the
// member at path. The error is a *[FixedError] when the client gives one of them, with
// another value or in a spelling that some readers take for it, or says that they are
// something else than an object.
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

// Permits says whether a client may give an argument of that name, whatever its value.
func (f FixedArguments) Permits(name string) error {
	for _, m := range f {
		if isSameName(name, m.Name) {
			return &FixedError{name, m.Name}
		}
	}
	return nil
}

// fillIn returns the arguments of a call with the fixed ones.
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

// isSameName reports whether some JSON reader treats two names as the same. Go's ignores case, and
// others end a name at a NUL.
func isSameName(name, other string) bool {
	if head, _, cut := strings.Cut(name, "\x00"); cut {
		name = head
	}
	return strings.EqualFold(name, other)
}

// equalValues reports whether two values differ at most in their formatting.
func equalValues(a, b []byte) bool {
	return bytes.Equal(a, b) || bytes.Equal(rawjson.AppendCanonical(nil, a), rawjson.AppendCanonical(nil, b))
}

// insertEdit returns the edit that adds a member to obj, an object within outer.
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
