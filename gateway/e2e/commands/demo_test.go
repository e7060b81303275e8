//go:build e2e

package commands

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestDemoIsServedWithoutAConfig(t *testing.T) {
	t.Parallel()
	c := e2e.DemoClient(t)
	text := c.ReadText("goblin://servers")
	for _, name := range []string{"notes", "clock", "library"} {
		require.Contains(t, text, name)
	}
	uris := c.Names("resources")
	require.Greater(t, len(uris), 2000)
	require.True(t, e2e.IsSorted(uris))
	require.NotEmpty(t, c.Names("tools"))
	require.NotEmpty(t, c.Names("prompts"))
	require.GreaterOrEqual(t, len(c.Names("templates")), 2)
}

func TestR4_01_DemoReadsAreTextOrBlobNeverBoth(t *testing.T) {
	t.Parallel()
	c := e2e.DemoClient(t)
	texts, blobs := 0, 0
	ids := map[string]string{}
	for i, uri := range c.Names("resources") {
		if i%20 == 0 || !strings.HasPrefix(uri, "mcp://library/") {
			ids[uri] = c.Begin("resources/read", e2e.Obj{"uri": uri})
		}
	}
	for uri, id := range ids {
		m := c.End(id)
		require.Nil(t, m.Error, "%s: %s", uri, m.Raw)
		contents := e2e.Each(m.Result, "contents")
		require.NotEmpty(t, contents, uri)
		for _, content := range contents {
			text, blob := e2e.At(content, "text"), e2e.At(content, "blob")
			require.True(t, (text == nil) != (blob == nil), "%s: %s", uri, content)
			if blob != nil {
				_, err := base64.StdEncoding.DecodeString(e2e.Str(content, "blob"))
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
	c := e2e.DemoClient(t)
	c.Names("resources")
	for _, uri := range []string{"mcp://notes/note://none-of-that-name", "mcp://library/library://books/nobody/nothing", "mcp://clock/clock://never"} {
		m := c.Request("resources/read", e2e.Obj{"uri": uri})
		require.NotNil(t, m.Error, m.Raw)
	}
}

func TestDemoServersSpeakMCPThemselves(t *testing.T) {
	t.Parallel()
	w := e2e.DemoWorld(t)
	for _, name := range []string{"notes", "clock", "library"} {
		c := w.Pipe("demo-server", name)
		result := c.Init()
		require.NotEmpty(t, e2e.Str(result, "serverInfo", "name"))
		require.NotEmpty(t, c.Names("tools"))
		for _, e := range c.List("resources") {
			require.True(t, json.Valid(e))
			require.NotEqual(t, `""`, string(e2e.At(e, "description")))
			require.NotEqual(t, `null`, string(e2e.At(e, "description")))
		}
		c.Close()
	}
	out := w.Run("demo-server", "nobody")
	require.NotZero(t, out.Code)
	require.Contains(t, out.Stderr, "notes")
}
