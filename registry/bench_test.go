package registry

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// library returns resources of a typical size: about 200 bytes each.
func library(server string, from, n int) [][]byte {
	items := make([][]byte, n)
	for i := range items {
		items[i] = fmt.Appendf(nil, `{"uri":"file:///srv/%s/documents/%07d/report.md","name":"report %d","title":"Report %d",`+
			`"description":"What happened on day %d, in some words","mimeType":"text/markdown","size":%d}`,
			server, from+i, from+i, from+i, from+i, 1000+i)
	}
	return items
}

// big returns a catalog of 99 servers with 1,000 resources and tools each, and the server
// "s99" without lists.
func big(b testing.TB) *Registry {
	var o Options
	for i := range 100 {
		o.Servers = append(o.Servers, fmt.Sprintf("s%02d", i))
	}
	r := New(o)
	for i, s := range o.Servers[:99] {
		r.SetList(s, Resource, library(s, i, 1000))
		tools := make([][]byte, 20)
		for j := range tools {
			tools[j] = fmt.Appendf(nil, `{"name":"do_thing_%d","inputSchema":{"type":"object"}}`, j)
		}
		r.SetList(s, Tool, tools)
	}
	return r
}

// Budget: 50 ms.
func BenchmarkListOf1000InACatalogOf100000(b *testing.B) {
	r := big(b)
	lists := [][][]byte{library("s99", 0, 1000), library("s99", 1, 1000)}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.SetList("s99", Resource, lists[i%2])
	}
}

// Budget: 1.5 s.
func BenchmarkListOf100000(b *testing.B) {
	for _, flat := range []bool{false, true} {
		b.Run(fmt.Sprintf("flat=%v", flat), func(b *testing.B) {
			r := New(Options{Servers: []string{"s"}, Flat: flat})
			lists := [][][]byte{library("s", 0, 100_000), library("s", 1, 100_000)}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				r.SetList("s", Resource, lists[i%2])
			}
		})
	}
}

// Budget for the whole program with 100,000 resources: 150 MB resident.
func BenchmarkMemoryOf100000(b *testing.B) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for b.Loop() {
		before := heap()
		r := New(Options{Servers: []string{"s"}})
		r.SetList("s", Resource, library("s", 0, 100_000))
		b.ReportMetric(float64(heap()-before)/1e6, "MB-live")
		runtime.KeepAlive(r)
	}
}

// Budget: O(1) allocations.
func BenchmarkPage(b *testing.B) {
	for _, k := range []Kind{Resource, Tool} {
		b.Run(k.String(), func(b *testing.B) {
			s := big(b).Load()
			p, err := s.Page(k, "")
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Page(k, p.Next); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Budget: about 200 ns and no allocation for listed names.
func BenchmarkResolve(b *testing.B) {
	r := big(b)
	r.SetList("s99", Template, [][]byte{item(Template, "file:///x/{+path}")})
	r.SetList("s99", Prompt, [][]byte{item(Prompt, "help")})
	for _, c := range []struct {
		name    string
		resolve func(string) (Target, error)
		arg     string
	}{
		{"resource/listed", r.ResolveResource, "mcp://s42/file:///srv/s42/documents/0000500/report.md"},
		{"resource/raw", r.ResolveResource, "file:///srv/s42/documents/0000500/report.md"},
		{"resource/flat", r.ResolveResource, "s42_file_srv_s42_documents_0000500_report.md"},
		{"resource/normalised", r.ResolveResource, "mcp://s42/file:///srv/./s42/documents/0000500/report.md"},
		{"resource/template", r.ResolveResource, "mcp://s99/file:///x/y"},
		{"tool/listed", r.ResolveTool, "s42_do_thing_7"},
		{"prompt/listed", r.ResolvePrompt, "s99/help"},
		{"prompt/bare", r.ResolvePrompt, "help"},
		{"tool/start", r.listedForTest(Tool), "s42_do_thing_7"},
		{"resource/start", r.listedForTest(Resource), "mcp://s42/file:///srv/s42/documents/0000500/report.md"},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.resolve(c.arg); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// listedForTest is Listed with the signature of the other lookups.
func (r *Registry) listedForTest(k Kind) func(string) (Target, error) {
	return func(name string) (t Target, err error) {
		t, ok := r.Load().LookupListed(k, name)
		if !ok {
			err = ErrBadCursor
		}
		return t, err
	}
}

// The time of a lookup is limited for any list and any name: about 1 ms with templates,
// microseconds without.
func BenchmarkResolveHostile(b *testing.B) {
	var o Options
	for i := range 20 {
		o.Servers = append(o.Servers, fmt.Sprint("s", i))
	}
	r := New(o)
	hostileTemplates(r)
	prefixless := make([]string, 10_000)
	for i := range prefixless {
		prefixless[i] = fmt.Sprintf("{+a}{+b}{?c,d}%d", i)
	}
	set(r, "s9", Template, prefixless...)
	under := func(n int) string { return strings.Repeat("s1_", n/3) }
	for _, c := range []struct {
		name    string
		resolve func(string) (Target, error)
		arg     string
	}{
		{"tool/4kB", r.ResolveTool, under(MaxName)},
		{"tool/400kB", r.ResolveTool, under(400_000)},
		{"prompt/4kB", r.ResolvePrompt, under(MaxName)},
		{"flat/64kB", r.ResolveResource, under(MaxURI)},
		{"flat/400kB", r.ResolveResource, under(400_000)},
		{"uri/64kB", r.ResolveResource, "x:" + strings.Repeat("%2e/", (MaxURI-2)/4)},
		{"namespaced/64kB", r.ResolveResource, "mcp://s0/x:" + strings.Repeat("%2e/", (MaxURI-20)/4)},
		{"templates/100B", r.ResolveResource, "x:" + strings.Repeat("a/", 50)},
		{"templates/8kB", r.ResolveResource, "x:" + strings.Repeat("a/", 4095)},
		{"prefixless/100B", r.ResolveResource, "y:" + strings.Repeat("a/", 50)},
		{"reference/8kB", r.Load().ResolveTemplate, "x:" + strings.Repeat("a/", 4095)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.resolve(c.arg); err == nil {
					b.Fatal("found")
				}
			}
		})
	}
}

func BenchmarkListedURI(b *testing.B) {
	r := big(b)
	b.ReportAllocs()
	for b.Loop() {
		r.ListedURI("s42", "file:///srv/s42/documents/0000500/report.md")
	}
}

func BenchmarkPublish(b *testing.B) {
	r := New(Options{})
	ch := r.Watch(b.Context())
	b.ReportAllocs()
	for b.Loop() {
		r.feed.publish(Servers)
	}
	<-ch
}

func BenchmarkContents(b *testing.B) {
	r := New(Options{Servers: []string{"a"}})
	c := r.Contents()
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("file:///srv/documents/%07d/report.md", i)
		inv := asked(Resource, "a", names[i])
		inv.Result = make([]byte, 1000)
		c.Put(inv)
	}
	ch := r.Watch(b.Context())
	b.Run("put", func(b *testing.B) {
		inv := asked(Resource, "a", "")
		inv.Result = make([]byte, 1000)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			inv.Name = names[i%len(names)]
			c.Put(inv)
		}
	})
	b.Run("resource", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			c.Last(Resource, "a", names[i%len(names)])
		}
	})
	<-ch
}

// Budget: 10,000 per second must take less than 1 % of a core.
func BenchmarkTouched(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprintf("uris=%d", n), func(b *testing.B) {
			r := New(Options{Servers: []string{"a"}})
			uris := make([]string, n)
			for i := range uris {
				uris[i] = fmt.Sprintf("file:///srv/documents/%07d/report.md", i)
				r.SetSubscription(SubscriptionState{Server: "a", URI: uris[i], Status: SubscriptionOn})
				r.Contents().Put(asked(Resource, "a", uris[i]))
			}
			ch := r.Watch(b.Context())
			before := r.Logs().Stats().Next
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				r.ResourceUpdated("a", uris[i%n])
			}
			<-ch
			b.ReportMetric(float64(r.Logs().Stats().Next-before)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// BenchmarkWindows measures the reads of the UI after a change.
func BenchmarkWindows(b *testing.B) {
	r := New(Options{Servers: []string{"a"}})
	for i := range 1000 {
		r.SetSubscription(SubscriptionState{Server: "a", URI: fmt.Sprintf("file:///srv/documents/%07d", i), Status: SubscriptionOn})
	}
	for range maxTrafficRecords {
		r.Traffic().Append(TrafficRecord{Method: "tools/call", Name: "x"})
		r.Logs().Append(LogRecord{Text: "line"})
	}
	next := r.Traffic().Stats().Next
	for _, c := range []struct {
		name string
		look func()
	}{
		{"subscriptions=1000", func() { r.Subscriptions() }},
		{"subscriptions=1000/resorted", func() {
			r.subscriptions.order = nil
			r.Subscriptions()
		}},
		{"traffic=2000", func() { r.Traffic().Window(next-2000, -1) }},
		{"logs=2000", func() { r.Logs().Window(next-2000, -1) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.look()
			}
		})
	}
}
