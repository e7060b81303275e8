package query

import (
	"strings"
	"unicode"
)

// SpellsName reports whether words may spell a name. Each word must be part of it or
// consist of the beginnings of its words, like confjson for config.json.
func SpellsName(words, name string) bool {
	for word := range strings.FieldsSeq(strings.ToLower(words)) {
		if !strings.Contains(strings.ToLower(name), word) && !isAbbreviation([]rune(word), []rune(name)) {
			return false
		}
	}
	return true
}

func isAbbreviation(word, name []rune) bool {
	before := make([]bool, len(name)+1) // whether the letters so far can end before a position
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

func starts(name []rune, at int) bool {
	if at == 0 {
		return true
	}
	was, is := name[at-1], name[at]
	return !unicode.IsLetter(was) && !unicode.IsDigit(was) || unicode.IsUpper(is) && !unicode.IsUpper(was)
}
