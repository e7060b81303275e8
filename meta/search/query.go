package search

import (
	"slices"
	"strings"
	"sync"

	"goblin/registry"
)

// Bounds of a query.
const (
	// DefaultLimit is the number of hits when a query sets none.
	DefaultLimit = 20
	// MaxText is the length in bytes at which a query's text is cut.
	MaxText = 1024

	maxWords = 32 // words that are looked for
)

// What a query may spend on words that are not there as they were typed.
// Queries that reach a bound find less, in the same way every time.
const (
	maxCompared = 1 << 20 // terms compared with misspelt words
	maxPosted   = 1 << 19 // postings of longer and of similar words
)

// Query says what to find. The zero value is all, in listed order.
type Query struct {
	Text   string          // words; without one, all entries in listed order
	Kinds  []registry.Kind // none: all kinds
	Server string          // only of this one; "": of all
	MIME   string          // only of this type; may be a glob such as image/*
	Limit  int             // hits at most; 0 or less: [DefaultLimit]
	Offset int             // hits to leave out first
	// View is a part of the catalog that all hits are in; nil: all of it.
	View *registry.Snapshot
}

// Hit is a found entry. It is part of a snapshot and must not be changed.
type Hit struct {
	Entry *registry.Entry
	Score float64 // 0 when the query has no words
}

// Result is the answer to a query.
type Result struct {
	Hits  []Hit // best first
	Total int   // how many there are without limit and offset
	// PoorMatch says that not even the best of them fits well, or that there are none.
	PoorMatch bool
}

// queryWord is a word to look for.
type queryWord struct {
	text  string // as typed
	stem  string
	share float32 // what a hit counts, 1 for a word as typed
	exact bool    // only as it is
	pair  bool    // two words that count already
}

// parse splits a query's text into the words to look for.
func parse(text string) []queryWord {
	if len(text) > MaxText {
		text = strings.ToValidUTF8(text[:MaxText], "")
	}
	var all, telling []queryWord
	var l lexer
	before := ""
	add := func(w []byte, how spelling) {
		word := queryWord{text: string(w), share: 1}
		if how == plain && word.text == "many" && before == "how" {
			word.text = "count" // which is what tools call it
		}
		before = word.text
		switch {
		case how == joined:
			word.stem = word.text
			word.share = pairShare
			word.exact = true
			word.pair = true
		case how == part && len(w) == 1 && letters(w):
			return // of k8s
		default:
			word.stem = string(stem([]byte(word.text)))
			word.exact = how == whole
			if commonVerbs()[word.stem] {
				word.share = commonShare
			}
		}
		same := func(o queryWord) bool { return o.stem == word.stem }
		if !slices.ContainsFunc(all, same) {
			all = append(all, word)
		}
		if how != joined && !stopWords()[word.text] && !slices.ContainsFunc(telling, same) {
			telling = append(telling, word)
		}
	}
	l.split(text, false, add)
	if len(telling) == 0 {
		telling = all
	}
	// Pairs are of the words that tell something: "create an issue".
	var words []string
	for _, w := range telling {
		if !w.exact {
			words = append(words, w.text)
		}
	}
	all = telling
	l.split(strings.Join(words, " "), true, func(w []byte, how spelling) {
		if how == joined {
			add(w, how)
		}
	})
	return all[:min(len(all), maxWords)]
}

// stopWords tell nothing in a question. They are looked for only when there
// are no others.
var stopWords = sync.OnceValue(func() map[string]bool {
	return setOf(`a about am an and any are as at be been but by can could did do does else for from had has
	have he her here him his how i if in into is it its me my of on or our out please she should so some somebody someone something
	than that the their them then there these they this those to us was we were what when where which while
	who whom whose why will with would you your`)
})

// commonShare is for words that are common in English but need not be so among tools, so
// that their rarity there says too much.
const commonShare = 0.6

// commonVerbs are the stems of the commonest verbs of English.
var commonVerbs = sync.OnceValue(func() map[string]bool {
	stems := map[string]bool{}
	for verb := range setOf(`add allow appear ask be begin believe bring build buy call change come consider continue create
	cut die do expect fall feel find follow get give go grow happen have hear help hold include keep kill know lead learn
	leave let like live look lose love make mean meet move need offer open pay play provide put reach read remain remember
	run say see seem send serve set show sit speak spend stand stay stop take talk tell think try turn understand use wait
	walk want watch win work write`) {
		stems[string(stem([]byte(verb)))] = true
	}
	return stems
})

func setOf(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}
