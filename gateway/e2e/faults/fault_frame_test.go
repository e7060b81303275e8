//go:build e2e || faults

package faults

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// Limits that hold during every fault of a server, see FAULTS.md. Time limits are only
// tested with the build tag faults, where the machine is otherwise idle. Large and slow
// rows also need that tag.
const (
	steadyP95   = 250 * time.Millisecond // or ten times that of an undisturbed gateway, if that is more
	steadyWorst = 3 * time.Second
	peakMemory  = 300 // MiB
	peakLarge   = 1024
	quickExit   = 10 * time.Second
	inFlight    = 20 // calls of the healthy server at all times
)

// fault is a row of the matrix of faulty servers.
type fault struct {
	row     string  // its ids, and the requirement
	mode    string  // of [e2e.World.FaultyServer]
	early   bool    // HTTP: faulty from the first message on
	entry   e2e.Obj // of the server in the config
	gateway e2e.Obj // in the config
	large   bool    // payloads of 64 MB and more: the memory may be peakLarge
	slow    bool    // like large: only with the build tag faults
	usual   bool    // also without the build tag e2e: one of each kind
	check   func(h *harmed)
}

// harmed is a gateway with a faulty server "bad" and a healthy one "fine".
type harmed struct {
	*e2e.Client
	w       *e2e.World
	bad     *e2e.Backend // nil if there is none
	began   time.Time
	greeted time.Duration // time until initialize was answered
	steady  *pulse
	// undisturbed is the pulse of a gateway without faults, or nil if durations aren't
	// tested.
	undisturbed *pulse
}

// run tests the row's own requirement and those of every row, while it calls the healthy
// server all the time.
func (f *fault) run(t *testing.T, undisturbed *pulse) {
	w := e2e.NewWorld(t)
	for k, v := range f.gateway {
		w.Gateway[k] = v
	}
	healthy := e2e.Filesystem()
	healthy["tools"] = []e2e.Obj{e2e.Tool("stat"), e2e.Tool("held")}
	healthy["on"] = e2e.Obj{"tools/call held": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "over"}))}
	fine := w.Backend("fine", healthy, e2e.Obj{"timeout": "120s"})
	h := &harmed{w: w, undisturbed: undisturbed, bad: bad(w, f)}
	h.began = time.Now()
	h.Client = w.Standalone()
	h.greeted = time.Since(h.began)
	h.WaitListed("tools", "fine_stat", true)
	var ids []string
	for range inFlight {
		ids = append(ids, h.Begin("tools/call", e2e.Obj{"name": "fine_held"}))
	}
	h.steady = startPulse(h.Client, "fine_stat")

	f.check(h)

	fine.Do(e2e.Do("release", e2e.Obj{"name": "over"}))
	for _, id := range ids {
		require.Contains(t, string(h.End(id).Result), "fine:held:", "a call of the healthy server")
	}
	p95, worst := quantiles(h.steady.end())
	require.LessOrEqual(t, worst, e2e.Patience, "a call of the healthy server")
	if timed {
		usual, slowest := quantiles(undisturbed.since(h.began))
		t.Logf("healthy calls: p95 %v, worst %v; undisturbed p95 %v; peak memory %d MiB", p95, worst, usual, h.peak())
		require.LessOrEqual(t, p95, max(10*usual, steadyP95), "p95 of the healthy server")
		require.LessOrEqual(t, worst, max(10*slowest, steadyWorst), "the slowest call of the healthy server")
	}
	h.isSound(f)
	closed := time.Now()
	h.Close()
	select {
	case <-h.Prog.Exited:
	case <-time.After(quickExit):
	}
	require.Zero(t, h.Prog.Ends(h.slack(closed)))
	if h.bad != nil && !strings.HasPrefix(f.mode, "http-") {
		h.bad.WaitGone()
	}
}

// isSound checks the memory and the output of the gateway.
func (h *harmed) isSound(f *fault) {
	h.T.Helper()
	limit := peakMemory
	if f.large {
		limit = peakLarge
	}
	if os.Getenv("GOBLIN_E2E_RACE") == "" {
		require.LessOrEqual(h.T, h.peak(), limit, "peak memory in MiB")
	}
	h.Mu.Lock()
	defer h.Mu.Unlock()
	for id, all := range h.Replies {
		n := 0
		_, err := fmt.Sscan(id, &n)
		require.True(h.T, err == nil && 0 < n && n <= h.LastID, "an answer to the unknown request %s", id)
		for _, m := range all {
			require.True(h.T, utf8.ValidString(m.Raw), "an answer that is not UTF-8: %q", e2e.Tail(m.Raw, 300))
		}
	}
	for _, m := range append(h.Notes, h.Asks...) {
		require.True(h.T, utf8.ValidString(m.Raw), "a message that is not UTF-8: %q", e2e.Tail(m.Raw, 300))
	}
	for _, trace := range []string{"goroutine ", "panic:", "\x1b", "\u009b"} {
		require.NotContains(h.T, h.Prog.Stderr.String(), trace)
	}
}

// bad adds the faulty server to the config. It returns nil if the row has none.
func bad(w *e2e.World, f *fault) *e2e.Backend {
	nobody := &e2e.Backend{T: w.T, Name: "bad", Conf: e2e.Obj{}}
	switch f.mode {
	case "missing":
		nobody.Conf["command"] = "no-such-program-anywhere"
	case "http-refused":
		nobody.Conf["url"] = fmt.Sprintf("http://127.0.0.1:%d/mcp", e2e.FreePort(w.T))
	default:
		return w.FaultyServer("bad", f.mode, f.early, f.entry)
	}
	w.Backends = append(w.Backends, nobody)
	return nil
}

// peak returns the gateway's peak memory in MiB, or 0 if the system doesn't report it.
func (h *harmed) peak() int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.Prog.Cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kib := 0
	_, _ = fmt.Sscan(rest, &kib)
	return kib >> 10
}

func (h *harmed) call(tool string, args any) string {
	return h.Begin("tools/call", e2e.Obj{"name": tool, "arguments": args})
}

// slack returns the extra time for a busy machine: ten times the delay of the undisturbed
// gateway's calls since then.
func (h *harmed) slack(since time.Time) time.Duration {
	if !timed {
		return e2e.Patience
	}
	_, worst := quantiles(h.undisturbed.since(since))
	return 10 * max(worst, h.undisturbed.silent())
}

// within waits at most limit for the answer to a request.
func (h *harmed) within(limit time.Duration, id string) (m e2e.Message) {
	h.T.Helper()
	began, answered := time.Now(), func() bool { return len(h.Replies[id]) > 0 }
	require.True(h.T, h.Holds(limit, answered) || h.Holds(h.slack(began), answered), "no answer to %s within %v", id, limit)
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return h.Replies[id][0]
}

// failsWithin expects an error that names the server.
func (h *harmed) failsWithin(limit time.Duration, id string, kinds ...string) {
	h.T.Helper()
	m := h.within(limit, id)
	if len(kinds) == 0 { // the tool may be unknown
		require.True(h.T, m.Failed(), m.Raw)
		require.Contains(h.T, m.Raw, "bad")
		return
	}
	e := e2e.ParseFailure(h.T, m)
	require.Contains(h.T, e.Message, "bad")
	require.Contains(h.T, kinds, e.Kind(), m.Raw)
	require.Equal(h.T, "bad", e2e.Str(e.Data, "server"))
}

// usable expects that a call of the faulty server succeeds, in the end.
func (h *harmed) usable() {
	h.T.Helper()
	require.True(h.T, h.until(15*time.Second, func() bool {
		return e2e.Str(h.Request("tools/call", e2e.Obj{"name": "bad_echo"}).Result, "content", 0, "text") == "echo"
	}), "the server is usable within 15 s")
}

// logs expects a text in the log. Its last lines arrive after the answers that they precede.
func (h *harmed) logs(text string) {
	h.T.Helper()
	require.True(h.T, h.until(wide, func() bool { return strings.Contains(h.Prog.Stderr.String(), text) }), "the log has %q", text)
}

// until polls cond until it is true or the limit is reached.
func (h *harmed) until(limit time.Duration, cond func() bool) bool {
	for began := time.Now(); time.Since(began) < limit || time.Since(began) < limit+h.slack(began); time.Sleep(10 * time.Millisecond) {
		if cond() {
			return true
		}
	}
	return false
}

// meanwhile repeats f while the healthy server is called often enough for a result.
func (h *harmed) meanwhile(f func()) {
	for since := time.Now(); len(h.steady.since(since)) < enough; {
		f()
	}
}

// answers returns the number of answers to a request.
func (h *harmed) answers(id string) int {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return len(h.Replies[id])
}

// state waits for a state of the faulty server.
func (h *harmed) state(want string) {
	h.T.Helper()
	require.True(h.T, h.until(e2e.Patience, func() bool {
		for _, s := range e2e.Each([]byte(h.ReadText("goblin://servers")), "servers") {
			if e2e.Str(s, "name") == "bad" && e2e.Str(s, "state") == want {
				return true
			}
		}
		return false
	}), "the state %q in %s", want, h.ReadText("goblin://servers"))
}

// window waits for d, in which something must not happen.
func (h *harmed) window(d time.Duration) { h.Holds(d, func() bool { return false }) }

// pulse calls a healthy server every few milliseconds.
type pulse struct {
	mu    sync.Mutex
	calls []sample
	over  bool
	done  chan struct{}
}

type sample struct {
	at   time.Time
	took time.Duration
}

func startPulse(c *e2e.Client, tool string) *pulse {
	p := &pulse{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		for {
			at := time.Now()
			id := c.Begin("tools/call", e2e.Obj{"name": tool})
			took := time.Duration(math.MaxInt64) // without a valid answer
			c.Holds(e2e.Patience, func() bool {
				if len(c.Replies[id]) == 0 {
					return false
				}
				if !c.Replies[id][0].Failed() {
					took = time.Since(at)
				}
				return true
			})
			if p.add(sample{at, took}) {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return p
}

// add records a sample and reports whether the pulse was stopped.
func (p *pulse) add(s sample) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, s)
	return p.over && (len(p.calls) >= enough || s.took > e2e.Patience)
}

// silent returns the time since the last finished call.
func (p *pulse) silent() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.calls) == 0 || p.over {
		return 0
	}
	last := p.calls[len(p.calls)-1]
	return time.Since(last.at.Add(min(last.took, e2e.Patience)))
}

func (p *pulse) end() []sample {
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	<-p.done
	return p.calls
}

func (p *pulse) since(t time.Time) []sample {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, _ := slices.BinarySearchFunc(p.calls, t, func(s sample, t time.Time) int { return s.at.Compare(t) })
	return slices.Clone(p.calls[n:])
}

func quantiles(calls []sample) (p95, worst time.Duration) {
	took := make([]time.Duration, 0, len(calls))
	for _, s := range calls {
		took = append(took, s.took)
	}
	slices.Sort(took)
	if len(took) == 0 {
		return 0, 0
	}
	return took[(len(took)*95-1)/100], took[len(took)-1]
}
