package query

import (
	"slices"
	"strings"
	"time"
)

// FieldKind is the kind of a field's values.
type FieldKind uint8

// The kinds, each with a function of [Field].
const (
	Text     FieldKind = iota // contains a text, or matches it with a *
	YesNo                     // yes or no
	Age                       // time since a moment: <5m, >1h
	Number                    // >500, <=1k
	Texts                     // several texts: any of them matches as Text
	Duration                  // a Number in milliseconds: >500, >1s
	Since                     // a Time at or after: 10m ago, 02:06, a date
	Range                     // a Time in a range: 02:06..02:07
)

// Field is a column that terms can name. Only the function of its kind is used; without
// it, the field is ignored. Row numbers refer to the matched index.
type Field struct {
	Name    string   // letters, digits, '_', '.', '-'; begins with a letter
	Aliases []string // other names, not shown
	Kind    FieldKind
	Help    string // for help; not used here
	// Costly marks functions that read bodies. They are called last, and only if a term
	// names the field.
	Costly bool
	// Path is the placeholder of the path in terms such as arg.NAME:value, or "". Only
	// Texts have paths.
	Path string

	Text   func(row int) string
	YesNo  func(row int) bool
	Time   func(row int) time.Time // the zero time matches no age and no range
	Number func(row int) float64   // NaN matches no comparison
	// Texts returns the values at a path, which is "" for the whole field. None are the same
	// as one empty value.
	Texts func(row int, path string) []string
}

// Label returns the field's name as terms begin, such as "ms:" or "arg.NAME:".
func (f *Field) Label() string {
	if f.Path != "" {
		return f.Name + "." + f.Path + ":"
	}
	return f.Name + ":"
}

// called reports whether a term's name means the field, and returns the path in it.
func (f *Field) called(name string) (path string, ok bool) {
	same := func(alias string) bool { return strings.EqualFold(alias, name) }
	if same(f.Name) || slices.ContainsFunc(f.Aliases, same) {
		return "", true
	}
	if n := len(f.Name); f.Path != "" && len(name) > n+1 && name[n] == '.' && strings.EqualFold(name[:n], f.Name) {
		return name[n+1:], true
	}
	return "", false
}

func (f *Field) usable() bool {
	switch f.Kind {
	case Text:
		return f.Text != nil
	case YesNo:
		return f.YesNo != nil
	case Age, Since, Range:
		return f.Time != nil
	case Number, Duration:
		return f.Number != nil
	case Texts:
		return f.Texts != nil
	}
	return false
}
