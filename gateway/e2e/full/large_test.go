//go:build faults

package full

import (
	"bytes"
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestC10_LargeRequestArrivesWhole(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	const size = 32 << 20
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "on": e2e.Obj{"tools/call t": e2e.Actions(e2e.Do("text", e2e.Obj{"text": "whole"}))}})
	c := w.Standalone()
	require.Equal(t, "whole", c.CallText("b_t", e2e.Obj{"x": strings.Repeat("x", size)}))
	require.Len(t, e2e.Str(b.Received("tools/call")[0].Msg, "params", "arguments", "x"), size)
	c.Prog.Bounded(300)
}

func TestC11_LineOf100MBIsBounded(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]string{"over the limit": "32MiB", "within the limit": "128MiB"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Gateway["limits"] = e2e.Obj{"frame": limit}
			w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
			m := w.WriteOnlyClient("stdio", "--standalone")
			_, err := m.In.WriteString(`{"jsonrpc":"2.0","id":"big","method":"ping","params":{"x":"`)
			require.NoError(t, err)
			part := bytes.Repeat([]byte("x"), 1<<20)
			for range 100 {
				_, err = m.In.Write(part)
				require.NoError(t, err)
			}
			_, err = m.In.WriteString("\"}}\n")
			require.NoError(t, err)
			m.Call(2, "b_t")
			require.Contains(t, m.ReadAnswers(3), `"big"`)
			m.Bounded(450)
		})
	}
}

func TestC14_AnswersWaitForAClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	for mode, args := range map[string][]string{"standalone": {"stdio", "--standalone"}, "bridge": {"stdio"}} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.AllowDaemon = mode == "bridge"
			const n, size = 240, 1 << 20 // one client may hold 256 MiB
			w.Gateway["limits"] = e2e.Obj{"in_flight": 2 * n}
			b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("big"), e2e.Tool("t")}, "on": e2e.Obj{
				"tools/call big": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "all"}), e2e.Do("big", e2e.Obj{"bytes": size})),
			}}, e2e.Obj{"timeout": "120s"})
			m := w.WriteOnlyClient(args...)
			for id := range n {
				m.Call(100+id, "b_big")
			}
			b.WaitEvents("wait", "all", n) // every request was read before the first answer
			owner := m.Cmd.Process.Pid
			if w.AllowDaemon {
				owner = w.DaemonPID()
			}
			b.Do(e2e.Do("release", e2e.Obj{"name": "all"}))
			e2e.Eventually(t, "Goblin to hold all answers", func() bool {
				now, _ := e2e.Memory(t, owner)
				return now > n*size>>20-10 // except what a bridge holds
			})
			answers := m.ReadAnswers(n + 1)
			for id := range n {
				require.Greater(t, answers[strconv.Itoa(100+id)], size)
			}
			for _, pid := range []int{owner, m.Cmd.Process.Pid} {
				e2e.Bounded(t, pid, 450)
			}
			m.Call(7, "b_t")
			require.Contains(t, m.ReadAnswers(1), "7")
		})
	}
}

func TestB32_FloodOfAServerCostsNoClientItsSession(t *testing.T) {
	t.Parallel()
	for mode, args := range map[string][]string{"standalone": {"stdio", "--standalone"}, "bridge": {"stdio"}} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.AllowDaemon = mode == "bridge"
			b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "resources": []e2e.Obj{e2e.Resource("x:1")}})
			m := w.WriteOnlyClient(args...)
			m.Call(2, "b_t")
			_, err := io.WriteString(m.In, `{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"mcp://b/x:1"}}`+"\n")
			require.NoError(t, err)
			m.ReadAnswers(3) // with the answer to initialize
			owner := m.Cmd.Process.Pid
			if w.AllowDaemon {
				owner = w.DaemonPID()
			}
			// A session may leave 320 MiB unread.
			text := strings.Repeat("x", 8<<10)
			b.Do(e2e.Do("notify", e2e.Obj{"n": 50_000, "method": "notifications/message", "params": e2e.Obj{"level": "error", "data": text}}))
			b.Do(e2e.Do("notify", e2e.Obj{"n": 50_000, "method": "notifications/resources/updated", "params": e2e.Obj{"uri": "x:1/$n" + text}}))
			m.Call(7, "b_t")
			require.Contains(t, m.ReadAnswers(1), "7")
			for _, pid := range []int{owner, m.Cmd.Process.Pid} {
				e2e.Bounded(t, pid, 300)
			}
		})
	}
}

// The memory of a catalog of 100,000 entries depends only on its entries. Buffers of
// parsing and sending are freed.
func TestMemoryOfALargeCatalog(t *testing.T) {
	if runtime.GOOS != "linux" || e2e.Racing() {
		t.Skip("needs /proc, and memory that is Goblin's alone")
	}
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"generate": e2e.Obj{"resources": 100_000}, "pagesize": 1000})
	c := w.Standalone()
	for range 3 {
		require.Len(t, c.List("resources"), 100_000)
	}
	e2e.Eventually(t, "less memory", func() bool {
		now, _ := e2e.Memory(t, c.Prog.Cmd.Process.Pid)
		return now <= 143 // 150 MB
	})
}
