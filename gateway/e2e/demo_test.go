package e2e

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// demoWorld has no config: the embedded demo is served.
func demoWorld(t *testing.T) *world {
	w := newWorld(t)
	w.written, w.config = true, ""
	return w
}

func TestDemoIsServedWithoutAConfig(t *testing.T) {
	t.Parallel()
	w := demoWorld(t)
	text := w.succeeds("list", "servers")
	for _, name := range []string{"notes", "clock", "library"} {
		require.Contains(t, text, name)
	}
	require.Contains(t, w.succeeds("read", "clock://now"), ":")
	c := w.standalone()
	uris := c.names("resources")
	require.Greater(t, len(uris), 2000)
	require.True(t, isSorted(uris))
	require.NotEmpty(t, c.names("tools"))
	require.NotEmpty(t, c.names("prompts"))
	require.GreaterOrEqual(t, len(c.names("templates")), 2)
}

func TestR4_01_DemoReadsAreTextOrBlobNeverBoth(t *testing.T) {
	t.Parallel()
	w := demoWorld(t)
	c := w.standalone()
	texts, blobs := 0, 0
	ids := map[string]string{}
	for i, uri := range c.names("resources") {
		if i%20 == 0 || !strings.HasPrefix(uri, "mcp://library/") {
			ids[uri] = c.begin("resources/read", obj{"uri": uri})
		}
	}
	for uri, id := range ids {
		m := c.end(id)
		require.Nil(t, m.Error, "%s: %s", uri, m.raw)
		contents := each(m.Result, "contents")
		require.NotEmpty(t, contents, uri)
		for _, content := range contents {
			text, blob := at(content, "text"), at(content, "blob")
			require.True(t, (text == nil) != (blob == nil), "%s: %s", uri, content)
			if blob != nil {
				_, err := base64.StdEncoding.DecodeString(str(content, "blob"))
				require.NoError(t, err, uri)
				blobs++
			} else {
				texts++
			}
		}
	}
	require.Positive(t, texts)
	require.Positive(t, blobs)
}

func TestR4_05_DemoKnowsNoUnknownURI(t *testing.T) {
	t.Parallel()
	w := demoWorld(t)
	c := w.standalone()
	c.names("resources")
	for _, uri := range []string{"mcp://notes/note://none-of-that-name", "mcp://library/library://books/nobody/nothing", "mcp://clock/clock://never"} {
		m := c.request("resources/read", obj{"uri": uri})
		require.NotNil(t, m.Error, m.raw)
	}
}

func TestDemoClockTicksForItsSubscribers(t *testing.T) {
	t.Parallel()
	w := demoWorld(t)
	c := w.standalone()
	c.names("resources")
	c.ok("resources/subscribe", obj{"uri": "mcp://clock/clock://now"})
	require.Equal(t, "mcp://clock/clock://now", c.waitUpdates(2)[0])
}

func TestDemoServersSpeakMCPThemselves(t *testing.T) {
	t.Parallel()
	w := demoWorld(t)
	for _, name := range []string{"notes", "clock", "library"} {
		c := w.pipe("demo-server", name)
		result := c.init()
		require.NotEmpty(t, str(result, "serverInfo", "name"))
		require.NotEmpty(t, c.names("tools"))
		for _, e := range c.list("resources") {
			require.True(t, json.Valid(e))
			require.NotEqual(t, `""`, string(at(e, "description")))
			require.NotEqual(t, `null`, string(at(e, "description")))
		}
		c.close()
	}
	out := w.run("demo-server", "nobody")
	require.NotZero(t, out.code)
	require.Contains(t, out.stderr, "notes")
}
