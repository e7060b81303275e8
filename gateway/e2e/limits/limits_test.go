//go:build e2e

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
	type row struct {
		name string
		sig  syscall.Signal
		open func(*e2e.World) (*e2e.Client, *e2e.Program)
	}
	standalone := func(w *e2e.World) (*e2e.Client, *e2e.Program) { c := w.Standalone(); return c, c.Prog }
	bridge := func(w *e2e.World) (*e2e.Client, *e2e.Program) { c := w.Bridged(); return c, c.Prog }
	http := func(w *e2e.World) (*e2e.Client, *e2e.Program) { s := w.Serve(); return s.Client(false), s.Program }
	for _, row := range e2e.Variants(1,
		row{"standalone", syscall.SIGTERM, standalone}, row{"standalone", syscall.SIGINT, standalone},
		row{"bridge", syscall.SIGTERM, bridge}, row{"HTTP", syscall.SIGTERM, http}, row{"HTTP", syscall.SIGINT, http},
	) {
		t.Run(row.name+" "+row.sig.String(), func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			b := w.Backend("b", script)
			c, p := row.open(w)
			id := c.Begin("tools/call", e2e.Obj{"name": "b_t", "arguments": e2e.Obj{}})
			b.WaitEvent("wait", "go")
			p.Signal(row.sig)
			b.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
			require.Equal(t, "b:t:{}", e2e.Str(c.End(id).Result, "content", 0, "text"))
			require.Zero(t, p.Ends(e2e.Patience))
		})
	}
}

func TestC20_P07_EndOfAClientThatNeverReads(t *testing.T) {
	t.Parallel()
	type row struct {
		mode, name string
		end        func(m *e2e.WriteOnlyClient)
	}
	input := func(m *e2e.WriteOnlyClient) { _ = m.In.Close() }
	output := func(m *e2e.WriteOnlyClient) { _ = m.Out.Close() }
	both := func(m *e2e.WriteOnlyClient) { input(m); output(m) }
	for _, row := range e2e.Variants(1,
		row{"standalone", "both ends closed", both}, row{"standalone", "end of input", input}, row{"standalone", "output closed only", output},
		row{"bridge", "end of input", input}, row{"bridge", "output closed only", output},
	) {
		t.Run(row.name+"/"+row.mode, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			args := []string{"stdio", "--standalone"}
			if row.mode == "bridge" {
				w.AllowDaemon, args = true, args[:1]
			}
			b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("big"), e2e.Tool("hang")}, "on": e2e.Obj{
				"tools/call big":  e2e.Actions(e2e.Do("big", e2e.Obj{"bytes": 1 << 20})),
				"tools/call hang": e2e.Actions(e2e.Do("hang")),
			}})
			m := w.WriteOnlyClient(args...)
			for id := range 50 {
				m.Call(100+id, "b_hang")
			}
			b.WaitEvents("wait", "hang", 50)
			m.Call(2, "b_big")
			b.WaitReceived("tools/call", 51)
			row.end(m)
			m.Ends(e2e.Patience)
			if row.mode == "bridge" { // the daemon still serves others
				b.WaitLive(1)
				return
			}
			b.WaitGone()
		})
	}
}
