package upstream

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// unstarted is a server that was never run, to parse for.
func unstarted() *Server {
	return NewServer(config.Server{Name: "files", Type: config.HTTP}, Options{Registry: registry.New(registry.Options{Servers: []string{"files"}})})
}

// FuzzDiscover: whatever a server says of itself is bounded and taken for a
// modern one only if it names the revision.
func FuzzDiscover(f *testing.F) {
	f.Add([]byte(`{"supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{},"instructions":"x"}`), true)
	f.Add([]byte(`{"code":-32022,"message":"m","data":{"supported":["2099-01-01"]}}`), false)
	f.Add([]byte(`{"code":-32021,"message":"m","data":{"supported":{"2099-01-01":1}}}`), false)
	f.Add([]byte(`{"supportedVersions":{"2026-07-28":1}}`), true)
	s := unstarted()
	f.Fuzz(func(t *testing.T, told []byte, answered bool) {
		if rawjson.Valid(told) != nil {
			return
		}
		d := &discovery{}
		if answered {
			d.parseResult(told)
			require.Equal(t, d.modern, d.result != nil)
		} else {
			d.parseError(s, told)
			require.Nil(t, d.result)
		}
		require.LessOrEqual(t, len(d.versions), maxVersions)
		for _, v := range d.versions {
			require.LessOrEqual(t, len(v), 64)
		}
	})
}

// FuzzQuestions: what a server asks for amid a call is a bounded number of
// requests that exist, with params that are objects.
func FuzzQuestions(f *testing.F) {
	f.Add([]byte(`{"a":{"method":"elicitation/create","params":{"message":"?"}},"b":{"method":"roots/list"}}`))
	f.Add([]byte(`{"":{"method":"tools/call"}}`))
	f.Add([]byte(`{"a":{"method":"roots/list","params":[]}}`))
	l := newLink(unstarted(), "", "stdio")
	f.Cleanup(l.cancel)
	f.Fuzz(func(t *testing.T, requests []byte) {
		if rawjson.Valid(requests) != nil {
			return
		}
		all, err := l.questions(requests)
		if err != nil {
			requireCode(t, err, BadReply, "")
		}
		require.LessOrEqual(t, len(all), maxQuestions)
		for _, q := range all {
			require.True(t, rawjson.IsString(q.key))
			require.True(t, q.params == nil || rawjson.IsObject(q.params))
		}
	})
}

// Fields of RFC 9110, section 5, as far as bytes go.
var (
	fieldName  = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
	fieldValue = regexp.MustCompile(`^[\t\x20-\x7e]*$`)
)

// FuzzMirroredArguments: whatever a tool wants as a header and whatever a
// client gives for it, what is sent are headers.
func FuzzMirroredArguments(f *testing.F) {
	f.Add([]byte(`{"name":"t","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}`), []byte(`{"region":"eu\r\nX: 1"}`))
	f.Add([]byte(`{"name":"t","inputSchema":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}`), []byte(`{"n":1e300}`))
	f.Add([]byte(`{"name":"t","inputSchema":{"properties":{"n":{"x-mcp-header":"a: b"}}}}`), []byte(`{"n":true}`))
	s := unstarted()
	f.Fuzz(func(t *testing.T, tool, arguments []byte) {
		if rawjson.Valid(tool) != nil || rawjson.Valid(arguments) != nil {
			return
		}
		s.mirror([][]byte{tool}, false)
		name := rawjson.GetString(tool, "name")
		head := http.Header{}
		s.headerMirrors.Load().Headers(head, name, arguments)
		for name, values := range head {
			require.Len(t, values, 1)
			require.Regexp(t, fieldName, name)
			require.Regexp(t, fieldValue, values[0])
		}
	})
}
