package search_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// collected is a server in testdata/tools.json. It contains only names and the beginnings
// of descriptions, no schemas.
type collected struct {
	Server  string     `json:"server"`
	Package string     `json:"package"`
	License string     `json:"license,omitempty"`
	Tools   []toolFact `json:"tools"`
}

type toolFact struct {
	Name        string   `json:"name"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description,omitempty"`
	Arguments   []string `json:"arguments,omitempty"`
}

// question is a question of a user or agent and its right tools, as "server/tool". The
// questions were written before the ranking.
type question struct {
	Ask  string   `json:"ask"`
	Want []string `json:"want"`
}

// asked is a question of the second set, which nothing is tuned by. The tools were drawn
// at random. Each question was written from the purpose of its tool, as a sentence and as
// keywords.
type asked struct {
	question
	Keywords string `json:"keywords"`
}

// secondSet returns the questions as sentences and as keywords.
func secondSet(t testing.TB) (sentences, keywords []question) {
	var all []asked
	readJSON(t, "second.json", &all)
	for _, a := range all {
		sentences = append(sentences, a.question)
		keywords = append(keywords, question{a.Keywords, a.Want})
	}
	return sentences, keywords
}

// styled is a question of the third set. Its tools were drawn at random, and each question
// was written from the definition of its tool, before any run. Every second question of a
// style is held out: nothing is tuned by it.
type styled struct {
	question
	Style string `json:"style"`
}

// thirdSet returns the names of styles in order, and the questions of each style to tune
// by and held out.
func thirdSet(t testing.TB) (styles []string, tuned, held map[string][]question) {
	var all []styled
	readJSON(t, "third.json", &all)
	tuned, held = map[string][]question{}, map[string][]question{}
	for _, s := range all {
		if !slices.Contains(styles, s.Style) {
			styles = append(styles, s.Style)
		}
		half := tuned
		if len(tuned[s.Style]) > len(held[s.Style]) {
			half = held
		}
		half[s.Style] = append(half[s.Style], s.question)
	}
	return styles, tuned, held
}

func questions(t testing.TB) []question {
	var all []question
	readJSON(t, "questions.json", &all)
	return all
}

func TestQuestionsAreAboutCollectedTools(t *testing.T) {
	known := map[string]bool{}
	for _, c := range toolFacts(t) {
		for _, f := range c.Tools {
			known[c.Server+"/"+f.Name] = true
		}
	}
	require.GreaterOrEqual(t, len(known), 150)
	asked := map[string]bool{}
	sentences, keywords := secondSet(t)
	all := slices.Concat(questions(t), sentences, keywords)
	styles, tuned, held := thirdSet(t)
	for _, s := range styles {
		all = slices.Concat(all, tuned[s], held[s])
	}
	for _, q := range all {
		require.NotEmpty(t, q.Want, q.Ask)
		require.False(t, asked[q.Ask], "asked twice: %s", q.Ask)
		asked[q.Ask] = true
		for _, w := range q.Want {
			require.True(t, known[w], "%s: no tool %s", q.Ask, w)
		}
	}
	require.GreaterOrEqual(t, len(asked), 100)
}

func toolFacts(t testing.TB) []collected {
	var all []collected
	readJSON(t, "tools.json", &all)
	return all
}

func readJSON(t testing.TB, file string, v any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, v))
}
