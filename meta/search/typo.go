package search

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"goblin/registry/suggest"
)

// maxCorrections is the maximum number of words that a misspelled word finds.
const maxCorrections = 4

func maxEdits(n int) int {
	switch {
	case n >= 6:
		return 2
	case n >= 4:
		return 1
	}
	return 0
}

// lettersOf returns a set of the bytes in a word. An edit changes at most two bits per
// byte of a letter, so the set alone rules out most words.
func lettersOf(word string) (set uint32) {
	for i := range len(word) {
		set |= 1 << (word[i] & 31)
	}
	return set
}

// knownWords returns sorted words that a misspelled word may mean although no entry
// contains them.
var knownWords = sync.OnceValue(func() []string {
	known := maps.Clone(commonVerbs())
	for w := range allMeanings() {
		known[w] = true
	}
	for w := range stopWords() {
		known[w] = true
	}
	return slices.Sorted(maps.Keys(known))
})

func isKnown(stem string) bool {
	_, known := slices.BinarySearch(knownWords(), stem)
	return known
}

// speller collects the words with the fewest edits.
type speller struct {
	typed   []rune
	letters uint32
	changed int            // bits of letters per edit
	edits   int            // the fewest so far
	docs    map[string]int // per word; at least 1
	term    []rune
}

func newSpeller(stem string, limit int) *speller {
	s := &speller{typed: []rune(stem), letters: lettersOf(stem), changed: 2, edits: limit, docs: map[string]int{}, term: make([]rune, 0, maxWord)}
	if !ascii(stem) {
		s.changed *= utf8.UTFMax
	}
	return s
}

// mayAccept reports whether a word with these letters may need few edits.
func (s *speller) mayAccept(letters uint32) bool {
	return bits.OnesCount32(letters^s.letters) <= s.changed*s.edits
}

// accept reports whether no word so far has fewer edits. It drops words with more.
func (s *speller) accept(word string) bool {
	if len(word) < len(s.typed)-s.edits || len(word) > len(s.typed)+s.edits && utf8.RuneCountInString(word) > len(s.typed)+s.edits {
		return false
	}
	s.term = s.term[:0]
	for _, c := range word {
		s.term = append(s.term, c)
	}
	edits := suggest.Distance(s.typed, s.term, s.edits)
	if edits > s.edits {
		return false
	}
	if edits < s.edits {
		s.edits = edits
		clear(s.docs)
	}
	return true
}

// best returns the likely words: those with the same first letter if there are any, and
// of them those in the most documents.
func (s *speller) best() []string {
	words := slices.Sorted(maps.Keys(s.docs))
	first := string(s.typed[:1])
	otherFirst := func(w string) bool { return !strings.HasPrefix(w, first) }
	if slices.ContainsFunc(words, func(w string) bool { return !otherFirst(w) }) {
		words = slices.DeleteFunc(words, otherFirst)
	}
	slices.SortStableFunc(words, func(a, b string) int { return cmp.Compare(s.docs[b], s.docs[a]) })
	return words[:min(len(words), maxCorrections)]
}

// corrections returns the stems that a misspelled word may mean, and their edits. It
// compares at most room terms.
func (r *ranking) corrections(w *queryWord, room int) (stems []string, edits int) {
	limit := maxEdits(utf8.RuneCountInString(w.text))
	if limit == 0 || !letters([]byte(w.text)) {
		return nil, 0
	}
	s := newSpeller(w.stem, limit)
	for _, known := range knownWords() {
		if s.mayAccept(lettersOf(known)) && s.accept(known) {
			s.docs[known] = 1
		}
	}
	for _, l := range r.lists {
		end := min(len(l.termEnd), l.words+room)
		room -= end - l.words
		for t := l.words; t < end; t++ {
			if s.mayAccept(l.letters[t]) && s.accept(l.term(t)) {
				s.docs[l.term(t)] += l.count(t)
			}
		}
	}
	return s.best(), s.edits
}
