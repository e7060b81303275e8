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

// unstarted returns a server that never runs, for its parsers.
func unstarted() *Server {
	return NewServer(config.Server{Name: "files", Type: config.HTTP}, Options{Registry: registry.New(registry.Options{Servers: []string{"files"}})})
}

// FuzzDiscover checks that a server's answer is limited, and that a server is modern only
// if it lists the revision.
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

// FuzzQuestions checks that the requests of a server during a call are limited, known,
// and have objects as params.
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

// Fields of RFC 9110, section 5, by bytes.
var (
	fieldName  = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
	fieldValue = regexp.MustCompile(`^[\t\x20-\x7e]*$`)
)

// FuzzMirroredArguments checks that any header of a tool with any argument is sent as
// valid headers.
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
