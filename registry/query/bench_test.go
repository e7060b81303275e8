package query_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"goblin/registry/query"
)

const manyRows = 100_000

type uri struct{ server, mime, text string }

// exampleURIs returns URIs like those of a large catalog, about 75 bytes each.
func exampleURIs() []uri {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	all := make([]uri, manyRows)
	for i := range all {
		server := []string{"files", "gitea", "github", "docs", "linear", "postgres"}[i*6/manyRows]
		kind := pick("json", "md", "yaml", "txt", "go")
		all[i] = uri{
			server: server,
			mime:   map[string]string{"json": "application/json", "md": "text/markdown", "yaml": "text/x-yaml", "txt": "text/plain", "go": "text/x-go"}[kind],
			text: fmt.Sprintf("mcp://%s/file:///srv/%s/%s/%s/%04d/%s-%s-%d.%s", server,
				pick("readme", "session", "config", "workspace"), pick("payments", "users", "orders", "catalog", "invoices"), pick("internal", "public", "archive"),
				r.IntN(10000), pick("schema", "config", "readme", "index", "handler", "report"), pick("main", "users", "test", "draft"), r.IntN(100), kind),
		}
	}
	return all
}

func BenchmarkMatch(b *testing.B) {
	all := exampleURIs()
	ix := query.NewIndex(manyRows, func(i int) string { return all[i].text })
	fs := []query.Field{
		{Name: "server", Kind: query.Text, Text: func(i int) string { return all[i].server }},
		{Name: "mime", Kind: query.Text, Text: func(i int) string { return all[i].mime }},
	}
	for _, text := range []string{
		"", "c", "conf", "config-main", "zzqx", "Conf", "-conf", "~c", "~conf", "~cfgmain", "server:gi mime:json readme", "mime:text/*", "file config main 7",
	} {
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			var n int
			for b.Loop() {
				found, err := query.Parse(text, fs).Match(b.Context(), ix, time.Time{})
				if err != nil {
					b.Fatal(err)
				}
				n = len(found)
			}
			b.ReportMetric(float64(n), "rows")
		})
	}
}

func BenchmarkExcludes(b *testing.B) {
	all := exampleURIs()
	ix := query.NewIndex(manyRows, func(i int) string { return all[i].text })
	q := query.Parse("config readme zzqx", nil)
	for b.Loop() {
		if q.ExcludingTerm(b.Context(), ix, time.Time{}) != "zzqx" {
			b.Fatal("not named")
		}
	}
}

func BenchmarkNewIndex(b *testing.B) {
	all := exampleURIs()
	b.ReportAllocs()
	for b.Loop() {
		query.NewIndex(manyRows, func(i int) string { return all[i].text })
	}
}

// BenchmarkSpans measures a window of rows.
func BenchmarkSpans(b *testing.B) {
	all := exampleURIs()[:60]
	q := query.Parse("config main ~srv", nil)
	b.ReportAllocs()
	for b.Loop() {
		for i := range all {
			q.Spans(all[i].text)
		}
	}
}
