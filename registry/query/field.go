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
	Text   FieldKind = iota // contains a text, or matches it with a *
	YesNo                   // yes or no
	Age                     // time since a moment: <5m, >1h
	Number                  // >500, <=1k
)

// Field is a column that terms can name. Only the function of its kind is used; without
// it, the field is ignored. Row numbers refer to the matched index.
type Field struct {
	Name    string   // letters, digits, '_', '.', '-'; begins with a letter
	Aliases []string // other names, not shown
	Kind    FieldKind
	Help    string // for help; not used here

	Text   func(row int) string
	YesNo  func(row int) bool
	Time   func(row int) time.Time // the zero time matches no age
	Number func(row int) float64   // NaN matches no comparison
}

func (f *Field) called(name string) bool {
	same := func(alias string) bool { return strings.EqualFold(alias, name) }
	return same(f.Name) || slices.ContainsFunc(f.Aliases, same)
}

func (f *Field) usable() bool {
	switch f.Kind {
	case Text:
		return f.Text != nil
	case YesNo:
		return f.YesNo != nil
	case Age:
		return f.Time != nil
	case Number:
		return f.Number != nil
	}
	return false
}
