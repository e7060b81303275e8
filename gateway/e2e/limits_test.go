package e2e

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
)

// memory is what a process has resident now, and the most it ever had, in MiB.
func memory(t *testing.T, pid int) (now, peak int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	for key, value := range map[string]*int{"VmRSS": &now, "VmHWM": &peak} {
		found := regexp.MustCompile(key + `:\s+(\d+) kB`).FindSubmatch(status)
		require.NotNil(t, found, "%s", status)
		kib, err := strconv.Atoi(string(found[1]))
		require.NoError(t, err)
		*value = kib >> 10
	}
	return now, peak
}

// racing reports that the binary looks for races, which takes much more time and
// memory.
func racing() bool { return os.Getenv("GOBLIN_E2E_RACE") != "" }

// bounded fails if a process ever had more than so many MiB resident.
func bounded(t *testing.T, pid, most int) {
	t.Helper()
	if _, peak := memory(t, pid); !racing() {
		require.LessOrEqual(t, peak, most, "MiB resident")
	}
}

func (p *program) bounded(most int) {
	p.t.Helper()
	bounded(p.t, p.cmd.Process.Pid, most)
}

var answerHead = regexp.MustCompile(`^\{"jsonrpc":"2\.0","id":(\d+),`)

// mute is a client that only writes: what it is sent stays in its pipe until
// take is called. Neither keeps what it reads.
type mute struct {
	*program
	in  *os.File
	out *os.File
}

func (w *world) mute(args ...string) *mute {
	w.t.Helper()
	m := &mute{}
	in, stdin, err := os.Pipe()
	require.NoError(w.t, err)
	stdout, out, err := os.Pipe()
	require.NoError(w.t, err)
	m.in, m.out = stdin, stdout
	w.t.Cleanup(func() {
		_ = m.in.Close()
		_ = m.out.Close()
	})
	m.program = w.start(func(cmd *exec.Cmd) { cmd.Stdin, cmd.Stdout = in, out }, args...)
	_ = in.Close()
	_ = out.Close()
	_, err = io.WriteString(m.in, initBody+"\n"+`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	require.NoError(w.t, err)
	return m
}

// call sends one request for a tool.
func (m *mute) call(id int, name string) {
	m.t.Helper()
	_, err := fmt.Fprintf(m.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{}}}`+"\n", id, name)
	require.NoError(m.t, err)
}

// take reads until it has answers to n requests, one of initialize among
// them, and gives the length of each by its id.
func (m *mute) take(n int) map[string]int {
	m.t.Helper()
	require.NoError(m.t, m.out.SetReadDeadline(time.Now().Add(2*patience)))
	got := map[string]int{}
	for r := bufio.NewReaderSize(m.out, 1<<20); len(got) < n; {
		line, err := r.ReadBytes('\n')
		require.NoError(m.t, err, "after %d answers", len(got))
		var head struct{ ID json.RawMessage }
		if found := answerHead.FindSubmatch(line[:min(len(line), 100)]); found != nil {
			head.ID = found[1] // decoding megabytes takes longer than passing them on
		} else {
			require.NoError(m.t, json.Unmarshal(line, &head))
		}
		if head.ID != nil {
			require.NotContains(m.t, got, string(head.ID), "two answers")
			got[string(head.ID)] = len(line)
		}
	}
	return got
}

func TestC10_LargeRequestArrivesWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const size = 32 << 20
	b := w.backend("b", obj{"tools": []obj{tool("t")}, "on": obj{"tools/call t": actions(do("text", obj{"text": "whole"}))}})
	c := w.standalone()
	require.Equal(t, "whole", c.callText("b_t", obj{"x": strings.Repeat("x", size)}))
	require.Len(t, str(b.received("tools/call")[0].Msg, "params", "arguments", "x"), size)
	c.prog.bounded(300)
}

func TestC11_LineOf100MBIsBounded(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]string{"over the limit": "32MiB", "within the limit": "128MiB"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.gateway["limits"] = obj{"frame": limit}
			w.backend("b", obj{"tools": []obj{tool("t")}})
			m := w.mute("stdio", "--standalone")
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
			m.bounded(450)
		})
	}
}

func TestC14_AnswersWaitForAClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	for mode, args := range map[string][]string{"standalone": {"stdio", "--standalone"}, "bridge": {"stdio"}} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.hosted = mode == "bridge"
			const n, size = 256, 1 << 20
			w.gateway["limits"] = obj{"in_flight": 2 * n}
			b := w.backend("b", obj{"tools": []obj{tool("big"), tool("t")}, "on": obj{
				"tools/call big": actions(do("wait", obj{"name": "all"}), do("big", obj{"bytes": size})),
			}}, obj{"timeout": "120s"})
			m := w.mute(args...)
			for id := range n {
				m.call(100+id, "b_big")
			}
			b.waitEvents("wait", "all", n) // every request was read before the first answer
			owner := m.cmd.Process.Pid
			if w.hosted {
				owner = w.host()
			}
			b.do(do("release", obj{"name": "all"}))
			eventually(t, "Goblin to hold all answers", func() bool {
				now, _ := memory(t, owner)
				return now > n*size>>20-10 // but for what a bridge holds
			})
			answers := m.take(n + 1)
			for id := range n {
				require.Greater(t, answers[strconv.Itoa(100+id)], size)
			}
			for _, pid := range []int{owner, m.cmd.Process.Pid} {
				bounded(t, pid, 450)
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
			w := newWorld(t)
			w.hosted = mode == "bridge"
			b := w.backend("b", obj{"tools": []obj{tool("t")}, "resources": []obj{resource("x:1")}})
			m := w.mute(args...)
			m.call(2, "b_t")
			_, err := io.WriteString(m.in, `{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"mcp://b/x:1"}}`+"\n")
			require.NoError(t, err)
			m.take(3) // with the answer to initialize
			owner := m.cmd.Process.Pid
			if w.hosted {
				owner = w.host()
			}
			// What a session may leave unread is 320 MiB.
			text := strings.Repeat("x", 8<<10)
			b.do(do("notify", obj{"n": 50_000, "method": "notifications/message", "params": obj{"level": "error", "data": text}}))
			b.do(do("notify", obj{"n": 50_000, "method": "notifications/resources/updated", "params": obj{"uri": "x:1/$n" + text}}))
			m.call(7, "b_t")
			require.Contains(t, m.take(1), "7")
			for _, pid := range []int{owner, m.cmd.Process.Pid} {
				bounded(t, pid, 300)
			}
		})
	}
}

func TestC19_H20_AnswersInFlightAreDeliveredBeforeASignalEndsGoblin(t *testing.T) {
	t.Parallel()
	script := obj{"tools": []obj{tool("t")}, "on": obj{"tools/call": actions(do("wait", obj{"name": "go"}))}}
	for name, open := range map[string]func(*world) (*client, *program){
		"standalone": func(w *world) (*client, *program) { c := w.standalone(); return c, c.prog },
		"bridge":     func(w *world) (*client, *program) { c := w.bridged(); return c, c.prog },
		"HTTP":       func(w *world) (*client, *program) { s := w.serve(); return s.client(false), s.program },
	} {
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			t.Run(name+" "+sig.String(), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				b := w.backend("b", script)
				c, p := open(w)
				id := c.begin("tools/call", obj{"name": "b_t", "arguments": obj{}})
				b.waitEvent("wait", "go")
				p.signal(sig)
				b.do(do("release", obj{"name": "go"}))
				require.Equal(t, "b:t:{}", str(c.end(id).Result, "content", 0, "text"))
				require.Zero(t, p.ends(patience))
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
					w := newWorld(t)
					w.hosted = mode == "bridge"
					b := w.backend("b", obj{"tools": []obj{tool("big"), tool("hang")}, "on": obj{
						"tools/call big":  actions(do("big", obj{"bytes": 1 << 20})),
						"tools/call hang": actions(do("hang")),
					}})
					m := w.mute(args...)
					for id := range 50 {
						m.call(100+id, "b_hang")
					}
					b.waitEvents("wait", "hang", 50)
					m.call(2, "b_big")
					b.waitReceived("tools/call", 51)
					end(m)
					m.ends(patience)
					if mode == "bridge" { // the host goes on for others
						b.waitLive(1)
						return
					}
					b.waitGone()
				})
			}
		})
	}
}
