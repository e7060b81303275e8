package list

import (
	"slices"
	"strings"
)

// Values gives the values that text asks for in a field, as they were typed
// and without quotes: those of its positive terms. The field goes by the name
// that the term uses; aliases are other fields here.
func Values(text, field string) []string {
	var values []string
	for _, t := range tokens(text) {
		if t.positiveOf(field) && !t.unfinished() {
			values = append(values, t.value)
		}
	}
	return values
}

// Set gives text with the positive terms of a field replaced by one for each
// value, in the place of the first one or at the end. All other terms stay;
// between terms there is one space.
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

// SetField is [Set] for a field under any of its names.
func SetField(text string, f Field, values []string) string {
	for _, alias := range f.Aliases {
		text = Set(text, alias, nil)
	}
	return Set(text, f.Name, values)
}

// FindTextField finds a text field by its name or an alias.
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

// Toggle gives text with a value of a field taken out if it is asked for, and
// put in, beside the others, if not.
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
