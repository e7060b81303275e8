package form

import (
	"encoding/json"

	"goblin/tui/textfield"
)

// Kind is the kind of a field.
type Kind uint8

// The kinds of fields.
const (
	Text      Kind = iota
	Number         // sent as typed
	Integer        // a whole number of any size, sent as typed
	Bool           // true, false or, if optional, not sent
	Enum           // one of Options
	MultiEnum      // any of Options
	List           // scalars of kind Item, one per line
	JSON           // any JSON
	Object         // an object, whose members are fields
	Array          // a list, whose items are fields
	Choice         // one of several schemas
)

// Option is one possible value of a field.
type Option struct {
	Value json.RawMessage
	Label string // for display
}

// Field describes one value to fill in. Its texts are untrusted.
type Field struct {
	Name, Title, Description string
	Kind                     Kind
	Required                 bool
	Format, Pattern          string // of strings, also those of a List
	PatternHelp              string // in words; "" shows the pattern itself
	Min, Max                 *float64
	MinLen, MaxLen           *int     // characters of a string, items of a MultiEnum or List
	Options                  []Option // of Enum and MultiEnum
	Item                     Kind     // of a List: Text, Number or Integer
	Default                  json.RawMessage
	Schema                   json.RawMessage // shown beside JSON
	Completes                bool            // request completions while typing
	OneLine                  bool            // never multi-line; pasted breaks become spaces
	Mask                     textfield.Mask  // of a Text or List; nil: all is readable
	// Inline merges the value's members into the surrounding object, which has
	// alternatives for some.
	Inline bool

	// Created on demand, because schemas may contain themselves.
	members      func() []Field // of an Object
	items        *Field         // of an Array
	alternatives func() []Field // of a Choice, as many as Options
}

// Members returns the fields of an Object, the alternatives of a Choice, or an Array's
// item.
func (f *Field) Members() []Field {
	switch {
	case f.members != nil:
		return f.members()
	case f.alternatives != nil:
		return f.alternatives()
	case f.items != nil:
		return []Field{*f.items}
	}
	return nil
}

// String names a kind for users.
func (k Kind) String() string {
	switch k {
	case Text:
		return "text"
	case Number:
		return "number"
	case Integer:
		return "integer"
	case Bool:
		return "yes or no"
	case Enum:
		return "one of several"
	case MultiEnum:
		return "some of several"
	case List, Array:
		return "list"
	case Object:
		return "object"
	case Choice:
		return "one of several types"
	default:
		return "JSON"
	}
}
