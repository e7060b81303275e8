package limits

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

var answerHead = regexp.MustCompile(`^\{"jsonrpc":"2\.0","id":(\d+),`)

// mute is a client that only writes: what it is sent stays in its pipe until
// take is called. Neither keeps what it reads.
type mute struct {
	*e2e.Program
	in  *os.File
	out *os.File
}

func newMute(w *e2e.World, args ...string) *mute {
	w.T.Helper()
	m := &mute{}
	in, stdin, err := os.Pipe()
	require.NoError(w.T, err)
	stdout, out, err := os.Pipe()
	require.NoError(w.T, err)
	m.in, m.out = stdin, stdout
	w.T.Cleanup(func() {
		_ = m.in.Close()
		_ = m.out.Close()
	})
	m.Program = w.Start(func(cmd *exec.Cmd) { cmd.Stdin, cmd.Stdout = in, out }, args...)
	_ = in.Close()
	_ = out.Close()
	_, err = io.WriteString(m.in, e2e.InitBody+"\n"+`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	require.NoError(w.T, err)
	return m
}

// call sends one request for a tool.
func (m *mute) call(id int, name string) {
	m.T.Helper()
	_, err := fmt.Fprintf(m.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{}}}`+"\n", id, name)
	require.NoError(m.T, err)
}

// take reads until it has answers to n requests, one of initialize among
// them, and gives the length of each by its id.
func (m *mute) take(n int) map[string]int {
	m.T.Helper()
	require.NoError(m.T, m.out.SetReadDeadline(time.Now().Add(2*e2e.Patience)))
	got := map[string]int{}
	for r := bufio.NewReaderSize(m.out, 1<<20); len(got) < n; {
		line, err := r.ReadBytes('\n')
		require.NoError(m.T, err, "after %d answers", len(got))
		var head struct{ ID json.RawMessage }
		if found := answerHead.FindSubmatch(line[:min(len(line), 100)]); found != nil {
			head.ID = found[1] // decoding megabytes takes longer than passing them on
		} else {
			require.NoError(m.T, json.Unmarshal(line, &head))
		}
		if head.ID != nil {
			require.NotContains(m.T, got, string(head.ID), "two answers")
			got[string(head.ID)] = len(line)
		}
	}
	return got
}

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
			m := newMute(w, "stdio", "--standalone")
			_, err := m.in.WriteString(`{"jsonrpc":"2.0","id":"big","method":"ping","params":{"x":"`)
			require.NoError(t, err)
			part := bytes.Repeat([]byte("x"), 1<<20)
			for range 100 {
				_, err = m.in.Write(part)
				require.NoError(t, err)
			}
			_, err = m.in.WriteString("\"}}\n")
			require.NoError(t, err)
			m.call(2, "b_t")
			require.Contains(t, m.take(3), `"big"`)
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
			w.Hosted = mode == "bridge"
			const n, size = 256, 1 << 20
			w.Gateway["limits"] = e2e.Obj{"in_flight": 2 * n}
			b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("big"), e2e.Tool("t")}, "on": e2e.Obj{
				"tools/call big": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "all"}), e2e.Do("big", e2e.Obj{"bytes": size})),
			}}, e2e.Obj{"timeout": "120s"})
			m := newMute(w, args...)
			for id := range n {
				m.call(100+id, "b_big")
			}
			b.WaitEvents("wait", "all", n) // every request was read before the first answer
			owner := m.Cmd.Process.Pid
			if w.Hosted {
				owner = w.Host()
			}
			b.Do(e2e.Do("release", e2e.Obj{"name": "all"}))
			e2e.Eventually(t, "Goblin to hold all answers", func() bool {
				now, _ := e2e.Memory(t, owner)
				return now > n*size>>20-10 // but for what a bridge holds
			})
			answers := m.take(n + 1)
			for id := range n {
				require.Greater(t, answers[strconv.Itoa(100+id)], size)
			}
			for _, pid := range []int{owner, m.Cmd.Process.Pid} {
				e2e.Bounded(t, pid, 450)
			}
			m.call(7, "b_t")
			require.Contains(t, m.take(1), "7")
		})
	}
}

func TestB32_FloodOfAServerCostsNoClientItsSession(t *testing.T) {
	t.Parallel()
	for mode, args := range map[string][]string{"standalone": {"stdio", "--standalone"}, "bridge": {"stdio"}} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Hosted = mode == "bridge"
			b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "resources": []e2e.Obj{e2e.Resource("x:1")}})
			m := newMute(w, args...)
			m.call(2, "b_t")
			_, err := io.WriteString(m.in, `{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"mcp://b/x:1"}}`+"\n")
			require.NoError(t, err)
			m.take(3) // with the answer to initialize
			owner := m.Cmd.Process.Pid
			if w.Hosted {
				owner = w.Host()
			}
			// What a session may leave unread is 320 MiB.
			text := strings.Repeat("x", 8<<10)
			b.Do(e2e.Do("notify", e2e.Obj{"n": 50_000, "method": "notifications/message", "params": e2e.Obj{"level": "error", "data": text}}))
			b.Do(e2e.Do("notify", e2e.Obj{"n": 50_000, "method": "notifications/resources/updated", "params": e2e.Obj{"uri": "x:1/$n" + text}}))
			m.call(7, "b_t")
			require.Contains(t, m.take(1), "7")
			for _, pid := range []int{owner, m.Cmd.Process.Pid} {
				e2e.Bounded(t, pid, 300)
			}
		})
	}
}

func TestC19_H20_AnswersInFlightAreDeliveredBeforeASignalEndsGoblin(t *testing.T) {
	t.Parallel()
	script := e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "on": e2e.Obj{"tools/call": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"}))}}
	for name, open := range map[string]func(*e2e.World) (*e2e.Client, *e2e.Program){
		"standalone": func(w *e2e.World) (*e2e.Client, *e2e.Program) { c := w.Standalone(); return c, c.Prog },
		"bridge":     func(w *e2e.World) (*e2e.Client, *e2e.Program) { c := w.Bridged(); return c, c.Prog },
		"HTTP":       func(w *e2e.World) (*e2e.Client, *e2e.Program) { s := w.Serve(); return s.Client(false), s.Program },
	} {
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			t.Run(name+" "+sig.String(), func(t *testing.T) {
				t.Parallel()
				w := e2e.NewWorld(t)
				b := w.Backend("b", script)
				c, p := open(w)
				id := c.Begin("tools/call", e2e.Obj{"name": "b_t", "arguments": e2e.Obj{}})
				b.WaitEvent("wait", "go")
				p.Signal(sig)
				b.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
				require.Equal(t, "b:t:{}", e2e.Str(c.End(id).Result, "content", 0, "text"))
				require.Zero(t, p.Ends(e2e.Patience))
			})
		}
	}
}

func TestC20_P07_EndOfAClientThatNeverReads(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(m *mute){
		"end of input":       func(m *mute) { _ = m.in.Close() },
		"both ends closed":   func(m *mute) { _ = m.in.Close(); _ = m.out.Close() },
		"output closed only": func(m *mute) { _ = m.out.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for mode, args := range map[string][]string{"standalone": {"stdio", "--standalone"}, "bridge": {"stdio"}} {
				t.Run(mode, func(t *testing.T) {
					t.Parallel()
					w := e2e.NewWorld(t)
					w.Hosted = mode == "bridge"
					b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("big"), e2e.Tool("hang")}, "on": e2e.Obj{
						"tools/call big":  e2e.Actions(e2e.Do("big", e2e.Obj{"bytes": 1 << 20})),
						"tools/call hang": e2e.Actions(e2e.Do("hang")),
					}})
					m := newMute(w, args...)
					for id := range 50 {
						m.call(100+id, "b_hang")
					}
					b.WaitEvents("wait", "hang", 50)
					m.call(2, "b_big")
					b.WaitReceived("tools/call", 51)
					end(m)
					m.Ends(e2e.Patience)
					if mode == "bridge" { // the host goes on for others
						b.WaitLive(1)
						return
					}
					b.WaitGone()
				})
			}
		})
	}
}
