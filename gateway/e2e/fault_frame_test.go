package e2e

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// What every fault of a backend must leave alone, see FAULTS.md.
const (
	steadyP95   = 250 * time.Millisecond // or ten times that of an undisturbed gateway, if that is more
	steadyWorst = 3 * time.Second
	peakMemory  = 300 // MiB
	peakLarge   = 1024
	quickExit   = 10 * time.Second
	inFlight    = 20 // calls of the healthy server, all the time
)

// fault is a row of the matrix of faulty backends.
type fault struct {
	row     string // its ids, and what is required
	mode    string // of badserver
	flags   []string
	entry   obj  // of the server in the config
	gateway obj  // in the config
	large   bool // payloads of 64 MB and more: the memory may be peakLarge
	slow    bool // left out with -short
	check   func(h *harmed)
}

// harmed is a gateway with a faulty server, "bad", and a healthy one, "fine".
type harmed struct {
	*client
	w       *world
	log     string // of badserver
	began   time.Time
	greeted time.Duration // after which initialize was answered
	steady  *pulse
	// undisturbed is the pulse of a gateway of which nothing is wrong.
	undisturbed *pulse
}

// run shows the row's own demand while the healthy server is called all the
// time, and what is demanded of every row.
func (f *fault) run(t *testing.T, undisturbed *pulse) {
	w := newWorld(t)
	for k, v := range f.gateway {
		w.gateway[k] = v
	}
	healthy := filesystem()
	healthy["tools"] = []obj{tool("stat"), tool("held")}
	healthy["on"] = obj{"tools/call held": actions(do("wait", obj{"name": "over"}))}
	fine := w.backend("fine", healthy, obj{"timeout": "120s"})
	h := &harmed{w: w, log: filepath.Join(w.dir, "bad.log"), undisturbed: undisturbed}
	w.bad(f, h.log)
	h.began = time.Now()
	h.client = w.standalone()
	h.greeted = time.Since(h.began)
	h.waitListed("tools", "fine_stat", true)
	var ids []string
	for range inFlight {
		ids = append(ids, h.begin("tools/call", obj{"name": "fine_held"}))
	}
	h.steady = h.pulse("fine_stat")

	f.check(h)

	fine.do(do("release", obj{"name": "over"}))
	for _, id := range ids {
		require.Contains(t, string(h.end(id).Result), "fine:held:", "a call of the healthy server")
	}
	calls := h.steady.end()
	usual, slowest := quantiles(undisturbed.since(h.began))
	p95, worst := quantiles(calls)
	t.Logf("%d healthy calls: p95 %v, worst %v; undisturbed p95 %v; peak memory %d MiB", len(calls), p95, worst, usual, h.peak())
	require.LessOrEqual(t, p95, max(10*usual, steadyP95), "p95 of the healthy server")
	require.LessOrEqual(t, worst, max(10*slowest, steadyWorst), "the slowest call of the healthy server")
	h.isSound(f)
	closed := time.Now()
	h.close()
	select {
	case <-h.prog.exited:
	case <-time.After(quickExit):
	}
	require.Zero(t, h.prog.ends(h.slack(closed)))
	if !strings.HasPrefix(f.mode, "http-") {
		require.Empty(t, w.processes(h.log), "processes of the faulty server")
	}
}

// isSound checks the memory and the output of the gateway.
func (h *harmed) isSound(f *fault) {
	h.t.Helper()
	limit := peakMemory
	if f.large {
		limit = peakLarge
	}
	if os.Getenv("GOBLIN_E2E_RACE") == "" {
		require.LessOrEqual(h.t, h.peak(), limit, "peak memory in MiB")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, all := range h.replies {
		n := 0
		_, err := fmt.Sscan(id, &n)
		require.True(h.t, err == nil && 0 < n && n <= h.lastID, "an answer to %s, which nobody asked", id)
		for _, m := range all {
			require.True(h.t, utf8.ValidString(m.raw), "an answer that is not UTF-8: %q", tail(m.raw, 300))
		}
	}
	for _, m := range append(h.notes, h.asks...) {
		require.True(h.t, utf8.ValidString(m.raw), "a message that is not UTF-8: %q", tail(m.raw, 300))
	}
	for _, trace := range []string{"goroutine ", "panic:", "\x1b", "\u009b"} {
		require.NotContains(h.t, h.prog.stderr.String(), trace)
	}
}

// bad adds the faulty server to the config.
func (w *world) bad(f *fault, log string) {
	b := &backend{t: w.t, name: "bad", conf: obj{}}
	args := append([]string{"-log", log}, f.flags...)
	switch {
	case f.mode == "missing":
		b.conf["command"] = "no-such-program-anywhere"
	case f.mode == "http-refused":
		b.conf["url"] = fmt.Sprintf("http://127.0.0.1:%d/mcp", freePort(w.t))
	case strings.HasPrefix(f.mode, "http-"):
		b.conf["url"] = "http://" + w.badHTTP(append(args, "-http", "127.0.0.1:0", f.mode)) + "/mcp"
	default:
		b.conf["command"], b.conf["args"] = badserver, append(args, f.mode)
	}
	for k, v := range f.entry {
		b.conf[k] = v
	}
	w.backends = append(w.backends, b)
}

func (w *world) badHTTP(args []string) (addr string) {
	cmd := exec.Command(badserver, args...)
	cmd.Env = w.environ()
	out, err := cmd.StdoutPipe()
	require.NoError(w.t, err)
	require.NoError(w.t, cmd.Start())
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(w.t, err)
	return strings.TrimSpace(line)
}

// peak is the largest memory that the gateway had, in MiB; 0 where the system
// does not tell.
func (h *harmed) peak() int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.prog.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kib := 0
	_, _ = fmt.Sscan(rest, &kib)
	return kib >> 10
}

// told counts the lines of badserver's log that begin so.
func (h *harmed) told(start string) int {
	n := 0
	text, _ := os.ReadFile(h.log) // none before the first start
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, start) {
			n++
		}
	}
	return n
}

func (h *harmed) call(tool string, args any) string {
	return h.begin("tools/call", obj{"name": tool, "arguments": args})
}

// slack is what a busy machine adds to every limit: ten times what it added to a
// call of the undisturbed gateway since then.
func (h *harmed) slack(since time.Time) time.Duration {
	_, worst := quantiles(h.undisturbed.since(since))
	return 10 * max(worst, h.undisturbed.silent())
}

// within waits for the answer to a request, for so long at most.
func (h *harmed) within(limit time.Duration, id string) (m message) {
	h.t.Helper()
	began, answered := time.Now(), func() bool { return len(h.replies[id]) > 0 }
	require.True(h.t, h.holds(limit, answered) || h.holds(h.slack(began), answered), "no answer to %s within %v", id, limit)
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.replies[id][0]
}

// failsWithin expects an error that names the server.
func (h *harmed) failsWithin(limit time.Duration, id string, kinds ...string) {
	h.t.Helper()
	m := h.within(limit, id)
	e := parseError(h.t, m)
	require.Contains(h.t, e.Message, "bad")
	if len(kinds) > 0 {
		require.Contains(h.t, kinds, e.kind(), m.raw)
		require.Equal(h.t, "bad", str(e.Data, "server"))
	}
}

// usable expects that a call of the faulty server succeeds, in the end.
func (h *harmed) usable() {
	h.t.Helper()
	require.True(h.t, h.until(15*time.Second, func() bool {
		return str(h.request("tools/call", obj{"name": "bad_echo"}).Result, "content", 0, "text") == "echo"
	}), "the server is usable within 15 s")
}

// until asks again and again.
func (h *harmed) until(limit time.Duration, cond func() bool) bool {
	for began := time.Now(); time.Since(began) < limit || time.Since(began) < limit+h.slack(began); time.Sleep(10 * time.Millisecond) {
		if cond() {
			return true
		}
	}
	return false
}

// meanwhile does something again and again while the healthy server is called
// often enough to tell.
func (h *harmed) meanwhile(f func()) {
	for since := time.Now(); len(h.steady.since(since)) < enough; {
		f()
	}
}

// answers is how many answers to a request have come.
func (h *harmed) answers(id string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.replies[id])
}

// state waits for a state of the faulty server.
func (h *harmed) state(want string) {
	h.t.Helper()
	require.True(h.t, h.until(patience, func() bool {
		for _, s := range each([]byte(h.readText("goblin://servers")), "servers") {
			if str(s, "name") == "bad" && str(s, "state") == want {
				return true
			}
		}
		return false
	}), "the state %q in %s", want, h.readText("goblin://servers"))
}

// window lets time pass in which something must not happen.
func (h *harmed) window(d time.Duration) { h.holds(d, func() bool { return false }) }

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

func (c *client) pulse(tool string) *pulse {
	p := &pulse{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		for {
			at := time.Now()
			id := c.begin("tools/call", obj{"name": tool})
			took := time.Duration(math.MaxInt64) // without a good answer
			c.holds(patience, func() bool {
				if len(c.replies[id]) == 0 {
					return false
				}
				if c.replies[id][0].Error == nil {
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

// enough is how many calls tell a p95.
const enough = 40

// add reports whether the pulse has ended.
func (p *pulse) add(s sample) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, s)
	return p.over && (len(p.calls) >= enough || s.took > patience)
}

// silent is how long no call has ended.
func (p *pulse) silent() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.calls) == 0 || p.over {
		return 0
	}
	last := p.calls[len(p.calls)-1]
	return time.Since(last.at.Add(min(last.took, patience)))
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
