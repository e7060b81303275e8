package list

import (
	"strings"
	"unicode"
)

// SpellsName reports whether people who write words may mean a name: each of them stands in
// it, or is made of the beginnings of its words, as confjson is of config.json.
func SpellsName(words, name string) bool {
	for word := range strings.FieldsSeq(strings.ToLower(words)) {
		if !strings.Contains(strings.ToLower(name), word) && !isAbbreviation([]rune(word), []rune(name)) {
			return false
		}
	}
	return true
}

// isAbbreviation reports whether runs of letters, each of which begins a word of a name, are a
// word in their order.
func isAbbreviation(word, name []rune) bool {
	before := make([]bool, len(name)+1) // whether the letters so far may end before a place
	for i, letter := range word {
		now, reached := make([]bool, len(name)+1), i == 0
		for j, r := range name {
			reached = reached || before[j]
			now[j+1] = unicode.ToLower(r) == letter && (before[j] || reached && starts(name, j))
		}
		before = now
	}
	for _, ends := range before {
		if ends {
			return true
		}
	}
	return false
}

// starts reports whether a word of a name begins at a place.
func starts(name []rune, at int) bool {
	if at == 0 {
		return true
	}
	was, is := name[at-1], name[at]
	return !unicode.IsLetter(was) && !unicode.IsDigit(was) || unicode.IsUpper(is) && !unicode.IsUpper(was)
}
