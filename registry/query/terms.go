package query

import (
	"slices"
	"strings"
)

// Values returns the values of a field's positive terms, as typed and without quotes.
// field must be the name used in the term; aliases count as other fields.
func Values(text, field string) []string {
	var values []string
	for _, t := range tokens(text) {
		if t.positiveOf(field) && !t.unfinished() {
			values = append(values, t.value)
		}
	}
	return values
}

// Set replaces a field's positive terms by one per value, at the first one's position or
// at the end. Other terms stay, separated by one space.
func Set(text, field string, values []string) string {
	var terms, own []string
	for _, v := range values {
		own = append(own, field+":"+quote(v))
	}
	at := -1
	for _, t := range tokens(text) {
		switch {
		case !t.positiveOf(field):
			if term := t.closed(); term != "" {
				terms = append(terms, term)
			}
		case at < 0:
			at = len(terms)
		}
	}
	if at < 0 {
		at = len(terms)
	}
	return strings.Join(slices.Insert(terms, at, own...), " ")
}

// SetField is like [Set] but replaces terms with any of the field's names.
func SetField(text string, f Field, values []string) string {
	for _, alias := range f.Aliases {
		text = Set(text, alias, nil)
	}
	return Set(text, f.Name, values)
}

// FindTextField returns the text field with a name or alias.
func FindTextField(all []Field, name string) (f Field, ok bool) {
	i := slices.IndexFunc(all, func(f Field) bool {
		isName := func(s string) bool { return strings.EqualFold(s, name) }
		return f.Kind == Text && f.Text != nil && (isName(f.Name) || slices.ContainsFunc(f.Aliases, isName))
	})
	if i < 0 {
		return Field{}, false
	}
	return all[i], true
}

// Toggle removes a value of a field from the filter, or adds it if it is missing.
func Toggle(text, field, value string) string {
	value = clean(value)
	values := Values(text, field)
	rest := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return sameFolded(v, value) })
	if len(rest) == len(values) {
		rest = append(rest, value)
	}
	return Set(text, field, rest)
}

func (t token) positiveOf(field string) bool {
	return t.name != "" && !t.not && !t.fuzzy && strings.EqualFold(t.name, field)
}

func sameFolded(a, b string) bool {
	a, _ = fold(a)
	b, _ = fold(b)
	return a == b
}

// Term is a term of a filter's text.
type Term struct {
	Raw    string // as typed
	Column int    // from 1, in characters
	Not    bool
	Field  string // the field's name, or "" for words
	Path   string // of the field, such as a.b in arg.a.b:x
	Value  string // without quotes
	// Unfinished terms, such as "server:", match every row.
	Unfinished bool
	Open       bool // the closing quote is missing
}

// Terms returns the terms of a text in order.
func Terms(text string, fields []Field) []Term {
	var terms []Term
	for _, t := range tokens(text) {
		term := Term{Raw: t.raw, Column: t.column, Not: t.not, Value: t.value, Open: t.open}
		for i := range fields {
			if path, ok := fields[i].called(t.name); ok && t.name != "" {
				term.Field, term.Path = fields[i].Name, path
				break
			}
		}
		alone := Parse(t.raw, fields)
		term.Unfinished = alone.IsEmpty() && alone.Problem() == ""
		terms = append(terms, term)
	}
	return terms
}
