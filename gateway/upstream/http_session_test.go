package upstream

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHTTPLostSessionIsOpenedAnew(t *testing.T) {
	t.Parallel()
	answer := func(id, code, message string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":` + code + `,"message":"` + message + `"}}`
	}
	for name, test := range map[string]struct {
		status int
		body   string // "ID" is replaced by the request's
	}{
		"404":                           {404, answer("null", "-32000", "No valid Session ID")},
		"404 without words":             {404, ""},
		"404 that repeats the id":       {404, answer("ID", "-32000", "No valid Session ID")},
		"400 that names the session":    {400, answer("null", "-32000", "No valid Session ID")},
		"400 that repeats the id":       {400, answer("ID", "-32600", "Invalid or expired session ID")},
		"400 in plain text":             {400, "Bad session"},
		"400 of one that has restarted": {400, answer("null", "-32000", "Bad Request: Server not initialized")},
		"401 that names the session":    {401, "Unauthorized: Session not found"},
		"410":                           {410, "Gone"},
		"200":                           {200, answer("ID", "-32001", "Session not found")},
		"200 with id null":              {200, answer("null", "-32001", "session_not_found")},
		"200, invalid request":          {200, answer("ID", "-32600", "UNKNOWN SESSION")},
		"200 after a mark":              {200, "\uFEFF" + answer("ID", "-32001", "SessionNotFound")},
		"200 as an event":               {200, "event: message\rdata: " + answer("ID", "-32001", "Session does not exist") + "\r\r"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newWeb(t, nil)
			b.tool = func(w http.ResponseWriter, _ *http.Request, _ string, id []byte) {
				w.Header().Set("Content-Type", "application/json")
				if strings.HasPrefix(test.body, "event:") {
					w.Header().Set("Content-Type", "text/event-stream")
				}
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, strings.Replace(test.body, `"id":ID`, `"id":`+string(id), 1))
			}
			r := start(t, b.config(), nil).whole()
			conn := r.up()
			_, err := r.call(conn, "a")
			requireCode(t, err, ConnectionError, "lost the session")
			require.ErrorIs(t, err, ErrSessionLost)
			<-conn.Done()
			r.until("another connection", func() bool { c, err := r.Conn(); return err == nil && c != conn })
			require.Equal(t, 2, strings.Count(b.posted(), `"initialize"`))
			b.mu.Lock()
			defer b.mu.Unlock()
			require.Zero(t, b.deletes, "there is no session to close")
		})
	}
}

// A tool may have its own sessions, and its call may have been executed.
func TestHTTPErrorsOfToolsAreNoLostSessions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status        int
		code, message string
	}{
		"a session of the tool":   {200, "-32000", "Session not found"},
		"a timeout":               {200, "-32001", "Request timed out"},
		"an argument":             {400, "-32602", "Invalid params: session_id is required"},
		"a failure of the server": {500, "-32603", "Session not found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newWeb(t, nil)
			b.tool = func(w http.ResponseWriter, _ *http.Request, _ string, id []byte) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(id)+`,"error":{"code":`+test.code+`,"message":"`+test.message+`"}}`)
			}
			r := start(t, b.config(), nil).whole()
			conn := r.up()
			for range 2 {
				reply, err := r.call(conn, "a")
				require.NoError(t, err)
				require.Contains(t, reply, test.message)
			}
			require.Equal(t, 1, strings.Count(b.posted(), `"initialize"`))
		})
	}
}

func TestHTTPWithoutSessionNeedsNoDelete(t *testing.T) {
	t.Parallel()
	b := newWeb(t, func(b *web) { b.session = "" })
	r := start(t, b.config(), nil).whole()
	r.up().Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Zero(t, b.deletes)
	for _, h := range b.headers {
		require.Empty(t, h.Get("Mcp-Session-Id"))
	}
}

func TestHTTPFirstRequestFollowsTheGETOfTheStream(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		sends bool // the client can send its GET
		after time.Duration
	}{
		"that is sent late":  {true, 0},
		"that is never sent": {false, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := scripted(t, nil)
				send := make(chan struct{})
				b.before = func(_ http.ResponseWriter, r *http.Request, _ string) bool {
					if r.Method != http.MethodGet {
						return false
					}
					select {
					case <-send:
						httptrace.ContextClientTrace(r.Context()).WroteRequest(httptrace.WroteRequestInfo{})
					case <-r.Context().Done():
					}
					<-r.Context().Done() // the stream has no event
					return true
				}
				early := make(chan string, 1)
				go func() {
					synctest.Wait() // for all that happens without the GET
					early <- b.posted()
					if test.sends {
						close(send)
					}
				}()
				since := time.Now()
				r, _ := startStill(t, b, nil)
				<-r.FirstList()
				require.Equal(t, test.after, time.Since(since))
				require.Regexp(t, `"notifications/initialized"}\s*$`, <-early)
				require.Contains(t, b.posted(), `"tools/list"`)
			})
		})
	}
}
