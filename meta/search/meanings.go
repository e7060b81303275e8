package search

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed meanings.txt
var meaningLines string

var allMeanings = sync.OnceValue(func() map[string][]string { return parseMeanings(meaningLines) })

// meanings returns the synonyms of a stem. Tests replace it.
var meanings = allMeanings

// parseMeanings parses lines of synonyms. A word may be in several lines.
func parseMeanings(lines string) map[string][]string {
	of := map[string][]string{}
	for line := range strings.Lines(lines) {
		words := strings.Fields(line)
		for i, w := range words {
			words[i] = string(stem([]byte(w)))
		}
		for _, w := range words {
			for _, other := range words {
				if other != w {
					of[w] = append(of[w], other)
				}
			}
		}
	}
	return of
}
