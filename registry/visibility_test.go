package registry

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"goblin/registry/definition"
	"goblin/registry/names"
)

// chosen is a Choice of a test: whole servers, and the entries for which keep returns
// true.
type chosen struct {
	servers map[string]bool
	keep    func(k Kind, name string) bool

	overrides map[string]*definition.Set
}

func (c *chosen) Server(name string) bool                 { return c.servers[name] }
func (c *chosen) All(string, Kind) bool                   { return c.keep == nil }
func (c *chosen) Overrides(server string) *definition.Set { return c.overrides[server] }
func (c *chosen) Has(server string, k Kind, name string) bool {
	return c.servers[server] && (c.keep == nil || c.keep(k, name))
}

func (c *chosen) WithLists([Kinds]int) Visibility { return c }

// listedIn returns the entries of a kind as clients see them, on all pages.
func listedIn(t require.TestingT, s *Snapshot, k Kind) (out []string) {
	for cursor := ""; ; {
		page, err := s.Page(k, cursor)
		require.NoError(t, err)
		if text := bytes.Join(page.Chunks, nil); len(text) > 0 {
			out = append(out, string(text))
		}
		if cursor = page.Next; cursor == "" {
			return out
		}
	}
}

// spelledAs returns spellings that resolve to an entry.
func spelledAs(e *Entry) []string {
	nameList := []string{e.Listed, e.Server + "/" + e.Name, e.Server + "_" + e.Name, e.Name, names.NamespacedURI(e.Server, e.Name)}
	if e.Flat != "" {
		nameList = append(nameList, e.Flat)
	}
	return nameList
}

func resolveBy(s *Snapshot, k Kind, name string) (Target, error) {
	switch k {
	case Tool:
		return s.ResolveTool(name)
	case Prompt:
		return s.ResolvePrompt(name)
	case Template:
		return s.ResolveTemplate(name)
	}
	return s.ResolveResource(name)
}

// A view is the filtered list. Chosen entries have the same definitions and listed names,
// and other entries are not found.
func TestNarrowIsTheWholeFiltered(t *testing.T) {
	t.Parallel()
	const text = fleet + `
	a tool one
	a tool two
	a_b tool one
	a_b tool very_long_name_of_a_tool_that_has_to_be_cut_somewhere_in_it
	a prompt p
	b prompt p
	b prompt q
	b tool one
	b resource file:///b
	b resource file:///./b
	b resource file:///x/../b`
	rapid.Check(t, func(rt *rapid.T) {
		r := catalog(t, Options{PageSize: rapid.SampledFrom([]int{1, 2, 1000}).Draw(rt, "page"), Flat: rapid.Bool().Draw(rt, "flat")}, text)
		whole := r.Load()
		all := slices.Sorted(maps.Keys(whole.dir.byName))
		c := &chosen{servers: map[string]bool{}}
		for _, name := range all {
			c.servers[name] = rapid.Bool().Draw(rt, name)
		}
		if rapid.Bool().Draw(rt, "filtered") {
			odd := rapid.IntRange(2, 4).Draw(rt, "every")
			c.keep = func(_ Kind, name string) bool { return len(name)%odd != 0 }
		}
		before := whole.Narrow(c, nil)
		for _, view := range []*Snapshot{before, whole.Narrow(c, before)} {
			for k := range Kind(Skill) {
				want, n := []string(nil), 0
				for e := range whole.All(k) {
					if !c.Has(e.Server, k, e.Name) {
						for _, name := range spelledAs(e) {
							if got, err := resolveBy(view, k, name); err == nil {
								require.True(rt, c.Has(got.Server, k, got.Name), "%s %q is %s %s", k, name, got.Server, got.Name)
							}
						}
						continue
					}
					n++
					want = append(want, string(e.JSON()))
					got, err := resolveBy(view, k, e.Listed)
					require.NoError(rt, err, "%s %q", k, e.Listed)
					require.Equal(rt, e.Name, got.Name)
					require.Equal(rt, e.Server, got.Server)
				}
				require.Equal(rt, n, view.Count(k))
				require.Equal(rt, bytes.Join(bytesOf(want), []byte{','}), bytes.Join(bytesOf(listedIn(rt, view, k)), []byte{','}), "%ss", k)
			}
			for _, name := range all {
				require.Equal(rt, c.servers[name] || name == Local, view.HasServer(name))
			}
			require.True(rt, before.Equal(view))
		}
	})
}

func bytesOf(texts []string) (out [][]byte) {
	for _, s := range texts {
		out = append(out, []byte(s))
	}
	return out
}

func TestUnlistedURIsOutsideOfAViewAreUnknown(t *testing.T) {
	t.Parallel()
	r := catalog(t, Options{}, fleet)
	r.SetUnlistedAllowed("s3", true)
	r.RecordLink("filesystem", "file:///learnt/secret")
	c := &chosen{
		servers: map[string]bool{"s3": true, "filesystem": true, "docs": true},
		keep:    func(_ Kind, name string) bool { return !bytes.Contains([]byte(name), []byte("secret")) },
	}
	view := r.Load().Narrow(c, nil)
	for _, uri := range []string{
		"mcp://s3/any:secret", "mcp://filesystem/file:///learnt/secret", "file:///learnt/secret",
		"mcp://docs/doc:///secret", "doc:///secret", "mcp://dbsrv/mcp://database/a/1", "mcp://database/a/1",
	} {
		_, err := r.ResolveResource(uri)
		require.NoError(t, err, uri)
		_, err = view.ResolveResource(uri)
		var unknown *NotFoundError
		require.ErrorAs(t, err, &unknown, uri)
		never := "mcp://never/" + uri
		_, other := view.ResolveResource(never)
		require.ErrorAs(t, other, &unknown, never)
	}
	_, err := view.ResolveResource("mcp://dbsrv/x:1")
	require.EqualError(t, err, "RESOURCE_NOT_FOUND: Server 'dbsrv' not found: mcp://dbsrv/x:1", "as for a server that never existed")
	for _, uri := range []string{"mcp://s3/any:thing", "doc:///public"} {
		_, err := view.ResolveResource(uri)
		require.NoError(t, err, uri)
	}
}

// All spellings find the remaining entries of a list, even spellings that several entries
// shared.
func TestWhatIsLeftOfAListIsFoundByAllForms(t *testing.T) {
	t.Parallel()
	r := catalog(t, Options{}, `
	s resource file:///a/b
	s resource file:///a_b
	s resource file:///a:b
	s resource file:///x/../y
	s resource file:///x y
	s resource file:///other
	s resource file:///gone`)
	for _, gone := range [][]string{{"file:///gone"}, {"file:///gone", "file:///a/b"}, {"file:///a_b", "file:///a:b"}, {"file:///a/b", "file:///a_b", "file:///a:b", "file:///x y", "file:///gone"}} {
		view := r.Load().Narrow(&chosen{servers: map[string]bool{"s": true}, keep: func(_ Kind, name string) bool { return !slices.Contains(gone, name) }}, nil)
		alike := 0
		for _, uri := range []string{"file:///a/b", "file:///a_b", "file:///a:b"} {
			if !slices.Contains(gone, uri) {
				alike++
			}
		}
		_, err := view.ResolveResource("s_file_a_b")
		switch alike {
		case 0:
			require.ErrorContains(t, err, ReasonNotFound, "%v", gone)
		case 1:
			require.NoError(t, err, "%v", gone)
		default:
			require.ErrorContains(t, err, "AMBIGUOUS", "%v", gone)
		}
		for form, uri := range map[string]string{
			"mcp://s/file:///y": "file:///x/../y", "mcp://s/file:///x%20y": "file:///x y", "s_file_x_y": "file:///x y", "s_file_other": "file:///other", "file:///gone": "file:///gone",
		} {
			target, err := view.ResolveResource(form)
			if slices.Contains(gone, uri) {
				require.Error(t, err, "%v %s", gone, form)
				continue
			}
			require.NoError(t, err, "%v %s", gone, form)
			require.Equal(t, uri, target.Name)
		}
		require.Equal(t, 7-len(gone), view.Count(Resource))
	}
	x := hashIndex{slots: []uint64{tombstone, tombstone}}
	x.slots = append(x.slots, 0, 0)
	first, _ := x.find(nil, tombstone, "", byName)
	require.Nil(t, first, "a tombstone matches no entry, regardless of the hash")
}

// The version changes if and only if the visible list changes.
func TestVersionsOfAViewAreAboutWhatItShows(t *testing.T) {
	t.Parallel()
	r := catalog(t, Options{}, "a tool one\na tool two\nb tool one")
	c := &chosen{servers: map[string]bool{"a": true}, keep: func(_ Kind, name string) bool { return name != "two" }}
	was := r.Load().Narrow(c, nil)
	changed := func(server string, nameList ...string) bool {
		var items [][]byte
		for _, name := range nameList {
			items = append(items, fmt.Appendf(nil, `{"name":%q}`, name))
		}
		r.SetList(server, Tool, items)
		is := r.Load().Narrow(c, was)
		defer func() { was = is }()
		require.Equal(t, was.Version(Prompt), is.Version(Prompt))
		return was.Version(Tool) != is.Version(Tool)
	}
	changed("a", "one", "two")
	require.False(t, changed("b", "other"), "of a missing server")
	require.False(t, changed("a", "one"), "a missing entry")
	require.True(t, changed("a", "one", "three"))
	require.False(t, changed("a", "one", "three", "two"))
	other := &chosen{servers: map[string]bool{"a": true}}
	require.NotEqual(t, was.Version(Tool), r.Load().Narrow(other, was).Version(Tool), "another choice")
	require.Equal(t, was.Version(Tool), r.Load().Narrow(&chosen{servers: c.servers, keep: c.keep}, was).Version(Tool), "an equivalent choice")
}

// few hides Goblin's own tools if at most two entries of servers are listed.
type few struct{ most int }

func (c *few) Server(string) bool                       { return true }
func (c *few) All(server string, k Kind) bool           { return server != Local || k != Tool || c.most > 0 }
func (c *few) Has(server string, k Kind, _ string) bool { return c.All(server, k) }
func (c *few) Overrides(string) *definition.Set         { return nil }
func (c *few) WithLists(listed [Kinds]int) Visibility {
	if listed[Tool]+listed[Prompt] > c.most {
		return c
	}
	return &few{}
}

func TestGoblinsOwnToolsAreChosenByWhatIsListed(t *testing.T) {
	t.Parallel()
	r := catalog(t, Options{}, "a tool one\na prompt p")
	require.NoError(t, r.AddTool(LocalTool{Definition: []byte(`{"name":"own"}`), Call: noCall}))
	c := &few{most: 2}
	is := r.Load().Narrow(c, nil)
	require.Equal(t, []string{"a_one"}, listed(is, Tool))
	_, err := is.ResolveTool("own")
	require.Error(t, err)
	require.False(t, is.IsVisible(Local, Tool, "own"))
	was := is
	r.SetList("a", Prompt, [][]byte{[]byte(`{"name":"p"}`), []byte(`{"name":"q"}`)})
	is = r.Load().Narrow(c, was)
	require.Equal(t, []string{"own", "a_one"}, listed(is, Tool))
	require.NotEqual(t, was.Version(Tool), is.Version(Tool))
	require.Equal(t, c, is.Visibility(), "the same for every caller")
	require.True(t, is.IsVisible(Local, Tool, "own"))
}

// every chooses half of the servers, and nine of ten resources.
func every() *chosen {
	c := &chosen{servers: map[string]bool{Local: true}, keep: func(_ Kind, name string) bool {
		return len(name) < 12 || name[len(name)-len("0/report.md")] != '7'
	}}
	for i := range 100 {
		c.servers[fmt.Sprintf("s%02d", i)] = true
	}
	return c
}

// looks returns several views of half of a catalog of 100,000.
func looks() []look {
	overridden := every()
	overridden.overrides = map[string]*definition.Set{}
	for server := range overridden.servers {
		title := "Another"
		overridden.overrides[server] = &definition.Set{
			Tools:     map[string]*definition.Override{"do_thing_7": {Name: "do"}},
			Resources: map[string]*definition.Override{"file:///srv/" + server + "/documents/0000500/report.md": {Title: &title}},
		}
	}
	return []look{{"filtered", every(), false}, {"flat", every(), true}, {"flat and whole", &chosen{servers: every().servers}, true}, {"overridden", overridden, false}}
}

type look struct {
	name   string
	choice *chosen
	flat   bool
}

// at returns the view of a catalog. before has the previous results, in the namespace and
// narrowed, or nil.
func (l *look) at(s *Snapshot, before [2]*Snapshot) [2]*Snapshot {
	in := s.InNamespace(l.flat, before[0])
	return [2]*Snapshot{in, in.Narrow(l.choice, before[1])}
}

// Budget: 50 ms.
func BenchmarkNarrow100000(b *testing.B) {
	for _, l := range looks() {
		b.Run(l.name, func(b *testing.B) {
			r := big(b)
			b.ReportAllocs()
			for b.Loop() {
				l.at(r.Load(), [2]*Snapshot{})
			}
		})
	}
}

// Budget: 5 ms.
func BenchmarkNarrow100000AfterAChange(b *testing.B) {
	for _, l := range looks() {
		b.Run(l.name, func(b *testing.B) {
			r := big(b)
			lists := [][][]byte{library("s99", 0, 1000), library("s99", 1, 1000)}
			view := l.at(r.Load(), [2]*Snapshot{})
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				r.SetList("s99", Resource, lists[i%2])
				b.StartTimer()
				view = l.at(r.Load(), view)
			}
		})
	}
}

// Equal reports whether clients see no difference between the lists of two catalogs.
func (s *Snapshot) Equal(o *Snapshot) bool {
	for k := range Kind(Kinds) {
		a, b := s.visibleRuns(k), o.visibleRuns(k)
		if !slices.EqualFunc(a, b, func(x, y *run) bool { return x.server == y.server && x.looksLike(y) }) {
			return false
		}
	}
	return true
}
