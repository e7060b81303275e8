package search_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/sahilm/fuzzy"
	"github.com/stretchr/testify/require"

	"goblin/meta/search"
	"goblin/registry"
)

// toolCatalog returns a registry with the collected tools.
func toolCatalog(t testing.TB) *registry.Registry {
	facts := toolFacts(t)
	var o registry.Options
	for _, c := range facts {
		o.Servers = append(o.Servers, c.Server)
	}
	reg := registry.New(o)
	for _, c := range facts {
		var items [][]byte
		for _, f := range c.Tools {
			items = append(items, toolJSON(t, f))
		}
		require.Empty(t, reg.SetList(c.Server, registry.Tool, items))
	}
	return reg
}

func toolJSON(t testing.TB, f toolFact) []byte {
	properties := map[string]any{}
	for _, a := range f.Arguments {
		properties[a] = struct{}{}
	}
	item, err := json.Marshal(map[string]any{
		"name": f.Name, "title": f.Title, "description": f.Description,
		"inputSchema": map[string]any{"type": "object", "properties": properties},
	})
	require.NoError(t, err)
	return item
}

// ranker returns the found tools as "server/tool", best first.
type ranker func(ask string) []string

// once caches the answers of a ranker.
func once(rank ranker) ranker {
	known := map[string][]string{}
	return func(ask string) []string {
		if _, ok := known[ask]; !ok {
			known[ask] = rank(ask)
		}
		return known[ask]
	}
}

func id(e *registry.Entry) string { return e.Server + "/" + e.Name }

func ours(t testing.TB, reg *registry.Registry) ranker {
	x := search.New(reg)
	return func(ask string) (ids []string) {
		found, err := x.Search(t.Context(), search.Query{Text: ask, Limit: 1000})
		require.NoError(t, err)
		for _, h := range found.Hits {
			ids = append(ids, id(h.Entry))
		}
		return ids
	}
}

type fuzzyTools []*registry.Entry

func (f fuzzyTools) Len() int            { return len(f) }
func (f fuzzyTools) String(i int) string { return f[i].Listed + " " + f[i].Description }

// plainFuzzy matches the letters of a question in order.
func plainFuzzy(reg *registry.Registry) ranker {
	tools := fuzzyTools(slices.Collect(reg.Load().All(registry.Tool)))
	return func(ask string) (ids []string) {
		for _, m := range fuzzy.FindFrom(ask, tools) {
			ids = append(ids, id(tools[m.Index]))
		}
		return ids
	}
}

// plainBM25 is the textbook formula over lower-case words of names and descriptions.
func plainBM25(reg *registry.Registry) ranker {
	words := func(text string) []string {
		return strings.FieldsFunc(strings.ToLower(text), func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') })
	}
	tools := slices.Collect(reg.Load().All(registry.Tool))
	counts, docs, length := make([]map[string]float64, len(tools)), map[string]float64{}, 0.0
	for i, e := range tools {
		counts[i] = map[string]float64{}
		for _, w := range words(e.Listed + " " + e.Description) {
			if counts[i][w]++; counts[i][w] == 1 {
				docs[w]++
			}
			counts[i][""]++
		}
		length += counts[i][""]
	}
	n := float64(len(tools))
	return func(ask string) (ids []string) {
		score := map[int]float64{}
		for _, w := range words(ask) {
			for i, c := range counts {
				if c[w] > 0 {
					rarity := math.Log(1 + (n-docs[w]+0.5)/(docs[w]+0.5))
					score[i] += rarity * c[w] * 2.2 / (c[w] + 1.2*(0.25+0.75*c[""]/(length/n)))
				}
			}
		}
		var found []int
		for i := range tools {
			if score[i] > 0 {
				found = append(found, i)
			}
		}
		slices.SortStableFunc(found, func(a, b int) int { return -cmpFloat(score[a], score[b]) })
		for _, i := range found {
			ids = append(ids, id(tools[i]))
		}
		return ids
	}
}

func cmpFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// figures is the quality of a ranker.
type figures struct{ recall1, recall5, mrr float64 }

func evaluate(rank ranker, asked []question) (f figures, missed []string) {
	for _, q := range asked {
		ids := rank(q.Ask)
		at := slices.IndexFunc(ids, func(id string) bool { return slices.Contains(q.Want, id) })
		if at >= 0 {
			f.mrr += 1 / float64(at+1)
		}
		if at == 0 {
			f.recall1++
		}
		if at >= 0 && at < 5 {
			f.recall5++
			continue
		}
		missed = append(missed, fmt.Sprintf("%s: %v at %d, not %v", q.Ask, q.Want, at, ids[:min(5, len(ids))]))
	}
	n := float64(len(asked))
	return figures{f.recall1 / n, f.recall5 / n, f.mrr / n}, missed
}

// weak counts the answers that are called weak: those with a right tool among the first
// five, and those without. Of the latter it also counts how often the likely servers have
// one.
func weak(t *testing.T, x *search.Index, asked []question) (good, bad, helped int) {
	for _, q := range asked {
		found, err := x.Search(t.Context(), search.Query{Text: q.Ask})
		require.NoError(t, err)
		if !found.PoorMatch {
			continue
		}
		var servers []string
		right := false
		for i, h := range found.Hits {
			right = right || i < 5 && slices.Contains(q.Want, id(h.Entry))
			if s := h.Entry.Server; len(servers) < 3 && !slices.Contains(servers, s) {
				servers = append(servers, s)
			}
		}
		if right {
			good++
		} else {
			bad++
		}
		if slices.ContainsFunc(q.Want, func(w string) bool { s, _, _ := strings.Cut(w, "/"); return slices.Contains(servers, s) }) {
			helped++
		}
	}
	return good, bad, helped
}

// halves returns the questions that the ranking was tuned by, and the others.
func halves(t testing.TB) (tuned, held []question) {
	for i, q := range questions(t) {
		if i%2 == 0 {
			tuned = append(tuned, q)
		} else {
			held = append(held, q)
		}
	}
	return tuned, held
}

// TestEvaluation prints the table of README.md and checks the minimum quality.
func TestEvaluation(t *testing.T) {
	reg := toolCatalog(t)
	tuned, held := halves(t)
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 1, ' ', 0)
	row := func(name string, rank ranker) figures {
		rank = once(rank)
		all, _ := evaluate(rank, slices.Concat(tuned, held))
		f, _ := evaluate(rank, held)
		fmt.Fprintf(table, "| %s\t| %.3f\t| %.3f\t| %.3f\t| %.3f\t| %.3f\t| %.3f\t|\n", name,
			all.recall1, all.recall5, all.mrr, f.recall1, f.recall5, f.mrr)
		return all
	}
	row("plain fuzzy", plainFuzzy(reg))
	plain := row("plain BM25", plainBM25(reg))
	search.WithoutMeanings(func() {
		f := row("ours, without meanings", ours(t, reg))
		require.Greater(t, f.mrr, plain.mrr)
	})
	final := once(ours(t, reg))
	f := row("ours", final)
	require.NoError(t, table.Flush())
	t.Logf("all questions (left), those not tuned by (right):\n%s", b.String())
	_, missed := evaluate(final, tuned)
	t.Logf("not among the first five:\n%s", strings.Join(missed, "\n"))
	sentences, keywords := secondSet(t)
	said, _ := evaluate(final, sentences)
	words, _ := evaluate(final, keywords)
	t.Logf("second set: recall@5 of sentences %.3f, of keywords %.3f, of both %.3f",
		said.recall5, words.recall5, (said.recall5+words.recall5)/2)
	x := search.New(reg)
	for name, set := range map[string][]question{"own": questions(t), "sentences": sentences, "keywords": keywords} {
		good, bad, helped := weak(t, x, set)
		t.Logf("%s: of %d answers, %d good ones and %d others are weak; to %d of them the servers have it", name, len(set), good, bad, helped)
		require.GreaterOrEqual(t, 2*bad, good, "weak answers")
		require.False(t, name == "keywords" && good+bad > 0, "keywords fit")
	}
	require.Greater(t, f.recall1, 0.50)
	require.Greater(t, f.recall5, 0.75)
	require.Greater(t, f.mrr, 0.61)
}

// TestEvaluationByStyle prints recall@5 of the third set by style, and the misses of its
// tuned half. It checks the minimum quality.
func TestEvaluationByStyle(t *testing.T) {
	rank := once(ours(t, toolCatalog(t)))
	styles, tuned, held := thirdSet(t)
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 1, ' ', 0)
	row := func(name string, least float64, tuned, held []question) {
		forTuning, missed := evaluate(rank, tuned)
		unseen, _ := evaluate(rank, held)
		fmt.Fprintf(table, "| %s\t| %.2f\t| %.2f\t|\n", name, forTuning.recall5, unseen.recall5)
		require.GreaterOrEqual(t, min(forTuning.recall5, unseen.recall5), least, name)
		for _, m := range missed {
			t.Logf("%s: %s", name, m)
		}
	}
	least := map[string]float64{"described": 0.98, "keywords": 0.91, "misspelt": 0.98, "value": 0.91, "form": 0.98, "server": 0.83}
	var allTuned, allHeld []question
	for _, s := range styles {
		row(s, least[s], tuned[s], held[s])
		allTuned, allHeld = append(allTuned, tuned[s]...), append(allHeld, held[s]...)
	}
	row("all", 0.67, allTuned, allHeld)
	ownTuned, ownHeld := halves(t)
	row("own set, each word broken", 0.70, misspell(ownTuned), misspell(ownHeld))
	require.NoError(t, table.Flush())
	t.Logf("recall@5, tuned and held out:\n%s", b.String())
}

// misspell returns the questions with each word of at least five letters broken by one
// swap, omission, repetition or replacement.
func misspell(asked []question) []question {
	broken := make([]question, len(asked))
	for i, q := range asked {
		r := rand.New(rand.NewPCG(uint64(i), uint64(len(q.Ask))))
		words := strings.Fields(q.Ask)
		for at, word := range words {
			if len(word) < 5 {
				continue
			}
			w := []byte(word)
			switch n := 1 + r.IntN(len(w)-2); r.IntN(4) {
			case 0:
				w[n], w[n+1] = w[n+1], w[n]
			case 1:
				w = slices.Delete(w, n, n+1)
			case 2:
				w = slices.Insert(w, n, w[n])
			case 3:
				w[n] = 'a' + byte(r.IntN(26))
			}
			words[at] = string(w)
		}
		broken[i] = question{strings.Join(words, " "), q.Want}
	}
	return broken
}
