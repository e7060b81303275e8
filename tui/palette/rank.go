package palette

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sahilm/fuzzy"

	"goblin/registry/query"
	"goblin/tui/uicontext"
)

// Quality of a match, best first.
const (
	fitsName = iota
	fitsStart
	fitsPart
	fitsLetters
	fitsWords
	fitsNot
)

// Order of the sources of equal matches.
const (
	fromCommands = iota
	fromServers
	fromEntries
	fromConfig
)

// pattern is a typed text, prepared for matching.
type pattern struct {
	low     string
	letters string
	words   []string
}

func newPattern(text string) pattern {
	low := strings.ToLower(text)
	return pattern{low: low, letters: strings.ReplaceAll(low, " ", ""), words: strings.Fields(low)}
}

// match returns the quality of the best match among names, and its score.
func (p *pattern) match(names ...string) (fits, score int) {
	fits = fitsNot
	for _, m := range fuzzy.Find(p.letters, names) {
		now, name := fitsLetters, strings.ToLower(m.Str)
		switch {
		case name == p.low:
			now = fitsName
		case strings.HasPrefix(name, p.low):
			now = fitsStart
		case strings.Contains(name, p.low):
			now = fitsPart
		}
		if now < fits || now == fits && m.Score > score {
			fits, score = now, m.Score
		}
	}
	return fits, score
}

// describes reports whether a text contains all words.
func (p *pattern) describes(text string) bool {
	return uicontext.ContainsAll(strings.ToLower(text), p.words)
}

// spells reports whether the text may be meant as one of the names.
func spells(text string, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return query.SpellsName(text, name) })
}

// sort orders choices by quality. Among equal matches, choices that can run come first,
// then the last used ones.
func (d *Dialog) sort(all []choice) {
	slices.SortStableFunc(all, func(x, y choice) int {
		named := 0
		if x.fits == fitsName { // so that a command can run before the search ends
			named = cmp.Compare(x.from, y.from)
		}
		return cmp.Or(
			cmp.Compare(x.fits, y.fits), cmp.Compare(min(len(x.why), 1), min(len(y.why), 1)), named,
			cmp.Compare(y.recency, x.recency), cmp.Compare(x.from, y.from), cmp.Compare(y.score, x.score))
	})
}

// commands returns the commands that match, and the values of matching settings.
func (d *Dialog) commands(p *pattern) []choice {
	var all []choice
	add := func(c *Command, arg string, names ...string) {
		fits, score := p.match(names...)
		if fits > fitsWords && p.describes(c.Long+" "+c.SearchWords) {
			fits = fitsWords
			for _, m := range fuzzy.Find(p.letters, []string{strings.ToLower(c.Long)}) {
				score = m.Score
			}
		}
		if fits <= fitsWords {
			found := d.commandChoice(c, arg)
			found.fits, found.score = fits, score
			all = append(all, found)
		}
	}
	for i := range d.o.Commands {
		c := &d.o.Commands[i]
		add(c, "", c.Names...)
		if !c.Setting || c.Args == nil || p.low == "" {
			continue
		}
		for _, value := range c.Args() {
			if fits, _ := p.match(c.Names[0]+" "+value, value); fits < fitsLetters {
				add(c, value, c.Names[0]+" "+value, value)
			}
		}
	}
	return all
}
