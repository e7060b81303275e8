package upstream

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

func TestWhatServersOfTheNewerEraMayNot(t *testing.T) {
	t.Parallel()
	asks := func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(`"%d":{"method":"roots/list"}`, i)
		}
		return `{"resultType":"input_required","inputRequests":{` + strings.Join(all, ",") + `}}`
	}
	b := newWeb(t, nil)
	b.session = ""
	b.before = func(w http.ResponseWriter, r *http.Request, method string) bool {
		result := map[string]string{
			"server/discover":     `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"web","version":"1"}}`,
			"completion/complete": asks(1),
		}[method]
		if result == "" || r.Method != http.MethodPost {
			return false
		}
		b.mu.Lock()
		m, _ := jsonrpc.Parse([]byte(b.posts[len(b.posts)-1])) // no other request in between
		b.mu.Unlock()
		b.json(w, m.ID, result)
		return true
	}
	calls := map[string]int{}
	called := func(name string, more int) int {
		b.mu.Lock()
		defer b.mu.Unlock()
		calls[name] += more
		return calls[name]
	}
	b.tool = func(w http.ResponseWriter, _ *http.Request, name string, id []byte) {
		n := called(name, 1)
		switch name {
		case "asks":
			b.json(w, id, asks(1))
		case "asks 32":
			if n > 1 {
				b.json(w, id, `{"resultType":"complete","content":[]}`)
				return
			}
			b.json(w, id, asks(32))
		case "asks 33":
			b.json(w, id, asks(33))
		case "mismatch":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32020,"message":"Header mismatch"}}`, id)
		case "cut":
			eventsTo(w)("id: 7\nretry: 1\ndata:")
		}
	}
	r := start(t, b.config(), inEra(config.ModernEra)).whole()
	conn := r.up()
	require.Equal(t, Modern, conn.Info().Era)
	for name, want := range map[string]struct {
		reason string
		calls  int
	}{
		"asks":    {"asked for input 10 times in one call", 11},
		"asks 33": {"asked for more than 32 inputs at once", 1},
		"cut":     {"the stream ended before the answer", 1}, // not resumable
	} {
		_, err := r.call(conn, name)
		var failed *Error
		require.ErrorAs(t, err, &failed, name)
		require.Contains(t, failed.Reason, want.reason)
		require.Equal(t, want.calls, called(name, 0), name)
	}
	got, err := r.call(conn, "asks 32")
	require.NoError(t, err)
	require.Equal(t, `{"content":[]}`, got)
	got, err = r.call(conn, "mismatch")
	require.NoError(t, err)
	require.Contains(t, got, "Header mismatch")
	require.Equal(t, 2, called("mismatch", 0), "the definition is fetched again once")
	_, err = do(conn, &Call{Method: "completion/complete", Params: []byte(`{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}`)})
	requireCode(t, err, BadReply, "asked for input on completion/complete")
	require.Empty(t, b.streams(), "and it opens no stream")
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range b.headers {
		require.Empty(t, h.Get("Last-Event-ID"))
	}
}

func TestModernFrameKeepsWhatTheClientSent(t *testing.T) {
	t.Parallel()
	r := newRig(t, func() config.Server { c, _ := fakeConfig(t, "all"); return c }(), nil)
	l := newLink(r.Server, "", "http")
	defer l.cancel()
	const token = `"progressToken":7,`
	const own = token + `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{"listChanged":true}},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"goblin","version":"test"}`
	for _, c := range []struct {
		name, params, want string
		change             func(c *Call)
	}{
		{"none", ``, `{"_meta":{` + own + `}}`, nil},
		{"empty", `{}`, `{"_meta":{` + own + `}}`, nil},
		{"without", `{"a":1.50}`, `{"_meta":{` + own + `},"a":1.50}`, nil},
		{"with", `{"a":1,"_meta":{"v":2}}`, `{"a":1,"_meta":{` + own + `,"v":2}}`, nil},
		{"with an empty one", `{"_meta":{}}`, `{"_meta":{` + own + `}}`, nil},
		{"with another's", `{"_meta":{"io.modelcontextprotocol/logLevel":"debug","v":2}}`, `{"_meta":{` + own + `,"v":2}}`, nil},
		{"with another's alone", `{"_meta":{"io.modelcontextprotocol/logLevel":"debug"}}`, `{"_meta":{` + own + `}}`, nil},
		{"that is none", `{"_meta":null,"a":1}`, `{"_meta":{` + strings.TrimPrefix(own, token) + `},"a":1}`, nil},
		{"level", `{}`, `{"_meta":{` + own + `,"io.modelcontextprotocol/logLevel":"error"}}`, func(c *Call) { c.LogLevel = "error" }},
		{"retry", `{"name":"t","requestState":"forged"}`, `{"inputResponses":{"k":{}},"requestState":"s","_meta":{` + own + `},"name":"t"}`, func(c *Call) {
			c.prepareRetry([]byte(`{"k":{}}`), []byte(`"s"`))
		}},
		{"retry of nothing", `{"requestState":"forged"}`, `{"requestState":"s","_meta":{` + own + `}}`, func(c *Call) { c.prepareRetry(nil, []byte(`"s"`)) }},
		{"token and name", `{"_meta":{"progressToken":"p","io.modelcontextprotocol/logLevel":"x"},"name":"n"}`, `{"_meta":{` + strings.TrimPrefix(own, token) + `,"progressToken":7},"name":"other"}`, func(c *Call) {
			c.Edits = []rawjson.Edit{rawjson.ReplaceEdit(c.Params, rawjson.Get(c.Params, "name"), []byte(`"other"`))}
		}},
	} {
		call := &Call{Method: "m", modern: true}
		if c.params != "" {
			call.Params = []byte(c.params)
		}
		if c.change != nil {
			c.change(call)
		}
		call.findToken()
		frame := l.modernFrame(call, []byte("7"))
		require.NoError(t, rawjson.Valid(frame), "%s: %s", c.name, frame)
		require.Equal(t, c.want, string(rawjson.Get(frame, "params")), c.name)
	}
}
