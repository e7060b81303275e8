package search_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/meta/search"
	"goblin/registry"
)

var nouns = []string{
	"account", "address", "archive", "article", "backup", "balance", "budget", "calendar", "campaign", "catalogue",
	"category", "channel", "checklist", "comment", "component", "contact", "contract", "customer", "dashboard", "delivery",
	"deployment", "device", "document", "employee", "event", "feature", "forecast", "incident", "inventory", "invoice",
	"journal", "ledger", "location", "machine", "manual", "measurement", "meeting", "message", "milestone", "network",
	"notebook", "order", "package", "partner", "payment", "picture", "pipeline", "policy", "product", "profile",
	"project", "proposal", "protocol", "quarter", "question", "receipt", "record", "region", "release", "report",
	"request", "review", "schedule", "sensor", "service", "session", "shipment", "snapshot", "statement", "storage",
	"subscription", "supplier", "survey", "template", "ticket", "timeline", "transaction", "vehicle", "warehouse", "workflow",
}

func noun(i int) string { return nouns[uint32(i)*2654435761>>8%uint32(len(nouns))] }

// documents returns resources of about 230 bytes and 25 words each.
func documents(from, n int) [][]byte {
	items := make([][]byte, n)
	for j := range items {
		i := from + j
		a, b, c := noun(i), noun(i/7+1), noun(i/31+2)
		items[j] = fmt.Appendf(nil, `{"uri":"file:///srv/%s/%s/%07d/%s.md","name":"%s_%s_%d","title":"%s of the %s",`+
			`"description":"What the %s says about each %s and %s, in some words","mimeType":"text/%s","size":%d}`,
			a, b, i, c, a, c, i, a, b, c, a, b, []string{"markdown", "plain", "csv"}[i%3], i)
	}
	return items
}

// newLargeCatalog returns a catalog of servers with 1,000 resources each.
func newLargeCatalog(t testing.TB, entries int) *registry.Registry {
	var o registry.Options
	for i := range entries / 1000 {
		o.Servers = append(o.Servers, fmt.Sprintf("s%02d", i))
	}
	reg := registry.New(o)
	for i, s := range o.Servers {
		require.Empty(t, reg.SetList(s, registry.Resource, documents(1000*i, 1000)))
	}
	return reg
}

// Budget: 5 ms at 10,000 entries, 30 ms at 100,000.
func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		x := search.New(newLargeCatalog(b, n))
		for _, c := range []struct {
			name string
			q    search.Query
		}{
			{"one word", search.Query{Text: "invoice"}},
			{"three words", search.Query{Text: "shipment sensor policy"}},
			{"question", search.Query{Text: "what does the report of the warehouse say about suppliers"}},
			{"typo", search.Query{Text: "subscritpion"}},
			{"two typos", search.Query{Text: "invetory of warehuse"}},
			{"prefix", search.Query{Text: "sub"}},
			{"one letter", search.Query{Text: "s"}},
			{"one digit", search.Query{Text: "1"}},
			{"number", search.Query{Text: "4711"}},
			{"word of all", search.Query{Text: "words"}},
			{"words of all", search.Query{Text: "says words srv file each"}},
			{"of a server", search.Query{Text: "invoice", Server: "s03"}},
			{"of a type", search.Query{Text: "invoice", MIME: "text/c*"}},
			{"nothing found", search.Query{Text: "qqqqqqqqqq"}},
			{"far offset", search.Query{Text: "words", Offset: n - 100}},
			{"no words", search.Query{}},
			{"no words, of a type", search.Query{MIME: "text/c*"}},
		} {
			b.Run(fmt.Sprintf("%d/%s", n, c.name), func(b *testing.B) {
				_, err := x.Search(b.Context(), c.q) // reads the catalog
				require.NoError(b, err)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := x.Search(b.Context(), c.q); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkQuestions(b *testing.B) {
	x := search.New(toolCatalog(b))
	asked := questions(b)
	for i := 0; b.Loop(); i++ {
		_, err := x.Search(b.Context(), search.Query{Text: asked[i%len(asked)].Ask})
		require.NoError(b, err)
	}
}

// BenchmarkTools measures queries over 10,000 tools of 612 servers. Budget: 2 ms.
func BenchmarkTools(b *testing.B) {
	x := search.New(manyTools(b, 10_000))
	for _, c := range []struct{ name, text string }{
		{"keywords", "create issue github ticket bug new"},
		{"sentence", "show where we lose visitors between the landing page and payment"},
		{"two typos", "retreive lists of baord"},
		{"five typos", "emial recieve calandar atachment schedlue"},
		{"unknown words", "quartz zebra lollipop umbrella xylophone"},
		{"one server", "card"},
	} {
		b.Run(c.name, func(b *testing.B) {
			q := search.Query{Text: c.text, Kinds: []registry.Kind{registry.Tool}, Limit: 10}
			_, err := x.Search(b.Context(), q) // reads the catalog
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				_, err := x.Search(b.Context(), q)
				require.NoError(b, err)
			}
		})
	}
}

// manyTools returns a catalog of n tools: copies of the collected servers.
func manyTools(b *testing.B, n int) *registry.Registry {
	facts := toolFacts(b)
	var names []string
	lists := map[string][][]byte{}
	for i := 0; n > 0; i++ {
		c := facts[i%len(facts)]
		server := fmt.Sprintf("%s%d", c.Server, i/len(facts))
		names = append(names, server)
		for _, f := range c.Tools[:min(n, len(c.Tools))] {
			lists[server] = append(lists[server], toolJSON(b, f))
		}
		n -= min(n, len(c.Tools))
	}
	reg := registry.New(registry.Options{Servers: names})
	for _, s := range names {
		require.Empty(b, reg.SetList(s, registry.Tool, lists[s]))
	}
	return reg
}

func first(b *testing.B, x *search.Index) {
	_, err := x.Search(b.Context(), search.Query{Text: "invoice", Limit: 1})
	require.NoError(b, err)
}

// BenchmarkBuild100000 measures time and memory of the index of 100,000 entries.
func BenchmarkBuild100000(b *testing.B) {
	reg := newLargeCatalog(b, 100_000)
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for b.Loop() {
		b.StopTimer()
		before := heap()
		b.StartTimer()
		x := search.New(reg)
		first(b, x)
		b.StopTimer()
		b.ReportMetric(float64(heap()-before)/1e6, "MB-live")
		runtime.KeepAlive(x)
		b.StartTimer()
	}
}

// BenchmarkChangeOf1000 measures the time from a server's new list of 1,000 different
// entries to the first answer.
func BenchmarkChangeOf1000(b *testing.B) {
	reg := newLargeCatalog(b, 100_000)
	x := search.New(reg)
	first(b, x)
	lists := [][][]byte{documents(500, 1000), documents(3000, 1000)}
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		reg.SetList("s42", registry.Resource, lists[i%2])
		b.StartTimer()
		first(b, x)
	}
}

// BenchmarkEntryAmong100000 adds an entry to a list of 100,000.
func BenchmarkEntryAmong100000(b *testing.B) {
	reg := registry.New(registry.Options{Servers: []string{"s"}})
	lists := [][][]byte{documents(0, 100_000), documents(0, 100_001)}
	reg.SetList("s", registry.Resource, lists[0])
	x := search.New(reg)
	first(b, x)
	for i := 1; b.Loop(); i++ {
		b.StopTimer()
		reg.SetList("s", registry.Resource, lists[i%2])
		b.StartTimer()
		first(b, x)
	}
}
