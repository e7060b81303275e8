//go:build e2e

package inputs

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

const byteOrderMark = "\uFEFF"

func TestServersMayEncodeAnswersAsTheStandardsAllow(t *testing.T) {
	event := func(format string) func(string) (string, string) {
		return func(answer string) (string, string) {
			return "text/event-stream", strings.ReplaceAll(format, "$", answer)
		}
	}
	half := func(answer string) (string, string) {
		at := strings.Index(answer, ",") + 1
		return "text/event-stream", "data:" + answer[:at] + "\rdata:" + answer[at:] + "\r\r"
	}
	for _, row := range []struct {
		name, kind string
		encode     func(answer string) (kind, body string)
	}{
		{"LF", "http", event("event: message\ndata: $\n\n")},
		{"CRLF", "http", event("event: message\r\ndata: $\r\n\r\n")},
		{"CR", "http", event("event: message\rdata: $\r\r")},
		{"mixed", "http", event(": ping\r\n\rid: 1\ndata: $\n\r")},
		{"a mark", "http", event(byteOrderMark + "data: $\r\r")},
		{"several lines", "http", half},
		{"empty events", "http", event("data\n\ndata:\r\revent: x\r\rid: a\x00b\rretry: x\rfoo\rdata:$\r\r")},
		{"JSON after a mark", "http", func(answer string) (string, string) { return "application/json", byteOrderMark + answer }},
		{"SSE, CR", "sse", event("data: $\r\r")},
		{"SSE, CRLF", "sse", event("event: message\r\ndata: $\r\n\r\n")},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			newWebServer(t, w, row.kind).encode = row.encode
			c := w.Standalone()
			c.WaitListed("tools", "shop_buy", true)
			require.Equal(t, "bought", c.CallText("shop_buy", e2e.Obj{}))
		})
	}
}

func TestAByteOrderMarkBeforeTheFirstMessageIsSkipped(t *testing.T) {
	server := func(w *e2e.World) { // which writes one, too
		w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "on": e2e.Obj{
			"server/discover": e2e.Actions(e2e.Do("raw", e2e.Obj{"text": byteOrderMark})),
		}})
	}
	for name, connect := range map[string]func(w *e2e.World) *e2e.Client{
		"standalone": func(w *e2e.World) *e2e.Client { return w.Pipe("stdio", "--standalone") },
		"bridge":     func(w *e2e.World) *e2e.Client { w.AllowDaemon = true; return w.Pipe("stdio") },
		"pipes":      func(w *e2e.World) *e2e.Client { w.AllowDaemon = true; return w.Pipe() },
		"socket":     func(w *e2e.World) *e2e.Client { return w.Socket() },
	} {
		for before, text := range map[string]string{"mark": byteOrderMark, "mark and blanks": byteOrderMark + "\r\n \n\t", "blanks": "\n\r\n  "} {
			t.Run(name+", "+before, func(t *testing.T) {
				t.Parallel()
				w := e2e.NewWorld(t)
				server(w)
				c := connect(w)
				write, first := c.Write, true
				c.Write = func(frame []byte) {
					if first {
						frame = append([]byte(text), frame...)
						first = false
					}
					write(append(frame, '\r')) // and lines end in CRLF
				}
				c.Init()
				c.WaitListed("tools", "b_t", true)
				require.Equal(t, "b:t:{}", c.CallText("b_t", e2e.Obj{}))
			})
		}
	}
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		w := e2e.NewWorld(t)
		server(w)
		s := w.Serve()
		got := s.Do("POST", "/mcp", nil, byteOrderMark+e2e.InitBody)
		require.Equal(t, http.StatusOK, got.Status, got.Body)
		h := map[string]string{"Mcp-Session-Id": got.Header.Get("Mcp-Session-Id")}
		require.Contains(t, s.Do("POST", "/mcp", h, byteOrderMark+e2e.PingBody).Body, `"result":{}`)
	})
}

func TestASlashAfterTheURLMakesNoDifference(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["auth_token"] = "t0ken-of-the-test"
	w.Profiles = e2e.Obj{"some": e2e.Obj{"servers": []string{"b"}, "tools": e2e.Obj{"allow": []string{"t"}}}}
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t"), e2e.Tool("u")}})
	s := w.Serve()
	for path, tools := range map[string][]string{"/mcp/": {"b_t", "b_u"}, "/mcp/p/some/": {"b_t"}, "/mcp//": {"b_t", "b_u"}} {
		c := s.RawClient()
		c.Web.Path = path
		c.Init()
		c.Listen()
		require.Equal(t, tools, c.Names("tools"), path)

		// All checks are the same without it.
		without := strings.TrimRight(path, "/")
		for _, row := range []struct {
			method string
			header map[string]string
			status int
		}{
			{"POST", map[string]string{"Authorization": "Bearer wrong"}, http.StatusUnauthorized},
			{"POST", map[string]string{"Origin": "https://evil.example"}, http.StatusForbidden},
			{"POST", map[string]string{"Host": "evil.example"}, http.StatusForbidden},
			{"POST", map[string]string{"Content-Type": "text/plain"}, http.StatusUnsupportedMediaType},
			{"GET", nil, http.StatusBadRequest},
			{"HEAD", nil, http.StatusMethodNotAllowed},
			{"PUT", nil, http.StatusMethodNotAllowed},
			{"DELETE", map[string]string{"Mcp-Session-Id": "unknown"}, http.StatusNotFound},
		} {
			for _, p := range []string{path, without} {
				require.Equal(t, row.status, s.Do(row.method, p, row.header, e2e.InitBody).Status, fmt.Sprint(row, p))
			}
		}
	}
	for _, path := range []string{"/mcp/x", "/mcp/p/unknown/", "/metrics/", "/"} {
		require.Equal(t, http.StatusNotFound, s.Do("POST", path, nil, e2e.InitBody).Status, path)
	}
}
