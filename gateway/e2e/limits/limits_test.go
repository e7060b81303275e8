package limits

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

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
	for name, end := range map[string]func(m *e2e.Mute){
		"end of input":       func(m *e2e.Mute) { _ = m.In.Close() },
		"both ends closed":   func(m *e2e.Mute) { _ = m.In.Close(); _ = m.Out.Close() },
		"output closed only": func(m *e2e.Mute) { _ = m.Out.Close() },
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
					m := w.Mute(args...)
					for id := range 50 {
						m.Call(100+id, "b_hang")
					}
					b.WaitEvents("wait", "hang", 50)
					m.Call(2, "b_big")
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
