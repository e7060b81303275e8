package downstream_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
)

// FuzzPost checks that any POST is answered, never with an internal error, and that the
// body matches the Content-Type.
func FuzzPost(f *testing.F) {
	const envelope = `{"jsonrpc":"2.0","id":1,"method":"echo","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	f.Add([]byte(initialize), "2025-11-25", "", "", "*/*", "application/json")
	f.Add([]byte(envelope), "2026-07-28", "echo", "", "application/json, text/event-stream;q=0", "application/json; charset=utf-8")
	f.Add([]byte(envelope), "2026-07-28", "=?base64?ZWNobw==?=", "=?base64?x?=", "text/*", "APPLICATION/JSON")
	f.Add([]byte("[]"), "1999-01-01", "\t", "x", ";;q=,", "text/plain")
	h := newScript()
	h.handle = func(x *downstream.Request) {
		for len(h.begun) > 0 {
			<-h.begun
		}
		x.Reply([]byte(`{}`))
	}
	h.opened, h.closed = nil, nil
	e := downstream.NewHTTP(downstream.HTTPOptions{Options: downstream.Options{Handler: quiet{h}, Limits: downstream.Limits{Frame: 1 << 16}}})
	f.Cleanup(e.Close)
	f.Fuzz(func(t *testing.T, body []byte, version, method, name, accept, kind string) {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "http://127.0.0.1/mcp", strings.NewReader(string(body)))
		r.Header = http.Header{
			"Mcp-Protocol-Version": {version}, "Mcp-Method": {method}, "Mcp-Name": {name}, "Accept": {accept}, "Content-Type": {kind},
		}
		w := httptest.NewRecorder()
		e.Handler().ServeHTTP(w, r)
		require.True(t, w.Code < 500 || w.Code == 503, "%d %s", w.Code, w.Body)
		if id := w.Header().Get("Mcp-Session-Id"); id != "" {
			end := httptest.NewRequestWithContext(t.Context(), "DELETE", "http://127.0.0.1/mcp", nil)
			end.Header.Set("Mcp-Session-Id", id)
			e.Handler().ServeHTTP(httptest.NewRecorder(), end)
		}
		text := w.Body.Bytes()
		switch kind, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";"); kind {
		case "application/json":
			require.True(t, json.Valid(text), "%s", text)
		case "text/event-stream":
			for line := range strings.Lines(string(text)) {
				if data, ok := strings.CutPrefix(line, "data: "); ok {
					_, err := jsonrpc.Parse([]byte(data))
					require.NoError(t, err)
				}
			}
		}
	})
}

// quiet answers without notifications about sessions, because the fuzzer opens too many.
type quiet struct{ h *script }

func (quiet) SessionOpened(*downstream.Session)                      {}
func (quiet) SessionClosed(*downstream.Session)                      {}
func (quiet) HandleNotification(*downstream.Session, string, []byte) {}
func (q quiet) Handle(x *downstream.Request)                         { q.h.Handle(x) }
