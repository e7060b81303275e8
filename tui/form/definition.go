package form

import "encoding/json"

// Kind is how a field is filled in.
type Kind uint8

// The kinds of fields.
const (
	Text      Kind = iota // a string
	Number                // a JSON number, kept as typed
	Integer               // a whole number of any size, kept as typed
	Bool                  // true, false or, if optional, not sent
	Enum                  // one of Options
	MultiEnum             // any of Options
	List                  // scalars of kind Item, one a line
	JSON                  // any JSON
	Object                // an object, whose members are fields
	Array                 // a list, whose items are fields
	Choice                // one of several schemas
)

// Option is one value that a field can have.
type Option struct {
	Value json.RawMessage
	Label string // what is shown for it
}

// Field describes one value to be filled in. Texts are as the server
// sent them.
type Field struct {
	Name, Title, Description string
	Kind                     Kind
	Required                 bool
	Format, Pattern          string // of strings, also those of a List
	PatternHelp              string // what Pattern wants, in words; "" shows it as it is
	Min, Max                 *float64
	MinLen, MaxLen           *int     // characters of a string, items of a MultiEnum or List
	Options                  []Option // of Enum and MultiEnum
	Item                     Kind     // of a List: Text, Number or Integer
	Default                  json.RawMessage
	Schema                   json.RawMessage // shown beside JSON
	Completes                bool            // ask for completions while it is typed in one line
	OneLine                  bool            // several make no sense; a paste has blanks for its breaks
	// Inline says that the members of the value belong to the object around it: it
	// has alternatives for some of them.
	Inline bool

	// What is made once it is wanted: schemas may stand in themselves.
	members      func() []Field // of an Object
	items        *Field         // of an Array
	alternatives func() []Field // of a Choice, as many as Options
}

// Members are the fields of an Object, the alternatives of a Choice, or what the items
// of an Array are.
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

// String is how people call a kind.
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
		return "one of several kinds"
	default:
		return "JSON"
	}
}
