// Overrides does what a config's overrides ask besides changing definitions: it puts
// the arguments that they decide into calls, and says which of them are for nothing. Names
// and definitions are the registry's.

package policy

import (
	"errors"
	"slices"

	"goblin/gateway/jsonrpc"
	"goblin/registry"
	"goblin/registry/definition"
	"goblin/registry/rawjson"
)

// FillOverrides adds to edits of params what puts the arguments for an entry that is overridden into
// the member at path. The error is the client's.
func FillOverrides(e *registry.Entry, params []byte, edits []rawjson.Edit, path ...string) ([]rawjson.Edit, error) {
	if len(e.Override.Fill) == 0 {
		return edits, nil
	}
	one, err := e.Override.Fill.Edit(params, path...)
	if err != nil {
		return nil, refusal(err)
	}
	edits = append(slices.Clone(edits), one)
	slices.SortFunc(edits, func(a, b rawjson.Edit) int { return a.Start - b.Start })
	return edits, nil
}

// FillCompletion is Fill for a request for the values of an argument, which is to be one that the
// client may give.
func FillCompletion(t registry.Target, params []byte, edits []rawjson.Edit) ([]rawjson.Edit, error) {
	if t.Entry == nil || t.Entry.Override == nil {
		return edits, nil
	}
	if name, ok := rawjson.String(rawjson.Path(params, "argument", "name")); ok {
		if err := t.Entry.Override.Fill.Permits(name); err != nil {
			return nil, refusal(err)
		}
	}
	return FillOverrides(t.Entry, params, edits, "context", "arguments")
}

func refusal(err error) error {
	e := jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: %v", err)
	var fixed *definition.FixedError
	if errors.As(err, &fixed) {
		e.Data = rawjson.Object("code", "ARGUMENT_FIXED", "argument", fixed.Argument)
	}
	return e
}
