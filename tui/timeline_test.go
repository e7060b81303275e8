package tui

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

// newTimelineUI returns a UI with calls of an agent: a script, an elicitation, a retry, a
// start of the server, and a call in flight.
func newTimelineUI(t testing.TB, w, h int, env map[string]string) *testUI {
	t.Helper()
	clock := &fakeClock{current: time.Date(2026, 11, 20, 2, 6, 18, 0, time.UTC)}
	reg := registry.New(registry.Options{Servers: []string{"odd", "files"}, Now: clock.now})
	r := newTestUIWith(t, reg, clock, w, h, env)
	r.setReady("odd").setReady("files")
	began, number := clock.now(), uint64(0)
	add := func(at, took time.Duration, rec registry.TrafficRecord) uint64 {
		number++
		if rec.Status == "" {
			rec.Status = "success"
		}
		rec.Time, rec.Duration = began.Add(at), took
		if rec.Status != registry.StatusNotification && rec.Direction == registry.ToServer {
			rec.Number = number
		}
		if rec.Client == "" {
			rec.Client, rec.Session = "my-agent", "s-1"
		}
		r.reg.Traffic().Append(rec)
		return number
	}
	call := func(server, name, args string) registry.TrafficRecord {
		return registry.TrafficRecord{
			Server: server, Method: "tools/call", Name: server + "_" + name, Original: name,
			Request: fmt.Appendf(nil, `{"name":"%s_%s","arguments":%s}`, server, name, args),
		}
	}
	const ms, s = time.Millisecond, time.Second
	add(0, 300*time.Microsecond, registry.TrafficRecord{Method: "initialize"})
	for i := range 4 {
		add(time.Duration(i+1)*400*ms, 40*ms, call("odd", "counter", fmt.Sprintf(`{"n":%d}`, i+1)))
	}
	failing := call("odd", "fails", `{"why":"42"}`)
	failing.Status, failing.Response = registry.StatusToolError, []byte(`{"isError":true,"content":[{"type":"text","text":"no such order: 42"}]}`)
	add(2*s, 2*ms, failing)
	add(2500*ms, 3*ms, call("odd", "fails", `{"why":"42"}`))
	slow := call("odd", "counter", `{"n":5}`)
	add(3*s, 400*ms, slow)
	script := add(4*s, 2500*ms, registry.TrafficRecord{Server: "", Method: "tools/call", Name: "run_script", Request: []byte(`{"name":"run_script","arguments":{"code":"return 1"}}`)})
	inner := call("files", "read_file", `{"path":"a.txt"}`)
	inner.Parent = script
	add(4100*ms, 900*ms, inner)
	inner.Request = []byte(`{"name":"files_read_file","arguments":{"path":"b.txt"}}`)
	add(5200*ms, 1200*ms, inner)
	asked := call("odd", "confirm", `{}`)
	asked.UserWait, asked.UserAsked = 2*s, true
	parent := add(7*s, 2600*ms, asked)
	add(7300*ms, 2*s, registry.TrafficRecord{Server: "odd", Direction: registry.ToClient, Method: "elicitation/create", Parent: parent})
	started := call("files", "write_file", `{"path":"c.txt"}`)
	started.Client, started.Session, started.StartWait, started.QueueWait = "web-agent", "s-2", 1500*ms, 400*ms
	add(6*s, 3*s, started)
	r.backend.underWay = []registry.InFlight{{ID: "8", TrafficRecord: registry.TrafficRecord{
		Time: began.Add(10 * s), Session: "s-1", Client: "my-agent", Server: "odd", Method: "tools/call", Name: "odd_hang", Number: 99,
		Status: registry.StatusInFlight, Request: []byte(`{"name":"odd_hang","arguments":{"secs":20}}`),
	}}}
	for i := range 3 {
		add(time.Duration(11+i)*s, 0, registry.TrafficRecord{
			Server: "odd", Direction: registry.ToClient, Method: "notifications/progress", Name: "odd_hang", Parent: 99, Status: registry.StatusNotification,
			Request: fmt.Appendf(nil, `{"progressToken":1,"progress":%d,"total":10}`, i+1),
		})
	}
	clock.advance(15 * s)
	r.refresh(registry.Traffic).pollInFlight().keys("5 [").pollInFlight()
	return r
}

func TestGoldenTimeline(t *testing.T) {
	t.Parallel()
	var frames string
	for _, size := range [][2]int{{80, 24}, {120, 40}, {160, 45}} {
		frames += newTimelineUI(t, size[0], size[1], plainEnv).goldenSection()
	}
	ascii := newTimelineUI(t, 120, 40, asciiEnv).keys("F").goldenSection() // the list alone
	for _, c := range ascii {
		require.Less(t, c, rune(0x80), "ASCII terminals get ASCII")
	}
	colours := newTimelineUI(t, 120, 40, colourEnv)
	colours.goldenSection()
	golden(t, "logs-timeline", frames+"== 120x40 ASCII\n"+ascii+"== 120x40 with colours\n"+colours.app.View())
}
