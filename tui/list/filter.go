// Filter is the language of the filter bar. It selects, orders and highlights rows.
//
//	config main          both, in any order, anywhere in the row's text
//	Config               an upper-case letter makes that word case-sensitive
//	"two words"          one word with a space; "" inside it is a quote
//	~cfgmain             its characters in this order; the best match first
//	server:gi            the field contains it; its case does not matter
//	mime:text/*          with a *, the whole value; * also crosses a /
//	server:=git          the whole value, nothing else
//	mime:""              no value
//	server:a server:b    several of one field: any of them
//	sub:yes  sub:no
//	updated:<5m          in the last 5 minutes; >1h: longer ago (s, m, h, d)
//	ms:>500 size:<=1.5M  numbers: < > <= >= =, with k, M, G or Ki, Mi, Gi
//	-word  -mime:json    not these
//
// All other terms are ANDed, including comparisons of one number or age field, so ms:>100
// ms:<500 is a range. Unfinished terms (-, ~, server:, updated:<) match everything. An
// unknown field name with nothing after its colon is text, such as the scheme of a URI.
// An invalid term hides nothing; [Query.Problem] describes it.
//
// An [Index] holds the text of the rows, a [Query] the parsed filter. Both are immutable
// and may be used from any goroutine. [Query.Match] and [Query.ExcludingTerm] read every
// row, in a few milliseconds per hundred thousand. They belong into a command with a
// context that cancels them. Everything else is fast enough for drawing. Match calls the
// functions of a [Field] on its own goroutine. Different Unicode normal forms do not
// match each other.

package list

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
	Name    string   // letters, digits, '_', '.' and '-', starting with a letter
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
