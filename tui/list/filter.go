// Filter is the language of the filter bar: which rows of a list a
// line of text asks for, in which order, and what to highlight in them.
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
// Everything else is ANDed; comparisons of one number or age field too, so
// that ms:>100 ms:<500 is a range. What is still being typed (-, ~, server:,
// updated:<) asks for nothing yet; a name that is no field, with nothing behind its
// colon, is text, such as the scheme of a URI. A term that cannot be understood hides
// nothing; [Query.Problem] says what is wrong with it.
//
// An [Index] holds the text of the rows, a [Query] what was typed; both are
// immutable and may be used from any goroutine. Nothing is kept between calls,
// no goroutine is started and nothing is logged. [Query.Match] and
// [Query.ExcludingTerm] read every row, a few milliseconds for a hundred thousand,
// and belong into a command with a context that ends them; the rest is quick
// enough for drawing. The functions of a [Field] are called from where Match
// is called. Text in different Unicode normal forms is different text.
//
// The package knows no catalog, no screen and no keys.

package list

import (
	"slices"
	"strings"
	"time"
)

// FieldKind is the kind of value that a field has.
type FieldKind uint8

// The kinds, each with the function of [Field] that gives its values.
const (
	Text   FieldKind = iota // text: a part of it, or with a * the whole of it
	YesNo                   // yes or no
	Age                     // time since a moment: <5m, >1h
	Number                  // >500, <=1k
)

// Field is one column that terms can name. Of its functions only that of its
// kind is used; a field without it asks for nothing. Rows are those of the
// index that is matched.
type Field struct {
	Name    string   // letters, digits, '_', '.' and '-', the first one a letter
	Aliases []string // other names, not shown
	Kind    FieldKind
	Help    string // for whoever explains the fields; not used here

	Text   func(row int) string
	YesNo  func(row int) bool
	Time   func(row int) time.Time // the zero time is no moment: no age fits it
	Number func(row int) float64   // NaN is unknown: no comparison fits it
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
