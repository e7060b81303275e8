//go:build e2e

package limits

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// A client that doesn't read servers' notifications gets its answers before them.
func TestAnswersOvertakeLogLines(t *testing.T) {
	t.Parallel()
	for mode, args := range map[string][]string{"standalone": {"stdio", "--standalone"}, "bridge": {"stdio"}} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.AllowDaemon = mode == "bridge"
			const lines, size = 16_000, 100
			w.Gateway["limits"] = e2e.Obj{"unsent": "64MiB"} // all of it waits
			text := strings.Repeat("x", size)
			loud := w.Backend("loud", e2e.Obj{"serial": true, "tools": []e2e.Obj{e2e.Tool("t")}})
			calm := w.Backend("calm", e2e.Obj{"serial": true, "tools": []e2e.Obj{e2e.Tool("t"), e2e.Tool("says")}, "on": e2e.Obj{"tools/call says": e2e.Actions(
				e2e.Do("notify", e2e.Obj{"n": 3, "method": "notifications/message", "params": e2e.Obj{"level": "error", "data": "calm $n"}}),
				e2e.Do("text", e2e.Obj{"text": "said"}))}})
			m := w.WriteOnlyClient(args...)
			m.Call(2, "loud_t")
			m.Call(3, "calm_t")
			m.ReadAnswers(3) // with the answer to initialize
			loud.Do(e2e.Do("notify", e2e.Obj{"n": lines, "method": "notifications/message", "params": e2e.Obj{"level": "error", "data": "loud $n " + text}}))
			hasRead := func(b *e2e.Backend, pings int) { // everything that b wrote before
				b.Do(e2e.Do("request", e2e.Obj{"method": "ping"}))
				b.WaitEvents("reply", "ping", pings)
			}
			hasRead(loud, 1) // none of the lines can be about the calls that follow
			_, err := io.WriteString(m.In, `{"jsonrpc":"2.0","id":7,"method":"ping"}`+"\n")
			require.NoError(t, err)
			m.Call(4, "loud_t")
			m.Call(5, "calm_t")
			m.Call(6, "calm_says")
			m.Call(8, "loud_t")
			m.Call(9, "calm_t")
			loud.WaitReceived("tools/call", 3) // it has answered all but the last
			hasRead(loud, 2)
			calm.WaitReceived("tools/call", 4)
			hasRead(calm, 1)

			require.NoError(t, m.Out.SetReadDeadline(time.Now().Add(e2e.Patience)))
			r := bufio.NewReader(m.Out)
			before, said, seen := map[string]int{}, 0, 0
			for len(before) < 4 {
				line, err := r.ReadString('\n')
				require.NoError(t, err, "%v", before)
				var got e2e.Message
				require.NoError(t, json.Unmarshal([]byte(line), &got))
				switch {
				case string(got.ID) == "8" || string(got.ID) == "9":
				case got.ID != nil:
					before[string(got.ID)] = seen
					if string(got.ID) == "6" {
						require.Equal(t, 3, said, "its own lines precede the answer")
					}
				case strings.HasPrefix(e2e.Str(got.Params, "data"), "calm"):
					require.Equal(t, fmt.Sprint("calm ", said), e2e.Str(got.Params, "data"))
					said++
				case strings.HasPrefix(e2e.Str(got.Params, "data"), "loud"):
					require.Equal(t, fmt.Sprint("loud ", seen, " ", text), e2e.Str(got.Params, "data"), "in order")
					seen++
				}
			}
			for id, n := range before {
				// Subtracts what pipes and sockets buffer.
				require.Less(t, n, lines/3, "before the answer to %s: %v", id, before)
			}
			for seen < lines {
				line, err := r.ReadString('\n')
				require.NoError(t, err)
				if strings.Contains(line, `"data"`) {
					require.Contains(t, line, fmt.Sprint("loud ", seen, " "), "nothing is lost")
					seen++
				}
			}
		})
	}
}
