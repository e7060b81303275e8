// Package bleve runs the evaluation's questions on bleve. It is a separate module, so
// that Goblin does not depend on bleve.
package bleve

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/blevesearch/bleve/v2"
	_ "github.com/blevesearch/bleve/v2/analysis/analyzer/custom"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/blevesearch/bleve/v2/analysis/token/camelcase"
	"github.com/blevesearch/bleve/v2/analysis/token/lowercase"
	"github.com/blevesearch/bleve/v2/analysis/tokenizer/regexp"
	"github.com/blevesearch/bleve/v2/index/scorch"
	"github.com/blevesearch/bleve/v2/mapping"
	"github.com/blevesearch/bleve/v2/search/query"
)

func read(t testing.TB, file string, v any) {
	text, err := os.ReadFile("../" + file)
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

type tool struct {
	Server      string `json:"server"`
	Name        string `json:"name"`
	Title       string `json:"title"`
	Description string `json:"description"`
	All         string `json:"all"`
}

func tools(t testing.TB) (all []tool) {
	var servers []struct {
		Server string
		Tools  []struct {
			Name, Title, Description string
		}
	}
	read(t, "tools.json", &servers)
	for _, s := range servers {
		for _, f := range s.Tools {
			all = append(all, tool{s.Server, f.Name, f.Title, f.Description, strings.Join([]string{s.Server, f.Name, f.Name, f.Title, f.Description}, " ")})
		}
	}
	return all
}

// newMapping splits words at case, digits and punctuation, stems English words, drops
// stop words, and scores by BM25.
func newMapping(t testing.TB, meanings bool) *mapping.IndexMappingImpl {
	m := bleve.NewIndexMapping()
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	check(m.AddCustomTokenizer("words", map[string]any{"type": regexp.Name, "regexp": `[\p{L}\p{N}]+`}))
	check(m.AddCustomAnalyzer("code", map[string]any{
		"type": "custom", "tokenizer": "words",
		"token_filters": []string{camelcase.Name, lowercase.Name, en.StopName, en.SnowballStemmerName},
	}))
	m.DefaultAnalyzer = "code"
	m.ScoringModel = "bm25"
	if meanings {
		check(m.AddSynonymSource("meanings", map[string]any{"collection": "meanings", "analyzer": "code"}))
		for _, f := range []string{"name", "all"} {
			field := bleve.NewTextFieldMapping()
			field.SynonymSource = "meanings"
			m.DefaultMapping.AddFieldMappingsAt(f, field)
		}
	}
	return m
}

func index(t testing.TB, meanings bool) bleve.Index {
	x, err := bleve.NewUsing("", newMapping(t, meanings), scorch.Name, scorch.Name, nil)
	if err != nil {
		t.Fatal(err)
	}
	if meanings {
		text, err := os.ReadFile("../../meanings.txt")
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			err := x.(bleve.SynonymIndex).IndexSynonym(fmt.Sprint("m", i), "meanings", &bleve.SynonymDefinition{Synonyms: strings.Fields(line)})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, f := range tools(t) {
		if err := x.Index(f.Server+"/"+f.Name, f); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

func ask(t testing.TB, x bleve.Index, text string, boosts map[string]float64, fuzziness int) (ids []string) {
	var parts []query.Query
	for f, b := range boosts {
		q := bleve.NewMatchQuery(text)
		q.SetField(f)
		q.SetBoost(b)
		q.SetFuzziness(fuzziness)
		parts = append(parts, q)
	}
	r := bleve.NewSearchRequestOptions(bleve.NewDisjunctionQuery(parts...), 1000, 0, false)
	found, err := x.Search(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range found.Hits {
		ids = append(ids, h.ID)
	}
	return ids
}

func TestEvaluation(t *testing.T) {
	var asked []struct {
		Ask  string
		Want []string
	}
	read(t, "questions.json", &asked)
	// The best of ten choices of fields each. One field has all words and the name twice.
	// With meanings, the name is added once more. Boosted fields as in Goblin find less,
	// because bleve scores each field separately.
	text, named := map[string]float64{"all": 1}, map[string]float64{"all": 1, "name": 0.5}
	for _, c := range []struct {
		name      string
		boosts    map[string]float64
		meanings  bool
		fuzziness int
	}{
		{"bleve", text, false, 0},
		{"bleve, with our meanings", named, true, 0},
		{"bleve, with our meanings, typo tolerant", named, true, 1},
	} {
		x := index(t, c.meanings)
		var sum [2][3]float64
		var n [2]float64 // all questions, and those not used for tuning
		began := time.Now()
		for i, q := range asked {
			at := slices.IndexFunc(ask(t, x, q.Ask, c.boosts, c.fuzziness), func(id string) bool { return slices.Contains(q.Want, id) })
			for h := range 1 + i%2 {
				n[h]++
				if at == 0 {
					sum[h][0]++
				}
				if at >= 0 {
					sum[h][2] += 1 / float64(at+1)
					if at < 5 {
						sum[h][1]++
					}
				}
			}
		}
		t.Logf("| %s | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | %v a question |", c.name,
			sum[0][0]/n[0], sum[0][1]/n[0], sum[0][2]/n[0], sum[1][0]/n[1], sum[1][1]/n[1], sum[1][2]/n[1],
			time.Since(began)/time.Duration(len(asked)))
		_ = x.Close()
	}
}
