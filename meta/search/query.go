package search

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"goblin/registry"
)

// Limits of a query.
const (
	// DefaultLimit is the number of hits if a query sets none.
	DefaultLimit = 20
	// MaxText is the maximum length of a query, in bytes; the rest is cut.
	MaxText = 1024

	maxWords = 32 // searched words
)

// Limits of the work for prefixes and typos. Queries that reach a limit find less, but
// always the same.
const (
	maxCompared = 1 << 20 // terms compared with misspelled words, shared equally by them
	maxPosted   = 1 << 19 // postings of longer words
)

// Query is a search. The zero value matches all entries in listed order.
type Query struct {
	Text   string          // "" for all, in listed order
	Kinds  []registry.Kind // none: all kinds
	Server string          // "": of all
	MIME   string          // only of this type; may be a glob such as image/*
	Limit  int             // 0 or less: [DefaultLimit]
	Offset int             // hits to skip
	// View restricts the hits to a part of the catalog; nil: all of it.
	View *registry.Snapshot
}

// Hit is a found entry. It is part of a snapshot and read-only.
type Hit struct {
	Entry *registry.Entry
	Score float64 // 0 for a query without words
}

// Result is the answer to a query.
type Result struct {
	Hits  []Hit // best first, except that servers take turns; see the package's documentation
	Total int   // without limit and offset
	// PoorMatch reports whether even the best hit fits poorly or there is none.
	PoorMatch bool
}

type queryWord struct {
	text  string // as typed
	stem  string
	share float32 // 1 for a word as typed
	exact bool    // no prefixes, synonyms or typos
	pair  bool    // two words that already count separately
}

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
			word.text = "count" // the usual word in tool names
		}
		before = word.text
		switch {
		case how == joined:
			word.stem = word.text
			word.share = pairShare
			word.exact = true
			word.pair = true
		case how == part && len(w) == 1 && letters(w):
			return // part of a name such as k8s
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
	// Pairs consist of significant words, as in "create an issue".
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

// stopWords are searched only if a query has no other words.
var stopWords = sync.OnceValue(func() map[string]bool { return setOf(stopWordLines) })

//go:embed stopwords.txt
var stopWordLines string

// commonShare is the weight of words that are common in English. They may be rare among
// tools, which would overrate them.
const commonShare = 0.6

// commonVerbs are the stems of the most common English verbs.
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
