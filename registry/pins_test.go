package registry

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPinnedToolsGoWithTheirServer(t *testing.T) {
	r := New(Options{Servers: []string{"b", "a"}})
	ch := r.Watch(t.Context(), Pins)
	r.SetUnapproved("a", []UnapprovedTool{{Server: "a", Name: "y"}, {Server: "a", Name: "x"}})
	r.SetUnapproved("b", []UnapprovedTool{{Server: "b", Name: "z", New: true}})
	require.Equal(t, Pins, <-ch)
	var names []string
	for _, p := range r.UnapprovedTools("") {
		names = append(names, p.Server+p.Name)
	}
	require.Equal(t, []string{"bz", "ax", "ay"}, names, "servers in order, tools by name")
	require.True(t, r.UnapprovedTool("b", "z").New)
	require.Nil(t, r.UnapprovedTool("b", "x"))
	require.Nil(t, r.UnapprovedTool("", "x"))
	r.SetUnapproved("b", nil)
	require.Equal(t, Pins, <-ch)
	r.SetUnapproved("b", nil)
	require.Empty(t, ch, "nothing changed")
	r.SetServers([]string{"b"}, nil)
	require.Empty(t, r.UnapprovedTools(""))
}

func TestWithheldToolsAreKnownInEverySpelling(t *testing.T) {
	r := New(Options{Servers: []string{"my", "my_db", "odd.one"}})
	withheld := func(server, name string) UnapprovedTool {
		return UnapprovedTool{Server: server, Name: name, Hidden: true}
	}
	r.SetUnapproved("my", []UnapprovedTool{withheld("my", "db_x"), {Server: "my", Name: "told"}})
	r.SetUnapproved("odd.one", []UnapprovedTool{withheld("odd.one", "a b"), withheld("odd.one", strings.Repeat("x", 80))})
	of := func(name string) string {
		p := r.Load().UnapprovedTool(name)
		if p == nil {
			return ""
		}
		return p.Server + " " + p.Name
	}
	for _, name := range []string{"db_x", "my/db_x", "my_db_x_" + tail("my", "db_x")} {
		require.Equal(t, "my db_x", of(name), name)
	}
	require.Empty(t, of("my_db_x"), "the name of a tool of my_db")
	for _, name := range []string{"odd_one_a_b", "odd.one/a b", "odd_one_a_b_" + tail("odd.one", "a b")} {
		require.Equal(t, "odd.one a b", of(name), name)
	}
	long := strings.Repeat("x", 80)
	require.Equal(t, "odd.one "+long, of("odd_one_"+strings.Repeat("x", 64-8-9)+"_"+tail("odd.one", long)))
	for _, name := range []string{"told", "my_told", "my/told", "my", "my_", ""} {
		require.Empty(t, of(name), "%q", name)
	}
}

// A lookup by name must not reveal a tool that a profile hides.
func TestWithheldToolsOutsideOfAViewAreUnknown(t *testing.T) {
	r := New(Options{Servers: []string{"odd.one", "other"}})
	r.SetUnapproved("odd.one", []UnapprovedTool{{Server: "odd.one", Name: "a b", Hidden: true}, {Server: "odd.one", Name: "seen", Hidden: true}})
	view := r.Load().Narrow(&chosen{
		servers: map[string]bool{"odd.one": true, "other": true},
		keep:    func(_ Kind, name string) bool { return name == "seen" },
	}, nil)
	for _, name := range []string{"a b", "odd_one_a_b", "odd.one/a b", "odd_one_a_b_" + tail("odd.one", "a b")} {
		require.NotNil(t, r.Load().UnapprovedTool(name), name)
		require.Nil(t, view.UnapprovedTool(name), name)
	}
	require.NotNil(t, view.UnapprovedTool("odd_one_seen"))
}

func TestDiffsSayWhatChanged(t *testing.T) {
	for name, c := range map[string]struct {
		tool UnapprovedTool
		want string
	}{
		"changed": {
			UnapprovedTool{Approved: []byte(`{"description":"a\nb","name":"t"}`), Offered: []byte(`{"description":"a\nc","name":"t"}`)},
			" {\n   \"description\": \"a\n-| b\",\n+| c\",\n   \"name\": \"t\"\n }\n",
		},
		"backslashes":        {UnapprovedTool{New: true, Offered: []byte(`{"description":"C:\\new\nline"}`)}, "{\n  \"description\": \"C:\\\\new\n| line\"\n}\n"},
		"new":                {UnapprovedTool{New: true, Offered: []byte(`{"name":"t"}`)}, "{\n  \"name\": \"t\"\n}\n"},
		"too large":          {UnapprovedTool{Approved: []byte(`{}`)}, "(the definition is too large to show)"},
		"too large to keep":  {UnapprovedTool{Offered: []byte(`{}`)}, "(the approved definition was too large to store)\n{}\n"},
		"dashes in the text": {UnapprovedTool{Approved: []byte(`{"a":"-- x"}`), Offered: []byte(`{"a":"-- y"}`)}, " {\n-  \"a\": \"-- x\"\n+  \"a\": \"-- y\"\n }\n"},
	} {
		require.Equal(t, c.want, c.tool.Diff(), name)
	}
}

// FuzzDiff checks that a diff is not longer than the definitions, regardless of their
// nesting.
func FuzzDiff(f *testing.F) {
	f.Add([]byte(`{"description":"a\nb","name":"t"}`), []byte(`{"description":"a\nc","name":"t"}`))
	f.Add([]byte(strings.Repeat("[", 900)+strings.Repeat("]", 900)), []byte(`{"a":"[\"["}`))
	f.Add([]byte(`{`), []byte(``))
	f.Fuzz(func(t *testing.T, approved, offered []byte) {
		for _, p := range []UnapprovedTool{{Approved: approved, Offered: offered}, {New: true, Offered: offered}} {
			if text := p.Diff(); len(text) > 300*(len(approved)+len(offered)+1) {
				t.Fatalf("%d bytes for %d and %d", len(text), len(approved), len(offered))
			}
		}
	})
}
