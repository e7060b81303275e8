package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// app is a server with an app, like those of official servers.
func app(tool string) e2e.Obj {
	const uri = "ui://widget/app.html"
	contents := []e2e.Obj{{
		"uri": uri, "mimeType": "text/html;profile=mcp-app", "text": "<p>ui://widget/app.html</p>",
		"_meta": e2e.Obj{"ui": e2e.Obj{"csp": e2e.Obj{"connectDomains": []string{"https://x"}}, "permissions": e2e.Obj{"camera": e2e.Obj{}}}},
	}}
	return e2e.Obj{
		"resources": []e2e.Obj{e2e.Resource(uri), e2e.Resource("file:///a")},
		"templates": []e2e.Obj{e2e.Template("ui://widget/{page}")},
		"tools":     []e2e.Obj{e2e.Tool(tool, e2e.Obj{"_meta": e2e.Obj{"ui": e2e.Obj{"resourceUri": uri}, "ui/resourceUri": uri}})},
		"reads":     e2e.Obj{uri: e2e.Obj{"contents": contents}},
		"calls":     e2e.Obj{tool: e2e.Obj{"content": []e2e.Obj{}, "_meta": e2e.Obj{"ui": e2e.Obj{"resourceUri": uri}, "ui/resourceUri": uri}}},
	}
}

// Hosts accept only URIs that begin with ui:// for apps.
func TestAppsAreListedWithTheirScheme(t *testing.T) {
	t.Parallel()
	for _, namespace := range e2e.Variants(1, "uri", "flat") {
		t.Run(namespace, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Gateway["namespace"] = namespace
			b := w.Backend("one", app("show"))
			c := w.Standalone()
			const listed = "ui://one/widget/app.html"
			require.Contains(t, c.Names("resources"), listed)
			require.Equal(t, []string{"ui://one/widget/{page}"}, c.Names("templates"))
			c.WaitListed("tools", "one_show", true)
			for _, tool := range c.List("tools") {
				if e2e.Str(tool, "name") == "one_show" {
					require.Equal(t, listed, e2e.Str(tool, "_meta", "ui", "resourceUri"))
					require.Equal(t, listed, e2e.Str(tool, "_meta", "ui/resourceUri"))
				}
			}
			result := c.Ok("tools/call", e2e.Obj{"name": "show"}) // as the app itself calls it
			require.Equal(t, listed, e2e.Str(result, "_meta", "ui", "resourceUri"))
			require.Equal(t, listed, e2e.Str(result, "_meta", "ui/resourceUri"))
			for _, asked := range []string{listed, "ui://widget/app.html", "mcp://one/ui://widget/app.html"} {
				read := e2e.At(c.Ok("resources/read", e2e.Obj{"uri": asked}), "contents", 0)
				require.Equal(t, asked, e2e.Str(read, "uri"))
				require.Equal(t, "<p>ui://widget/app.html</p>", e2e.Str(read, "text"))
				require.Equal(t, "text/html;profile=mcp-app", e2e.Str(read, "mimeType"))
				require.JSONEq(t, `{"ui":{"csp":{"connectDomains":["https://x"]},"permissions":{"camera":{}}}}`, string(e2e.At(read, "_meta")))
			}
			require.Equal(t, "one ui://widget/two", c.ReadText("ui://one/widget/two"))
			require.Equal(t, "ui://widget/app.html", b.Uris("resources/read")[0])
		})
	}
}
