package search_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"goblin/meta/search"
	"goblin/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type object = map[string]any

func setList(t testing.TB, reg *registry.Registry, server string, kind registry.Kind, items ...object) {
	t.Helper()
	var raw [][]byte
	for _, o := range items {
		item, err := json.Marshal(o)
		require.NoError(t, err)
		raw = append(raw, item)
	}
	require.Empty(t, reg.SetList(server, kind, raw))
}

func find(t testing.TB, x *search.Index, q search.Query) (listed []string, total int) {
	t.Helper()
	found, err := x.Search(t.Context(), q)
	require.NoError(t, err)
	for _, h := range found.Hits {
		listed = append(listed, h.Entry.Listed)
	}
	return listed, found.Total
}

// newSmallCatalog returns a catalog with an entry for each row below.
func newSmallCatalog(t testing.TB) *registry.Registry {
	reg := registry.New(registry.Options{Servers: []string{"files", "shop", "ops"}})
	setList(t, reg, "files", registry.Resource,
		object{"uri": "file:///var/log/app.log", "name": "app.log", "mimeType": "text/plain"},
		object{"uri": "file:///etc/app/settings.yaml", "name": "settings", "mimeType": "application/yaml", "description": "What the app reads when it starts"},
		object{"uri": "file:///img/logo.png", "name": "logo", "mimeType": "image/png"},
		object{"uri": "file:///img/logo.svg", "name": "logo", "mimeType": "image/svg+xml; charset=utf-8"},
		object{"uri": "db://main", "name": "main"},
		object{"uri": "file:///srv/Müller/Übersicht.md", "name": "Übersicht", "mimeType": "text/markdown"},
		object{"uri": "file:///srv/東京.txt", "name": "東京都の天気", "mimeType": "text/plain"},
	)
	setList(t, reg, "files", registry.Template, object{"uriTemplate": "file:///reports/{year}/{quarter}", "name": "quarterly report"})
	setList(t, reg, "shop", registry.Resource, object{"uri": "db://main", "name": "main", "description": "orders"})
	setList(t, reg, "shop", registry.Tool,
		object{"name": "getUserProfile", "description": "Who somebody is"},
		object{"name": "create_order", "title": "Place an order", "inputSchema": object{"type": "object", "properties": object{"customerId": object{}}}},
		object{"name": "list_orders", "description": "All orders of a customer"},
		object{"name": "query", "description": "Orders by words"},
	)
	setList(t, reg, "shop", registry.Prompt, object{"name": "complaint", "description": "Answers a complaint", "arguments": []object{{"name": "warrantyNumber"}}})
	setList(t, reg, "ops", registry.Tool,
		object{"name": "k8s_scale", "description": "Sets the number of replicas"},
		object{"name": "s3_upload"},
		object{"name": "HTTPServerRestart"},
		object{"name": "takeScreenshot"},
		object{"name": "base64_encode"},
		object{"name": "deployments_validate"},
	)
	return reg
}

func TestSearchFinds(t *testing.T) {
	x := search.New(newSmallCatalog(t))
	for _, c := range []struct {
		name, text string
		first      string // listed name of the best hit, or ""
	}{
		{"R3-32 a name before a description", "app", "mcp://files/file:///var/log/app.log"},
		{"R3-32 a typo in two words written as one", "aplog", "mcp://files/file:///var/log/app.log"},
		{"a name without its punctuation", "applog", "mcp://files/file:///var/log/app.log"},
		{"a part of camel case", "profile", "shop_getUserProfile"},
		{"camel case as it is", "getUserProfile", "shop_getUserProfile"},
		{"camel case in small letters", "getuserprofile", "shop_getUserProfile"},
		{"the word after an acronym", "server restart", "ops_HTTPServerRestart"},
		{"an acronym", "http", "ops_HTTPServerRestart"},
		{"letters with digits", "k8s", "ops_k8s_scale"},
		{"another piece of letters with digits", "S3", "ops_s3_upload"},
		{"nothing but a piece of single letters", "sS", ""},
		{"a number", "64", "ops_base64_encode"},
		{"two words for one", "screen shot", "ops_takeScreenshot"},
		{"one word for two", "userprofile", "shop_getUserProfile"},
		{"the beginning of a word", "comp", "shop/complaint"},
		{"one letter", "c", "shop_create_order"},
		{"a swap of letters", "profiel", "shop_getUserProfile"},
		{"two edits in a long word", "screensoht", "ops_takeScreenshot"},
		{"no edits in a short word", "hgo", ""},
		{"a plural", "profiles", "shop_getUserProfile"},
		{"another ending", "validating a deployment", "ops_deployments_validate"},
		{"an argument of a tool", "customer id create", "shop_create_order"},
		{"an argument of a prompt", "warranty", "shop/complaint"},
		{"a title", "place order", "shop_create_order"},
		{"a part of a URI", "etc", "mcp://files/file:///etc/app/settings.yaml"},
		{"a template's variable", "year", "mcp://files/file:///reports/{year}/{quarter}"},
		{"a word of the same meaning", "kubernetes", "ops_k8s_scale"},
		{"a question", "how can I see who a user is?", "shop_getUserProfile"},
		{"nothing but words that tell nothing", "who is", "shop_getUserProfile"},
		{"letters with marks", "übersicht", "mcp://files/file:///srv/Müller/Übersicht.md"},
		{"letters without their marks", "ubersicht muller", "mcp://files/file:///srv/Müller/Übersicht.md"},
		{"a script without spaces", "天気", "mcp://files/file:///srv/東京.txt"},
		{"a server's name", "ops upload", "ops_s3_upload"},
		{"nothing", "zzzzzz", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			listed, total := find(t, x, search.Query{Text: c.text})
			if c.first == "" {
				require.Empty(t, listed)
				require.Zero(t, total)
				return
			}
			require.NotEmpty(t, listed)
			require.Equal(t, c.first, listed[0], "of %v", listed)
			require.Equal(t, len(listed), total)
		})
	}
}

func TestFieldsCountInTheirOrder(t *testing.T) {
	reg := registry.New(registry.Options{Servers: []string{"s"}})
	setList(t, reg, "s", registry.Tool,
		object{"name": "e", "inputSchema": object{"properties": object{"needle": object{}}}},
		object{"name": "c", "description": "one needle in a stack of hay"},
		object{"name": "b", "title": "The needle"},
		object{"name": "a_needle"},
	)
	setList(t, reg, "s", registry.Resource, object{"uri": "x://stack/needle", "name": "d"})
	listed, _ := find(t, search.New(reg), search.Query{Text: "needle"})
	require.Equal(t, []string{"s_a_needle", "s_b", "s_c", "mcp://s/x://stack/needle", "s_e"}, listed)
}

func TestFilters(t *testing.T) {
	x := search.New(newSmallCatalog(t))
	for _, c := range []struct {
		name  string
		q     search.Query
		want  []string
		total int
	}{
		{"R3-32 a type", search.Query{Text: "app", MIME: "text/plain"}, []string{"mcp://files/file:///var/log/app.log"}, 1},
		{"a glob of types, ties by listed name", search.Query{Text: "logo", MIME: "image/*"}, []string{"mcp://files/file:///img/logo.png", "mcp://files/file:///img/logo.svg"}, 2},
		{"a type with parameters", search.Query{Text: "logo", MIME: "IMAGE/svg+xml"}, []string{"mcp://files/file:///img/logo.svg"}, 1},
		{"any type", search.Query{Text: "main logo", MIME: "*", Limit: 1}, []string{"mcp://files/file:///img/logo.png"}, 2},
		{"R3-32 equal raw URIs", search.Query{Text: "main", Kinds: []registry.Kind{registry.Resource}}, []string{"mcp://files/db://main", "mcp://shop/db://main"}, 2},
		{"a server", search.Query{Text: "main", Server: "shop"}, []string{"mcp://shop/db://main"}, 1},
		{"a server that is not there", search.Query{Text: "main", Server: "nobody"}, nil, 0},
		{"a kind", search.Query{Text: "complaint order", Kinds: []registry.Kind{registry.Prompt, registry.Template}}, []string{"shop/complaint"}, 1},
		{"no words: all, in listed order", search.Query{Kinds: []registry.Kind{registry.Tool}, Server: "shop"}, []string{"shop_create_order", "shop_getUserProfile", "shop_list_orders", "shop_query"}, 4},
		{"no words, a page", search.Query{Kinds: []registry.Kind{registry.Tool}, Limit: 2, Offset: 3}, []string{"ops_k8s_scale", "ops_s3_upload"}, 10},
		{"no words, a type", search.Query{MIME: "image/*", Limit: 1}, []string{"mcp://files/file:///img/logo.png"}, 2},
		{"words, a page", search.Query{Text: "logo", Limit: 1, Offset: 1}, []string{"mcp://files/file:///img/logo.svg"}, 2},
		{"a page after the last", search.Query{Text: "logo", Offset: 7}, nil, 2},
		{"numbers below zero", search.Query{Text: "logo", Offset: -1, Limit: -1}, []string{"mcp://files/file:///img/logo.png", "mcp://files/file:///img/logo.svg"}, 2},
		{"numbers beyond all", search.Query{Text: "logo", Offset: 1, Limit: 1<<63 - 1}, []string{"mcp://files/file:///img/logo.svg"}, 2},
		{"punctuation only", search.Query{Text: " -/ ", MIME: "image/*"}, []string{"mcp://files/file:///img/logo.png", "mcp://files/file:///img/logo.svg"}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			listed, total := find(t, x, c.q)
			require.Equal(t, c.want, listed)
			require.Equal(t, c.total, total)
		})
	}
	_, err := x.Search(t.Context(), search.Query{MIME: "image/["})
	require.ErrorIs(t, err, registry.ErrBadMIME)
}

func TestPagesTogetherAreTheWholeAnswer(t *testing.T) {
	x := search.New(newLargeCatalog(t, 2000))
	whole, total := find(t, x, search.Query{Text: "invoice report", Limit: 1 << 30})
	require.Len(t, whole, total)
	var paged []string
	for offset := 0; offset < total; offset += 37 {
		page, n := find(t, x, search.Query{Text: "invoice report", Limit: 37, Offset: offset})
		require.Equal(t, total, n)
		paged = append(paged, page...)
	}
	require.Equal(t, whole, paged)
}

func TestQueriesSeeWhatChangedBefore(t *testing.T) {
	reg := newSmallCatalog(t)
	x := search.New(reg)
	see := func(text string, want ...string) {
		t.Helper()
		listed, _ := find(t, x, search.Query{Text: text})
		require.Equal(t, want, listed)
	}
	see("complaint", "shop/complaint")
	setList(t, reg, "shop", registry.Prompt, object{"name": "refund"})
	see("complaint")
	see("refund", "shop/refund")
	setList(t, reg, "shop", registry.Prompt, object{"name": "refund", "description": "Returns money to grumblers"})
	see("grumblers", "shop/refund")
	reg.SetVisible("shop", false)
	see("grumblers")
	reg.SetVisible("shop", true)
	see("grumblers", "shop/refund")
	reg.SetServers([]string{"files", "ops"}, nil)
	see("grumblers")
	reg.SetServers([]string{"files", "ops", "late"}, nil)
	setList(t, reg, "late", registry.Tool, object{"name": "grumble"})
	see("grumblers", "late_grumble")
	require.NoError(t, reg.AddResource(registry.LocalResource{URI: "goblin://hints", Name: "hints", Read: func(context.Context) (string, error) { return "", nil }}))
	see("hints", "goblin://hints")
}

// TestChangesAreAsIfReadAnew compares an index that follows changes with a new one.
func TestChangesAreAsIfReadAnew(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		reg := registry.New(registry.Options{Servers: []string{"long", "short"}})
		x := search.New(reg)
		long := documents(0, 30)
		for range rapid.IntRange(1, 8).Draw(rt, "changes") {
			switch rapid.IntRange(0, 3).Draw(rt, "change") {
			case 0:
				from := rapid.IntRange(0, len(long)).Draw(rt, "from")
				long = slices.Delete(slices.Clone(long), from, min(len(long), from+rapid.IntRange(1, 20).Draw(rt, "removed")))
			case 1:
				long = append(slices.Clone(long), documents(rapid.IntRange(500, 900).Draw(rt, "from"), rapid.IntRange(1, 15).Draw(rt, "added"))...)
			case 2:
				if long = slices.Clone(long); len(long) == 0 {
					break
				}
				at := rapid.IntRange(0, len(long)-1).Draw(rt, "at")
				long[at] = []byte(strings.Replace(string(long[at]), "some words", "invoice or other", 1))
			case 3:
				reg.SetList("short", registry.Resource, documents(rapid.IntRange(0, 50).Draw(rt, "from"), rapid.IntRange(0, 20).Draw(rt, "entries")))
			}
			reg.SetList("long", registry.Resource, long)
			_, err := x.Search(context.Background(), search.Query{Text: "words", Limit: 1}) // reads the change
			require.NoError(rt, err)
		}
		fresh := search.New(reg)
		for _, text := range []string{"invoice", "words", "report of the warehouse", "rep", "invioce"} {
			q := search.Query{Text: text, Limit: 50}
			found, err := x.Search(context.Background(), q)
			require.NoError(rt, err)
			want, err := fresh.Search(context.Background(), q)
			require.NoError(rt, err)
			require.Equal(rt, want.Total, found.Total, text)
			require.Equal(rt, describeHits(want.Hits), describeHits(found.Hits), text)
		}
	})
}

func describeHits(hits []search.Hit) (lines []string) {
	for _, h := range hits {
		lines = append(lines, fmt.Sprintf("%s %.4f", h.Entry.Listed, h.Score))
	}
	return lines
}

func TestRunReadsChangesBeforeAnybodyAsks(t *testing.T) {
	reg := newSmallCatalog(t)
	x := search.New(reg)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { x.Run(ctx) })
	upToDate := func() bool { return search.UpToDate(x) }
	require.Eventually(t, upToDate, 20*time.Second, time.Millisecond)
	setList(t, reg, "ops", registry.Prompt, object{"name": "news"})
	require.Eventually(t, upToDate, 20*time.Second, time.Millisecond)
	cancel()
	running.Wait()
	_, err := x.Search(ctx, search.Query{Text: "news"})
	require.ErrorIs(t, err, context.Canceled)
}

func TestQueriesBesideChanges(t *testing.T) {
	reg := newSmallCatalog(t)
	x := search.New(reg)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { x.Run(ctx) })
	for range 3 {
		running.Go(func() {
			for ctx.Err() == nil {
				_, err := x.Search(ctx, search.Query{Text: "order report"})
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
		})
	}
	for i := range 5 {
		reg.SetList("ops", registry.Resource, documents(i, 1100+i))
		listed, _ := find(t, x, search.Query{Text: fmt.Sprint(2*i + 1099), Server: "ops"})
		require.Contains(t, strings.Join(listed, " "), fmt.Sprintf("/%07d/", 2*i+1099))
	}
	cancel()
	running.Wait()
}

// FuzzSearch runs any query on any catalog.
func FuzzSearch(f *testing.F) {
	for _, s := range []string{"app", "aplog", "getUserName2FA", "ÜBER straße", "東京 tower", "\xff\xfe", "a' ’b", "aB\x00", strings.Repeat("aB1", 500), "ﬁle İi"} {
		f.Add(s, "x y "+s, "text/*")
	}
	f.Fuzz(func(t *testing.T, text, name, mime string) {
		reg := registry.New(registry.Options{Servers: []string{"s"}})
		item, err := json.Marshal(object{"name": name, "description": text, "inputSchema": object{"properties": object{name: 1, text: 2}}})
		require.NoError(t, err)
		other, err := json.Marshal(object{"name": "other", "description": name + text})
		require.NoError(t, err)
		reg.SetList("s", registry.Tool, [][]byte{item, other})
		x := search.New(reg)
		for _, q := range []search.Query{{Text: text}, {Text: name, MIME: mime}, {Text: text + name, Limit: 1, Offset: 1}} {
			began := time.Now()
			found, err := x.Search(t.Context(), q)
			require.Less(t, time.Since(began), 10*time.Second)
			if err != nil {
				require.ErrorIs(t, err, registry.ErrBadMIME)
				continue
			}
			require.LessOrEqual(t, len(found.Hits), found.Total)
			for i, h := range found.Hits {
				require.True(t, i == 0 || found.Hits[i-1].Score >= h.Score)
			}
		}
	})
}

func TestWordsThatToolsUse(t *testing.T) {
	t.Parallel()
	reg := registry.New(registry.Options{Servers: []string{"a"}})
	argument := func(of object) object {
		return object{"type": "object", "properties": object{"x": of}}
	}
	setList(t, reg, "a", registry.Tool,
		object{"name": "alert", "description": "Them that do not care are not told"},
		object{"name": "count_rows"},
		object{"name": "jot", "description": "Keeps notes"},
		object{"name": "look", "description": "Sets themes"},
		object{"name": "paint", "inputSchema": argument(object{"description": "The hue of it", "enum": []any{"crimson", 7, nil}})},
		object{"name": "odd", "inputSchema": argument(object{"description": []any{"hue"}, "enum": "crimson"})},
		object{"name": "worse", "inputSchema": object{"properties": object{"x": "crimson"}}},
		object{"name": "many_parts"},
	)
	setList(t, reg, "a", registry.Prompt, object{"name": "ask", "arguments": []object{{"name": "x", "description": "A topic"}}})
	require.NoError(t, reg.AddTool(registry.LocalTool{
		Definition: []byte(`{"name":"own","description":"crimson hue"}`),
		Call:       func(context.Context, []byte) ([]byte, error) { return nil, nil },
	}))
	x := search.New(reg)
	for ask, want := range map[string][]string{
		"note":           {"a_jot"},
		"noted":          {"a_jot"},
		"theme":          {"a_look"},
		"crimson":        {"a_paint"},
		"hue":            {"a_paint"},
		"topic":          {"a/ask"},
		"goblin crimson": {"a_paint", "own"},
	} {
		found, _ := find(t, x, search.Query{Text: ask})
		require.ElementsMatch(t, want, found, ask)
	}
	found, _ := find(t, x, search.Query{Text: "how many rows"})
	require.Equal(t, "a_count_rows", found[0])
	found, _ = find(t, x, search.Query{Text: "how many"})
	require.Equal(t, "a_count_rows", found[0], "counting matches better than the word many")
	found, _ = find(t, x, search.Query{Text: "crimson", Server: registry.Local})
	require.Equal(t, []string{"own"}, found)
}

func TestEachMisspelledWordIsCorrected(t *testing.T) {
	reg := registry.New(registry.Options{Servers: []string{"a"}})
	setList(t, reg, "a", registry.Tool,
		object{"name": "delete_label"},
		object{"name": "delete_table"},
		object{"name": "read_label"},
		object{"name": "launch_rocket"},
		object{"name": "open_calendar"},
		object{"name": "shovel"},
	)
	x := search.New(reg)
	for ask, want := range map[string]string{
		"delte lable":      "a_delete_label", // table is one edit away too, but begins otherwise
		"remvoe the lable": "a_delete_label", // a synonym of the corrected word
		"opne calandr":     "a_open_calendar",
		"lanuch":           "a_launch_rocket",
	} {
		found, _ := find(t, x, search.Query{Text: ask})
		require.NotEmpty(t, found, ask)
		require.Equal(t, want, found[0], ask)
	}
	found, _ := find(t, x, search.Query{Text: "shoudl"})
	require.Empty(t, found, "should is more likely than shovel")
}

// Among more terms than one query compares, the second misspelled word is corrected too.
func TestMisspelledWordsShareTheWork(t *testing.T) {
	reg := registry.New(registry.Options{Servers: []string{"s00", "wordy"}})
	setList(t, reg, "s00", registry.Tool, object{"name": "water_flowers"})
	reg.SetList("wordy", registry.Tool, wordyTools(100, 1000, 1))
	x := search.New(reg)
	search.BoundComparisons(x, 1000)
	found, _ := find(t, x, search.Query{Text: "watre flwoers", Limit: 1})
	require.Equal(t, []string{"s00_water_flowers"}, found)
}

func TestOneServerDoesNotTakeAllPlaces(t *testing.T) {
	reg := registry.New(registry.Options{Servers: []string{"big", "other", "third"}})
	setList(t, reg, "big", registry.Tool,
		object{"name": "invoice"}, object{"name": "invoice_b"}, object{"name": "invoice_c"},
		object{"name": "invoice_d"}, object{"name": "invoice_e"})
	setList(t, reg, "other", registry.Tool,
		object{"name": "pay", "description": "Pays an invoice"}, object{"name": "send", "description": "Sends an invoice"})
	setList(t, reg, "third", registry.Tool, object{"name": "print", "description": "Prints a text, such as an invoice"})
	x := search.New(reg)
	all := []string{
		"big_invoice", "big_invoice_b", "other_pay", "big_invoice_c", "big_invoice_d", "third_print",
		"big_invoice_e", "other_send",
	}
	for limit := 1; limit <= len(all); limit++ {
		found, total := find(t, x, search.Query{Text: "invoice", Limit: limit})
		require.Equal(t, all[:limit], found)
		require.Equal(t, len(all), total)
	}
	found, _ := find(t, x, search.Query{Text: "invoice", Limit: 3, Offset: 4})
	require.Equal(t, all[4:7], found)
	found, _ = find(t, x, search.Query{Text: "big invoice", Limit: 5})
	require.NotContains(t, found, "other_pay", "the query names the server")
	found, _ = find(t, x, search.Query{Text: "invoice", Server: "big", Limit: 3})
	require.Equal(t, []string{"big_invoice", "big_invoice_b", "big_invoice_c"}, found)
}
