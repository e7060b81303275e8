package registry

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzCursor(f *testing.F) {
	r := catalog(f, Options{PageSize: 1}, "s tool a\ns tool b\ns tool c")
	p, _ := r.Load().Page(Tool, "")
	f.Add(p.Next)
	f.Add("AAAA")
	f.Fuzz(func(t *testing.T, cursor string) {
		p, err := r.Load().Page(Tool, cursor)
		if err != nil {
			require.ErrorIs(t, err, ErrBadCursor)
			return
		}
		if cursor != "" {
			listed, server, err := openCursor(Tool, cursor)
			require.NoError(t, err)
			require.Equal(t, cursor, newCursor(Tool, &Entry{Listed: listed, Server: server}))
		}
		_ = p
	})
}

func FuzzSetList(f *testing.F) {
	f.Add([]byte(`{"uri":"file:///a","name":"x"}`), []byte(`{"uri":"file:///{+p}","uriTemplate":"file:///{+p}","name":"y"}`))
	f.Add([]byte(`{"name":"a.b","_meta":{"ui":{"resourceUri":"ui://x"}}}`), []byte(" {\n\"name\":\"a_b\"}"))
	f.Add([]byte(`{"uriTemplate":"file:///{bad"}`), []byte(`[]`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		for _, flat := range []bool{false, true} {
			r := New(Options{Servers: []string{"s", "s_t", "u"}, Flat: flat, PageSize: 1})
			for k := range Kind(Kinds) {
				before := string(a) + string(b)
				r.SetList("s", k, [][]byte{a, b})
				r.SetList("u", k, [][]byte{b})
				require.Equal(t, before, string(a)+string(b), "the caller's bytes are unchanged")
				require.Len(t, entryNames(k, pages(t, r.Load(), k)), r.Load().Count(k))
			}
			for e := range r.Load().All(Tool) {
				target, err := r.ResolveTool(e.Listed)
				require.NoError(t, err)
				require.Same(t, e, target.Entry)
			}
			for e := range r.Load().All(Prompt) {
				target, err := r.ResolvePrompt(e.Listed)
				require.NoError(t, err)
				require.Same(t, e, target.Entry)
			}
			for e := range r.Load().All(Resource) {
				target, err := r.ResolveResource(e.Listed)
				require.NoError(t, err)
				require.Same(t, e, target.Entry)
			}
		}
	})
}

func FuzzResolve(f *testing.F) {
	r := catalog(f, Options{}, fleet)
	r.RecordLink("empty", "x:é")
	for _, s := range []string{"mcp://s", "mcp://odd/file:///%C3%BC", "dbsrv_mcp_database_a_b", "filesystem__", "%", "mcp://dbsrv/%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, resolve := range []func(string) (Target, error){r.ResolveResource, r.Load().ResolveTemplate, r.ResolveTool, r.ResolvePrompt} {
			target, err := resolve(name)
			require.Equal(t, err == nil, target.Server != "" && target.Name != "")
		}
	})
}
