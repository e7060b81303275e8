package upstream

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// vanishing makes a server answer nothing from gone until back, like a half-open
// connection.
func vanishing(gone, back <-chan struct{}) func(*web) {
	return func(b *web) {
		b.before = func(_ http.ResponseWriter, r *http.Request, _ string) bool {
			select {
			case <-gone:
			default:
				return false
			}
			select {
			case <-back:
				return false
			case <-r.Context().Done():
				return true
			}
		}
		b.tool = func(w http.ResponseWriter, _ *http.Request, _ string, id []byte) { b.json(w, id, `{}`) }
	}
}

func TestHTTPServerThatVanishedIsNoticed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name           string
		timeout, after time.Duration // 0: never
		heard          bool          // it has a stream for messages
		calls          bool
		why            string
	}{
		{"in silence, as it might speak", 10 * time.Second, 69 * time.Second, true, false, "no answer to ping within 10s"},
		{"by a call without an answer", 10 * time.Second, 20 * time.Second, false, true, "no answer to ping within 10s"},
		{"after what a slow network may take, however short the timeout is", time.Second, 6 * time.Second, false, true, "no answer to ping within 5s"},
		{"never, where nothing is asked and nothing can be missed", 10 * time.Second, 0, false, false, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				gone := make(chan struct{})
				b := scripted(t, vanishing(gone, nil))
				b.noGET = !tt.heard
				r, conn := startStill(t, b, func(r *rig) { r.cfg.Timeout = tt.timeout })
				time.Sleep(time.Hour + time.Second) // of silence with answers to pings; a second after one
				require.NoError(t, conn.Err())
				_, err := r.call(conn, "a")
				require.NoError(t, err)

				close(gone)
				since := time.Now()
				if tt.after == 0 {
					time.Sleep(time.Hour)
					require.NoError(t, conn.Err())
					return
				}
				if tt.calls {
					_, err := do(conn, &Call{Context: within(t), Method: toolCall, Params: toolParams("a", "")})
					requireCode(t, err, ConnectionError, "does not respond: "+tt.why)
				}
				select {
				case <-conn.Done():
				case <-time.After(time.Hour):
				}
				require.Equal(t, tt.after, time.Since(since))
				requireCode(t, conn.Err(), ConnectionError, "does not respond: "+tt.why)
				_, err = r.Conn()
				requireCode(t, err, ConnectionError, "does not respond")
			})
		})
	}
}

func TestHTTPServerThatVanishedIsJoinedAgain(t *testing.T) {
	t.Parallel()
	gone, back := make(chan struct{}), make(chan struct{})
	b := newWeb(t, vanishing(gone, back))
	cfg := b.config()
	cfg.Timeout = time.Second // if too short for a slow machine, it reconnects before
	r := start(t, cfg, func(r *rig) { r.tune.livenessInterval, r.tune.livenessTimeout = 20*time.Millisecond, time.Second }).whole()
	conn := r.up()
	r.until("the stream for messages", func() bool { return conn.(*link).streamOpen.Load() || conn.Err() != nil })
	close(gone)
	select {
	case <-conn.Done():
	case <-time.After(patience):
		t.Fatal("not detected yet")
	}
	requireCode(t, conn.Err(), ConnectionError, "does not respond: no answer to ping within 1s")
	r.until("calls to fail at once", func() bool { _, err := r.Conn(); return err != nil })

	lists, readies := strings.Count(b.posted(), `"tools/list"`), len(r.h.readies())
	close(back)
	r.until("another connection", func() bool { c, err := r.Conn(); return err == nil && c != conn })
	r.until("its lists and the restored state", func() bool {
		return strings.Count(b.posted(), `"tools/list"`) > lists && len(r.h.readies()) > readies
	})
}

func TestHTTPServerThatIsOnlySlowIsNotTakenForGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := scripted(t, func(b *web) { b.noGET = true })
		b.tool = func(w http.ResponseWriter, r *http.Request, name string, id []byte) {
			if name == "slow" {
				<-r.Context().Done()
				return
			}
			b.json(w, id, `{}`)
		}
		r, conn := startStill(t, b, func(r *rig) { r.cfg.Timeout, r.cfg.CallTimeout = 10*time.Second, 35*time.Second })
		_, err := r.call(conn, "slow")
		requireCode(t, err, RequestTimeout, "no answer to tools/call within 35s (call_timeout)")
		synctest.Wait()
		require.Equal(t, 4, strings.Count(b.posted(), `"ping"`), "a ping every 10 s and one at the end")
		_, err = r.call(conn, "a")
		require.NoError(t, err)
		require.NoError(t, conn.Err())
	})
}
