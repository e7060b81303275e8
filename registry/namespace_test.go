package registry

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"goblin/registry/definition"
	"goblin/registry/names"
)

// twins are two registries with the same contents, one per namespace.
type twins struct {
	uri, flat *Registry
	servers   []string
}

// drawTwins draws servers with similar names and URIs.
func drawTwins(t *rapid.T) *twins {
	w := &twins{servers: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "a_b", "a.b", "b", "a_file"}), 1, 4, rapid.ID[string]).Draw(t, "servers")}
	page := rapid.SampledFrom([]int{1, 2, 1000}).Draw(t, "page")
	var overrides map[string]*definition.Set
	title := "B"
	if rapid.Bool().Draw(t, "overridden") {
		overrides = map[string]*definition.Set{w.servers[0]: {
			Tools:     map[string]*definition.Override{"show": {Name: "look"}},
			Resources: map[string]*definition.Override{"file:///b": {Title: &title}, "x:{v}": {Label: "an x"}},
		}}
	}
	for _, r := range []struct {
		of   **Registry
		flat bool
	}{{&w.uri, false}, {&w.flat, true}} {
		*r.of = New(Options{Servers: w.servers, PageSize: page, Flat: r.flat, Overrides: overrides})
		require.NoError(t, (*r.of).AddResource(ServersResource(*r.of)))
	}
	for _, server := range w.servers {
		for k := range Kind(Kinds) {
			w.relist(t, server, k)
		}
	}
	return w
}

var (
	drawnURI = rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "_", "/", ".", ":", "~", "%2e", "é", " ", "db"}), 1, 4), func(parts []string) string {
		all := "file:///"
		for _, p := range parts {
			all += p
		}
		return all
	})
	drawnNames = map[Kind]*rapid.Generator[string]{
		Tool:     rapid.SampledFrom([]string{"show", "look", "s.how", "s:how", "db_x"}),
		Prompt:   rapid.SampledFrom([]string{"p", "q"}),
		Resource: rapid.OneOf(drawnURI, rapid.SampledFrom([]string{"ui://app", "skill://f/x", "file:///b", "x:1", "x:2"})),
		Template: rapid.SampledFrom([]string{"x:{v}", "x:{+v}", "file:///{name}", "ui://{x}", "y:{a}/{b}", "a.b:{v}"}),
		Skill:    rapid.SampledFrom([]string{"skill://f/SKILL.md", "skill://g/SKILL.md"}),
	}
)

func (w *twins) relist(t *rapid.T, server string, k Kind) {
	nameList := rapid.SliceOfNDistinct(drawnNames[k], 0, 6, rapid.ID[string]).Draw(t, server+" "+listName(k))
	if len(nameList) > 4 && k != Resource {
		nameList = nameList[:4]
	}
	items := make([][]byte, len(nameList))
	for i, name := range nameList {
		items[i] = item(k, name)
		if k == Tool {
			link := rapid.OneOf(drawnURI, rapid.Just("ui://app"), rapid.Just("")).Draw(t, "link")
			items[i] = fmt.Appendf(nil, `{"name":%q,"_meta":{"ui":{"resourceUri":%q}}}`, name, link)
		}
	}
	w.uri.SetList(server, k, items)
	w.flat.SetList(server, k, items)
}

// alike checks that clients see no difference between two catalogs: in lists and in the
// meaning of names and URIs.
func alike(t *rapid.T, want, got *Snapshot, uris []string) {
	uris = slices.Clone(uris)
	for k := range Kind(Kinds) {
		require.Equal(t, listedIn(t, want, k), listedIn(t, got, k), "%ss", k)
		require.Equal(t, want.Count(k), got.Count(k))
		ends := slices.Collect(got.All(k))
		for i, e := range slices.Collect(want.All(k)) {
			o := ends[i]
			require.Len(t, o.JSON(), o.JSONLen())
			require.Equal(t, []string{e.Server, e.Name, e.Listed, e.Flat, e.Label, e.Title, string(e.JSON())}, []string{o.Server, o.Name, o.Listed, o.Flat, o.Label, o.Title, string(o.JSON())})
			require.Equal(t, string(e.originalJSON()), string(o.originalJSON()))
			uris = append(uris, spelledAs(e)...)
		}
	}
	slices.Sort(uris)
	for _, name := range slices.Compact(uris) {
		for k := range Kind(Kinds) {
			a, err := resolveBy(want, k, name)
			b, other := resolveBy(got, k, name)
			if a.Server != b.Server || a.Name != b.Name || a.Listed != b.Listed || refusal(err) != refusal(other) {
				t.Fatalf("%s %q is %q of %s, %v, and not %q of %s, %v", k, name, b.Listed, b.Server, other, a.Listed, a.Server, err)
			}
			if several := new(AmbiguousError); errors.As(other, &several) {
				for _, c := range several.Candidates {
					_, err := resolveBy(got, k, c)
					_, same := resolveBy(want, k, c)
					_, again := errors.AsType[*AmbiguousError](err) // this spelling may be ambiguous again
					if err != nil && !again || refusal(err) != refusal(same) {
						t.Fatalf("%s %q suggests %q: %v, not %v", k, name, c, err, same)
					}
				}
			}
			a, yes := want.LookupListed(k, name)
			if b, too := got.LookupListed(k, name); yes != too || yes && a.Listed != b.Listed {
				t.Fatalf("%s %q is listed: %v, and not %v", k, name, too, yes)
			}
		}
	}
}

// refusal returns an error without the candidates of an ambiguous name, because only some
// of them are listed.
func refusal(err error) string {
	if err == nil {
		return ""
	}
	text, _, _ := strings.Cut(err.Error(), "use a full name")
	return text
}

func TestALinkThatChangesWithinOneFlatIDChangesInTheOtherNamespace(t *testing.T) {
	t.Parallel()
	r := New(Options{Servers: []string{"a"}, Flat: true})
	var moved *Snapshot
	for _, uri := range []string{"file:///_", "file:////"} {
		require.Equal(t, names.FlatID("a", "file:///_"), names.FlatID("a", uri))
		r.SetList("a", Tool, [][]byte{fmt.Appendf(nil, `{"name":"show","_meta":{"ui":{"resourceUri":%q}}}`, uri)})
		moved = r.Load().InNamespace(false, moved)
		for e := range moved.All(Tool) {
			require.Contains(t, string(e.JSON()), names.NamespacedURI("a", uri))
			require.Contains(t, string(e.originalJSON()), uri)
		}
	}
}

// Both registries show the same catalog in each namespace, before and after changes of
// any part of it.
func TestACatalogInAnotherNamespaceIsThatOfARegistryWithIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := drawTwins(rt)
		c := &chosen{servers: map[string]bool{Local: true}}
		for _, server := range w.servers {
			c.servers[server] = rapid.IntRange(0, 3).Draw(rt, "chosen") > 0
		}
		if rapid.Bool().Draw(rt, "filtered") {
			odd := rapid.IntRange(2, 4).Draw(rt, "every")
			c.keep = func(_ Kind, name string) bool { return len(name)%odd != 0 }
		}
		if rapid.Bool().Draw(rt, "overridden in the profile") {
			title := "B"
			c.overrides = map[string]*definition.Set{rapid.SampledFrom(w.servers).Draw(rt, "whose"): {
				Tools:     map[string]*definition.Override{"look": {Name: "see"}, "db_x": {Title: &title}},
				Resources: map[string]*definition.Override{"x:1": {Title: &title}, "file:///b": {Label: "b"}, "file:///{name}": {Description: &title}},
			}}
		}
		var moved, narrow, native [2]*Snapshot
		for step := range 3 {
			if step > 0 {
				server := rapid.SampledFrom(w.servers).Draw(rt, "who lists again")
				if rapid.IntRange(0, 3).Draw(rt, "hides") == 0 {
					visible := rapid.Bool().Draw(rt, "visible")
					w.uri.SetVisible(server, visible)
					w.flat.SetVisible(server, visible)
				} else {
					w.relist(rt, server, Kind(rapid.IntRange(0, Kinds-1).Draw(rt, "what")))
				}
				learnt := drawnURI.Draw(rt, "learnt")
				w.uri.RecordLink(server, learnt)
				w.flat.RecordLink(server, learnt)
			}
			var uris []string
			for range 5 {
				server, uri := rapid.SampledFrom(w.servers).Draw(rt, "of"), rapid.OneOf(drawnURI, rapid.Just("x:3"), rapid.Just("ui://app")).Draw(rt, "uri")
				uris = append(uris, uri, names.NamespacedURI(server, uri), names.FlatID(server, uri))
				require.Equal(rt, w.flat.ListedURI(server, uri), w.uri.Load().InNamespace(true, nil).ListedURI(server, uri))
				require.Equal(rt, w.uri.ListedURI(server, uri), w.flat.Load().InNamespace(false, nil).ListedURI(server, uri))
			}
			for i, of := range []struct {
				want, other *Registry
				flat        bool
			}{{w.flat, w.uri, true}, {w.uri, w.flat, false}} {
				require.Same(rt, of.want.Load(), of.want.Load().InNamespace(of.flat, nil))
				moved[i] = of.other.Load().InNamespace(of.flat, moved[i])
				alike(rt, of.want.Load(), moved[i], uris)
				before := narrow[i]
				narrow[i], native[i] = moved[i].Narrow(c, before), of.want.Load().Narrow(c, native[i])
				alike(rt, native[i], narrow[i], uris)
				for server := range c.servers { // names do not depend on the selection
					for _, uri := range uris {
						require.Equal(rt, of.want.ListedURI(server, uri), moved[i].ListedURI(server, uri))
						if c.servers[server] {
							require.Equal(rt, of.want.ListedURI(server, uri), narrow[i].ListedURI(server, uri))
						}
					}
				}
				require.True(rt, native[i].Equal(narrow[i]))
				require.True(rt, narrow[i].Equal(moved[i].Narrow(c, nil)))
				for k := range Kind(Kinds) {
					if before != nil && slices.Equal(listedIn(rt, before, k), listedIn(rt, narrow[i], k)) {
						require.Equal(rt, before.Version(k), narrow[i].Version(k), "%ss are unchanged", k)
					} else if before != nil {
						require.NotEqual(rt, before.Version(k), narrow[i].Version(k), "%ss differ", k)
					}
				}
			}
		}
	})
}

// InNamespace shares definitions with the snapshot, and unchanged servers with the
// previous result.
func TestANamespaceSharesWhatDidNotChange(t *testing.T) {
	t.Parallel()
	r := catalog(t, Options{}, "a resource x:2\na resource x:1\na tool t\nb resource x:1\nb template x:{v}\nb tool t\nb prompt p")
	was := r.Load().InNamespace(true, nil)
	for _, k := range []Kind{Tool, Prompt} {
		require.Equal(t, r.Load().visibleRuns(k), was.visibleRuns(k), "%ss contain no URI", k)
	}
	whole, moved := r.Load().table("a").runs[Resource], was.table("a").runs[Resource]
	require.Nil(t, moved.arena)
	require.Same(t, &whole.byName.slots[0], &moved.byName.slots[0], "tables of entries in the same places")
	require.Same(t, &whole.entries[0].json[0], &moved.entries[0].json[0])
	set(r, "a", Resource, "x:1", "x:3")
	is := r.Load().InNamespace(true, was)
	require.Same(t, was.table("b"), is.table("b"))
	require.NotSame(t, was.table("a"), is.table("a"))
	require.Same(t, was, was.InNamespace(true, nil))
}

// If two URIs become equal in a namespace, clients get no more entries than in a registry
// with that namespace.
func TestURIsWithOneFlatIDAndOneTailAreListedOnce(t *testing.T) {
	t.Parallel()
	pair := []string{"x////://::/:/:/:/:", "x://///::::////:://"}
	for _, uri := range pair {
		short, _ := names.HashSuffixes(uri, '~')
		require.Equal(t, "~cb544961", short, "the pair was searched for")
	}
	var all [2]*Registry
	for i := range all {
		all[i] = New(Options{Servers: []string{"s"}, Flat: i == 1})
		set(all[i], "s", Resource, pair...)
	}
	require.Equal(t, listed(all[1].Load(), Resource), listed(all[0].Load().InNamespace(true, nil), Resource))
	require.Len(t, listed(all[0].Load(), Resource), 2)
}
