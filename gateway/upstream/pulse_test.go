package upstream

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// vanishing makes a server take every request and answer none while gone says
// so, as a half-open connection looks from here.
func vanishing(gone *atomic.Bool) func(*web) {
	return func(b *web) {
		b.before = func(_ http.ResponseWriter, r *http.Request, _ string) bool {
			if gone.Load() {
				<-r.Context().Done()
			}
			return gone.Load()
		}
		b.tool = func(w http.ResponseWriter, _ *http.Request, _ string, id []byte) { b.json(w, id, `{}`) }
	}
}

func TestHTTPServerThatVanishedIsJoinedAgain(t *testing.T) {
	t.Parallel()
	for name, noticed := range map[string]func(*rig, Conn){
		"in silence, as it might speak": func(*rig, Conn) {},
		"by a call without an answer": func(r *rig, conn Conn) {
			_, err := r.call(conn, "a")
			requireCode(r.t, err, ConnectionError, "has vanished: no answer to ping within 1s")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var gone atomic.Bool
			b := newWeb(t, vanishing(&gone))
			b.noGET = strings.HasPrefix(name, "by") // where nothing can be missed, nothing is asked without need
			cfg := b.config()
			cfg.Timeout = time.Second
			r := start(t, cfg, func(r *rig) {
				r.tune.pulse, r.tune.sign = 20*time.Millisecond, time.Second
			}).whole()
			conn := r.up()
			_, err := r.call(conn, "a")
			require.NoError(t, err)

			gone.Store(true)
			noticed(r, conn)
			select {
			case <-conn.Done():
			case <-time.After(patience):
				t.Fatal("nobody has noticed")
			}
			requireCode(t, conn.Err(), ConnectionError, "has vanished: no answer to ping within 1s")
			r.until("calls to fail at once", func() bool { _, err := r.Conn(); return err != nil })
			_, err = r.Conn()
			requireCode(t, err, ConnectionError, "vanished")

			gone.Store(false)
			r.until("another connection", func() bool { c, err := r.Conn(); return err == nil && c != conn })
			r.until("its lists and what the gateway restores", func() bool {
				return strings.Count(b.posted(), `"tools/list"`) >= 2 && len(r.h.readies()) >= 2
			})
		})
	}
}

func TestHTTPServerThatIsOnlySlowIsNotTakenForGone(t *testing.T) {
	t.Parallel()
	answer := make(chan struct{})
	b := newWeb(t, func(b *web) { b.noGET = true })
	b.tool = func(w http.ResponseWriter, r *http.Request, name string, id []byte) {
		if name == "slow" {
			select {
			case <-answer:
			case <-r.Context().Done():
			}
		}
		b.json(w, id, `{}`)
	}
	t.Cleanup(func() { close(answer) })
	cfg := b.config()
	cfg.Timeout, cfg.CallTimeout = 500*time.Millisecond, 1800*time.Millisecond
	r := start(t, cfg, nil).whole()
	conn := r.up()
	_, err := r.call(conn, "slow")
	requireCode(t, err, RequestTimeout, "no answer to tools/call within 1.8s (call_timeout)")
	r.until("questions for a sign of life, again and again", func() bool { return strings.Count(b.posted(), `"ping"`) >= 3 })
	_, err = r.call(conn, "a")
	require.NoError(t, err)
	require.NoError(t, conn.Err())
}
