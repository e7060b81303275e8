//go:build e2e

package security

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// restOf calls the tool and returns the URI of the part of its result that was left out.
func restOf(c *e2e.Client, tool string) (uri string) {
	c.T.Helper()
	uri = e2e.Str(c.Ok("tools/call", e2e.Obj{"name": tool}), "content", 3, "uri")
	require.Regexp(c.T, `^goblin://results/[0-9a-f]{32}$`, uri)
	require.Contains(c.T, c.ReadText(uri), "secret of the client")
	return uri
}

// missing is the code of the error for a resource that is unknown, in a session.
const missing = -32002

func TestTheRestOfAResultIsReadByItsClientOnlyOverHTTP(t *testing.T) {
	t.Parallel()
	for _, isolation := range []string{"shared", "session"} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			script := e2e.Obj{"tools": []e2e.Obj{e2e.Tool("long")}, "calls": e2e.Obj{"long": strings.Repeat("secret of the client\n", 1<<10)}}
			w.Backend("b", script, e2e.Obj{"max_result": "1KiB", "isolation": isolation})
			w.Profiles = e2e.Obj{"p": e2e.Obj{}, "none": e2e.Obj{"tools": e2e.Obj{"deny": []string{"*"}}}}
			web := w.Served()
			over := func(path string) *e2e.Client {
				c := web.RawClient()
				c.Web.Path = path
				c.Init()
				return c
			}
			mine, other, profiled := web.Client(false), web.Client(false), over("/mcp/p/none")
			uri := restOf(mine, "b_long")
			local := w.Socket()
			local.Init()
			strangers := map[string]*e2e.Client{"another session": other, "one with a profile": profiled, "one on the socket": local}
			for name, c := range strangers {
				for _, spelling := range []string{uri, uri + "/1", uri + "/2", e2e.In("goblin", uri), strings.ToUpper(uri), uri + "?", "goblin://results/", "goblin://results/*"} {
					require.Contains(t, []int{missing, -32602}, c.Fault("resources/read", e2e.Obj{"uri": spelling}).Code, "%s: %s", name, spelling)
				}
				for _, r := range c.List("resources") {
					require.NotContains(t, string(r), "goblin://results/", name)
				}
			}
			stateless := web.Stateless()
			require.NotNil(t, stateless.Request("resources/read", e2e.Obj{"uri": uri}).Error, "a client without a session")

			require.Equal(t, 204, web.Do("DELETE", "/mcp", map[string]string{"Mcp-Session-Id": mine.Web.Id}, "").Status)
			again := web.Client(false)
			require.Equal(t, missing, again.Fault("resources/read", e2e.Obj{"uri": uri}).Code, "after the end of its session")
		})
	}
}

func TestTheRestOfAResultStaysInTheProfileOfAClientWithoutASession(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.Obj{"tools": []e2e.Obj{e2e.Tool("long")}, "calls": e2e.Obj{"long": strings.Repeat("secret of the client\n", 1<<10)}}
	w.Backend("b", script, e2e.Obj{"max_result": "1KiB"})
	w.Profiles = e2e.Obj{"all": e2e.Obj{}, "none": e2e.Obj{"tools": e2e.Obj{"deny": []string{"*"}}}}
	web := w.Served()
	in := func(path string) *e2e.Client {
		c := web.Stateless()
		c.Web.Path = path
		return c
	}
	uri := restOf(in("/mcp/p/all"), "b_long")
	require.Contains(t, in("/mcp/p/all").ReadText(uri), "secret of the client", "its next request")
	for _, path := range []string{"/mcp/p/none", "/mcp"} {
		require.Equal(t, -32602, in(path).Fault("resources/read", e2e.Obj{"uri": uri}).Code, path)
	}
	require.Equal(t, missing, web.Client(false).Fault("resources/read", e2e.Obj{"uri": uri}).Code, "a session")
}
