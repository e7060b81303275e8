package upstream

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/jsonrpc"
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
		m, _ := jsonrpc.Parse([]byte(b.posts[len(b.posts)-1])) // nothing else is asked meanwhile
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
		"asks 33": {"asked more than 32 questions at once", 1},
		"cut":     {"the stream ended before the answer", 1}, // it resumes nothing
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
	require.Equal(t, 2, called("mismatch", 0), "the definition is fetched anew once")
	_, err = do(conn, &Call{Method: "completion/complete", Params: []byte(`{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}`)})
	requireCode(t, err, BadReply, "asked for input on completion/complete")
	require.Empty(t, b.streams(), "nor is there a stream of its own")
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range b.headers {
		require.Empty(t, h.Get("Last-Event-ID"))
	}
}
