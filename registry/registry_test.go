package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// catalog returns a registry from a text with one entry per line: server kind original.
func catalog(t testing.TB, o Options, text string) *Registry {
	t.Helper()
	lists := map[string]*[Kinds][]string{}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		server, rest, _ := strings.Cut(strings.TrimLeft(line, "\t"), " ")
		if lists[server] == nil {
			lists[server] = &[Kinds][]string{}
		}
		kind, name, ok := strings.Cut(rest, " ")
		if !ok {
			continue
		}
		k, ok := map[string]Kind{"tool": Tool, "prompt": Prompt, "resource": Resource, "template": Template, "skill": Skill}[kind]
		if !ok {
			t.Fatalf("no kind in %q", line)
		}
		lists[server][k] = append(lists[server][k], name)
	}
	if o.Servers == nil {
		for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
			server, _, _ := strings.Cut(strings.TrimLeft(line, "\t"), " ")
			o.Servers = append(o.Servers, server)
		}
	}
	r := New(o)
	for server, l := range lists {
		for k := range Kind(Kinds) {
			if l[k] != nil {
				set(r, server, k, l[k]...)
			}
		}
	}
	return r
}

func item(k Kind, name string) []byte {
	def := map[string]any{nameMember(k): name, "description": "about " + name}
	if k == Skill {
		def = map[string]any{"uri": name, "frontmatter": map[string]any{"name": name, "description": "about " + name}, "resources": "dynamic"}
	}
	b, err := json.Marshal(def)
	if err != nil {
		panic(err)
	}
	return b
}

func set(r *Registry, server string, k Kind, names ...string) []Problem {
	items := make([][]byte, len(names))
	for i, n := range names {
		items[i] = item(k, n)
	}
	return r.SetList(server, k, items)
}

func listed(s *Snapshot, k Kind) []string {
	var out []string
	for e := range s.All(k) {
		out = append(out, e.Listed)
	}
	return out
}

// pages reads all pages and decodes them as a client does.
func pages(t testing.TB, s *Snapshot, k Kind) [][]map[string]any {
	t.Helper()
	var out [][]map[string]any
	for cursor := ""; ; {
		p, err := s.Page(k, cursor)
		require.NoError(t, err)
		var entries []map[string]any
		text := append([]byte{'['}, bytes.Join(p.Chunks, nil)...)
		require.NoError(t, json.Unmarshal(append(text, ']'), &entries))
		out = append(out, entries)
		if cursor = p.Next; cursor == "" {
			return out
		}
	}
}

func entryNames(k Kind, pages [][]map[string]any) []string {
	var out []string
	for _, p := range pages {
		for _, e := range p {
			out = append(out, e[nameMember(k)].(string))
		}
	}
	return out
}

func TestDefinitionsKeepTheirBytes(t *testing.T) {
	r := New(Options{Servers: []string{"s"}})
	require.Empty(t, r.SetList("s", Resource, [][]byte{
		[]byte(" {\n \"size\": 12, \"x\":1.0e2,\"name\":\"n\\u00e9\",\t\"uri\" : \"file:\\/\\/\\/a\\\"b\", \"title\":\"T\",\r\n\"mimeType\":\"text/plain\"}\n"),
	}))
	require.Empty(t, r.SetList("s", Tool, [][]byte{
		[]byte(`{"name":"t","annotations":{"title":"hint"},"_meta":{"ui":{"resourceUri":"ui://x"},"ui/resourceUri":"ui://y","k":12345678901234567890}}`),
	}))
	s := r.Load()
	var e *Entry
	for e = range s.All(Resource) {
	}
	require.Equal(t, `{  "size": 12, "x":1.0e2,"name":"n\u00e9",`+"\t"+`"uri" : "mcp://s/file:///a\"b", "title":"T",  "mimeType":"text/plain"}`, string(e.JSON()))
	require.Equal(t, `file:///a"b`, e.Name)
	require.Equal(t, "né T text/plain 12", fmt.Sprint(e.Label, " ", e.Title, " ", e.MIME, " ", e.Size))
	require.Equal(t, "s_file_a_b", e.Flat)
	for e = range s.All(Tool) {
	}
	require.Equal(t, `{"name":"s_t","annotations":{"title":"hint"},"_meta":{"ui":{"resourceUri":"ui://s/x"},"ui/resourceUri":"ui://s/y","k":12345678901234567890}}`, string(e.JSON()))
	require.Contains(t, string(e.Original), `"ui://x"`)
	require.Equal(t, "t hint t -1", fmt.Sprint(e.Name, " ", e.Title, " ", e.Label, " ", e.Size))
	for _, uri := range []string{"ui://x", "ui://y"} { // shown by a tool, not listed
		got, err := r.ResolveResource("mcp://s/" + uri)
		require.NoError(t, err)
		require.Equal(t, uri, got.Name)
	}
}

func TestToolsThatRunAsTasksOnlyAreKnown(t *testing.T) {
	for execution, only := range map[string]bool{
		``: false,
		`,"execution":{"taskSupport":"forbidden"}`: false, // as official SDKs mark all other tools
		`,"execution":{"taskSupport":"optional"}`:  false,
		`,"execution":{"taskSupport":"required"}`:  true,
		`,"execution":"required"`:                  false,
	} {
		r := New(Options{Servers: []string{"s"}})
		require.Empty(t, r.SetList("s", Tool, [][]byte{[]byte(`{"name":"t"` + execution + `}`)}))
		got, err := r.ResolveTool("s_t")
		require.NoError(t, err)
		require.Equal(t, only, got.Entry.TaskOnly, execution)
	}
}

func TestMalformedEntriesAreDroppedAndReported(t *testing.T) {
	r := New(Options{Servers: []string{"s"}, MaxEntries: 20})
	ps := r.SetList("s", Template, [][]byte{
		[]byte(`{"uriTemplate":"file:///{+path}","name":"good"}`),
		[]byte(`{"uriTemplate":"file:///{bad"}`),
		[]byte(`{"name":"none"}`),
		[]byte(`{"uriTemplate":""}`),
		[]byte(`{"uriTemplate":7}`),
		[]byte(`["uriTemplate"]`),
		[]byte(`{"uriTemplate":`),
		[]byte(`{"uriTemplate":"a","uriTemplate":"b"}`),
		[]byte(`{"uriTemplate":"file:///{+path}","name":"again"}`),
		[]byte("{\"uriTemplate\":\"\xff\"}"),
		[]byte(`{"uriTemplate":"` + strings.Repeat("x", MaxURI+1) + `"}`),
		nil,
	})
	require.Equal(t, []string{"mcp://s/file:///{+path}"}, listed(r.Load(), Template))
	require.Len(t, ps, 11)
	for _, p := range ps {
		require.Equal(t, "s", p.Server)
		require.Contains(t, p.Text, "dropped")
	}
	many := make([]string, 30)
	for i := range many {
		many[i] = fmt.Sprintf("t%02d", i)
	}
	require.Len(t, set(r, "s", Tool, many...), 1)
	require.Equal(t, 20, r.Load().Count(Tool))
	bad := make([][]byte, 200)
	r = New(Options{Servers: []string{"s"}})
	require.Len(t, r.SetList("s", Tool, bad), maxProblems+1)
	require.Nil(t, set(r, "nobody", Tool, "x"))
	require.Nil(t, set(r, Local, Tool, "x"))
}

func TestListsAreInByteOrderAcrossPages(t *testing.T) {
	r := catalog(t, Options{PageSize: 3}, `
		b resource x:2
		b resource x:1
		a-b resource x:9
		a resource x:é
		a resource x:Z
		a.b resource x:5
		my tool zeta
		my tool alpha
		my_db tool x
		my.a tool x`)
	for _, k := range []Kind{Tool, Resource} {
		got := entryNames(k, pages(t, r.Load(), k))
		require.IsIncreasing(t, got)
		require.Equal(t, listed(r.Load(), k), got)
	}
	require.Equal(t, 6, r.Load().Count(Resource))
}

func TestPagesSurviveInsertAndDelete(t *testing.T) {
	r := catalog(t, Options{PageSize: 2}, `
		s resource x:1
		s resource x:3
		s resource x:5
		s resource x:7
		s resource x:9`)
	first, err := r.Load().Page(Resource, "")
	require.NoError(t, err)
	set(r, "s", Resource, "x:0", "x:1", "x:4", "x:5", "x:7", "x:9") // the cursor's entry was removed
	second, err := r.Load().Page(Resource, first.Next)
	require.NoError(t, err)
	text := string(bytes.Join(second.Chunks, nil))
	require.Contains(t, text, "x:4")
	require.Contains(t, text, "x:5")
	require.NotContains(t, text, "x:7")
	set(r, "s", Resource, "x:1")
	rest, err := r.Load().Page(Resource, second.Next)
	require.NoError(t, err)
	require.Empty(t, rest)
}

func TestPagesOfEqualNamesLoseNone(t *testing.T) {
	r := catalog(t, Options{PageSize: 1, Flat: true}, `
		a template file:///{+path}
		b template file:///{+path}
		c template file:///{+path}`)
	require.Equal(t, []string{"file:///{+path}", "file:///{+path}", "file:///{+path}"}, entryNames(Template, pages(t, r.Load(), Template)))
}

func TestBadCursors(t *testing.T) {
	r := catalog(t, Options{PageSize: 1}, "s tool a\ns tool b\ns prompt a\ns prompt b")
	p, err := r.Load().Page(Tool, "")
	require.NoError(t, err)
	for _, c := range []string{"x", "garbage!", "AAAA", "AAAAAAAAAAAA", p.Next[1:], p.Next + "A", p.Next + "\n"} {
		_, err := r.Load().Page(Tool, c)
		require.ErrorIs(t, err, ErrBadCursor, c)
	}
	_, err = r.Load().Page(Prompt, p.Next)
	require.ErrorIs(t, err, ErrBadCursor)
}

func TestVersionChangesOnlyWithTheVisibleList(t *testing.T) {
	r := catalog(t, Options{}, "s tool a\ns tool b\nother tool a")
	v := func() uint64 { return r.Load().Version(Tool) }
	at := v()
	same := func() { t.Helper(); require.Equal(t, at, v()) }
	changed := func() { t.Helper(); require.NotEqual(t, at, v()); at = v() }
	set(r, "s", Tool, "a", "b")
	same()
	set(r, "s", Tool, "b", "a")
	same()
	set(r, "s", Resource, "x:y")
	same()
	r.SetList("s", Tool, [][]byte{item(Tool, "a"), []byte(`{"name":"b","description":"new"}`)})
	changed()
	set(r, "s", Tool, "a")
	changed()
	r.SetVisible("other", false)
	changed()
	set(r, "other", Tool, "a", "b")
	same()
	r.SetVisible("other", false)
	same()
	r.SetVisible("other", true)
	changed()
	require.Equal(t, []string{"other_a", "other_b", "s_a"}, listed(r.Load(), Tool))
	r.SetUnlistedAllowed("other", true)
	same()
	remove(r, "other")
	changed()
	add(r, "late")
	same()
	set(r, "late", Tool, "a")
	changed()
	r.SetState("late", ServerState{State: StateReady})
	same()
	r.SetState("late", ServerState{State: StateDisabled})
	changed()
}

func TestServersComeAndGo(t *testing.T) {
	r := catalog(t, Options{}, "a resource x:1\nb resource x:2\nc resource x:3")
	r.RecordLink("b", "x:learned")
	r.SetSubscription(SubscriptionState{Server: "b", URI: "x:2", Status: SubscriptionOn})
	remove(r, "b")
	require.Equal(t, []string{"mcp://a/x:1", "mcp://c/x:3"}, listed(r.Load(), Resource))
	require.Empty(t, r.Subscriptions())
	_, err := r.ResolveResource("mcp://b/x:2")
	require.ErrorContains(t, err, "Server 'b' not found")
	r.SetServers([]string{"a", "b", "c", "d"}, nil)
	var order []string
	for _, s := range r.States() {
		order = append(order, s.Name)
	}
	require.Equal(t, []string{"a", "b", "c", "d"}, order)
	_, err = r.ResolveResource("mcp://b/x:learned")
	require.Error(t, err)
	set(r, "b", Resource, "x:2")
	require.Equal(t, []string{"mcp://a/x:1", "mcp://b/x:2", "mcp://c/x:3"}, listed(r.Load(), Resource))
	n := 0
	for e := range r.Load().Server("b", Resource) {
		require.Equal(t, "x:2", e.Name)
		n++
	}
	require.Equal(t, 1, n)
}
