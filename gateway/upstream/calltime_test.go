package upstream

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/jsonrpc"
)

func TestTheTimeOfACallRestsWhileItsServerAsksPeople(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string]bool{
		"and the server answers afterwards": true,
		"and continues afterwards":          false,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := scripted(t, func(b *web) { b.noGET = true })
				b.tool = func(w http.ResponseWriter, r *http.Request, _ string, id []byte) {
					send := eventsTo(w)
					time.Sleep(time.Second)
					send(`data: {"jsonrpc":"2.0","id":"ask","method":"sampling/createMessage","params":{"n":1.50}}`)
					m := <-b.answers
					if answers {
						send(fmt.Sprintf(`data: {"jsonrpc":"2.0","id":%s,"result":{"answer":%s}}`, id, m.Result))
					}
					<-r.Context().Done()
				}
				c := &Call{Method: toolCall, Params: toolParams("a", ""), Timeout: 3 * time.Second}
				r, conn := startStill(t, b, func(r *rig) {
					r.h.request = func(ctx context.Context, _ *Call, method string, params []byte) ([]byte, *jsonrpc.Error) {
						if method != "sampling/createMessage" || string(params) != `{"n":1.50}` {
							t.Errorf("got %s %s", method, params)
						}
						c.Pause()
						defer c.Resume()
						_ = sleep(ctx, time.Minute) // as a user
						return []byte(`{"model":1.50}`), nil
					}
				})
				since := time.Now()
				got, err := do(conn, c)
				if answers {
					require.NoError(t, err)
					require.Equal(t, `{"answer":{"model":1.50}}`, got)
					require.Equal(t, time.Minute+time.Second, time.Since(since))
					return
				}
				requireCode(t, err, RequestTimeout, "no answer to tools/call within 3s")
				require.Equal(t, time.Minute+3*time.Second, time.Since(since))
				require.NoError(t, r.up().Err())
			})
		})
	}
}

func TestHowLongAServerMayTakeToAnswer(t *testing.T) {
	t.Parallel()
	const s = time.Second
	tests := []struct {
		name, method, params string
		takes, progress      time.Duration
		over                 time.Duration // 0: never
		failure              string
	}{
		{"a prompt: timeout", "prompts/get", `{"name":"p"}`, 2 * time.Minute, 0, 30 * s, "within 30s (timeout)"},
		{"a tool: call_timeout", "tools/call", `{"name":"t"}`, 59 * s, 0, 0, ""},
		{"a tool that takes longer", "tools/call", `{"name":"t"}`, 2 * time.Minute, 0, time.Minute, "within 1m (call_timeout)"},
		{"progress extends it", "tools/call", `{"name":"t"}`, time.Hour, 59 * s, 0, ""},
		{"progress without a request for it", "prompts/get", `{"name":"p"}`, 2 * time.Minute, 29 * s, 0, ""},
		{"nor is it asked for by other members", "resources/read", `{"uri":"x:1","_meta":{"k":1}}`, 2 * time.Minute, 29 * s, 0, ""},
		{"it may be asked for", "resources/read", `{"uri":"x:1","_meta":{"progressToken":"mine"}}`, 2 * time.Minute, 29 * s, 0, ""},
		{"progress that comes too late", "resources/read", `{"uri":"x:1"}`, 2 * time.Minute, 31 * s, 30 * s, "within 30s (timeout)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := scripted(t, func(b *web) { b.noGET = true })
				b.on = map[string]func(http.ResponseWriter, *http.Request, jsonrpc.Message){
					tt.method: func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
						late(w, r, m, tt.takes, tt.progress, "{}")
					},
				}
				_, conn := startStill(t, b, func(r *rig) { r.cfg.Timeout, r.cfg.CallTimeout = 30*s, time.Minute })
				since := time.Now()
				_, err := do(conn, &Call{Method: tt.method, Params: []byte(tt.params)})
				if tt.over == 0 {
					require.NoError(t, err)
					require.Equal(t, tt.takes, time.Since(since))
					return
				}
				requireCode(t, err, RequestTimeout, tt.failure)
				require.Equal(t, tt.over, time.Since(since))
			})
		})
	}
}
