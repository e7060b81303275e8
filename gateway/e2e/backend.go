package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Event is a line from a fake server to the test.
type Event struct {
	Ev      string
	PID     int
	Start   int
	Name    string
	Msg     json.RawMessage
	Bad     string
	HTTP    string
	Session string
	Headers map[string]string
	ID      int64
	Proc    *process
	Method  string
}

// process is one start of a fake server. It exists from its connection on, and counts as
// started after its hello.
type process struct {
	conn  net.Conn
	known bool
	Pid   int
	Start int
	Gone  bool
	cmds  int64
	done  int64
}

// Backend is the test's side of a fake server: it records messages and sends commands.
type Backend struct {
	board
	T      *testing.T
	Name   string
	Conf   Obj
	ln     net.Listener
	conns  []*process // all connections
	Procs  []*process // started processes, in order
	Events []Event
	fence  int   // number of fence connections
	passed int64 // the last fence that arrived
}

// Backend adds a stdio server to the config. conf is merged into its entry.
func (w *World) Backend(name string, script Obj, conf ...Obj) *Backend {
	w.T.Helper()
	b, path := w.Fake(name, script)
	b.Conf["command"], b.Conf["args"] = TestServer, []string{path}
	b.configure(conf)
	return b
}

// configure merges conf into the entry. A timeout also sets call_timeout, unless conf
// contains that.
func (b *Backend) configure(conf []Obj) {
	for _, c := range conf {
		if limit := c["timeout"]; limit != nil {
			b.Conf["call_timeout"] = limit
		}
		maps.Copy(b.Conf, c)
	}
}

// Fake prepares a fake server's script and its control socket.
func (w *World) Fake(name string, script Obj) (b *Backend, path string) {
	w.T.Helper()
	require.False(w.T, w.Written, "the config is written already")
	base := filepath.Join(w.Dir, "b"+string(rune('0'+len(w.Backends))))
	full := Obj{"name": name, "control": base + ".sock"}
	for k, v := range script {
		full[k] = v
	}
	path = base + ".json"
	require.NoError(w.T, os.WriteFile(path, Marshal(full), 0o600))
	ln, err := net.Listen("unix", base+".sock")
	require.NoError(w.T, err)
	b = &Backend{T: w.T, Name: name, Conf: Obj{}, ln: ln}
	w.Backends = append(w.Backends, b)
	go b.accept()
	return b, path
}

func (w *World) Remote(name, path string, script Obj, conf ...Obj) *Backend {
	w.T.Helper()
	b, file := w.Fake(name, script)
	addr := w.launch(b, file)
	b.Conf["url"] = "http://" + addr + path
	b.configure(conf)
	return b
}

func (w *World) launch(b *Backend, file string) (addr string) {
	w.T.Helper()
	cmd := exec.Command(TestServer, "-http", "127.0.0.1:0", file)
	cmd.Env = w.Environ()
	require.NoError(w.T, cmd.Start())
	w.T.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed above
	})
	return b.WaitEvent("http", "").Name
}

func (b *Backend) accept() {
	for {
		conn, err := b.ln.Accept()
		if err != nil {
			return
		}
		p := &process{conn: conn}
		b.Update(func() { b.conns = append(b.conns, p) })
		go b.hear(p)
	}
}

func (b *Backend) hear(p *process) {
	r := bufio.NewReader(p.conn)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			_ = p.conn.Close()
			b.Update(func() { p.known, p.Gone = true, true })
			return
		}
		e := Event{Proc: p}
		if err := json.Unmarshal(line, &e); err != nil {
			panic(err)
		}
		e.Method = Str(e.Msg, "method")
		b.Update(func() {
			switch e.Ev {
			case "hello":
				p.known, p.Pid, p.Start = true, e.PID, e.Start
				b.Procs = append(b.Procs, p)
			case "fence":
				p.known, b.passed = true, max(b.passed, e.ID)
			case "done":
				p.done = e.ID
			default:
				b.Events = append(b.Events, e)
			}
		})
	}
}

func (b *Backend) close() {
	if b.ln == nil {
		return // not scripted
	}
	_ = b.ln.Close()
	b.Mu.Lock()
	defer b.Mu.Unlock()
	for _, p := range b.conns {
		_ = p.conn.Close()
	}
}

// CatchUp waits for the hello of every process that has connected. A process connects
// before it reads its first message, and connections are accepted in order.
func (b *Backend) CatchUp() {
	b.T.Helper()
	conn, err := net.Dial("unix", b.ln.Addr().String())
	require.NoError(b.T, err)
	defer conn.Close()
	var mine int
	b.Update(func() { b.fence++; mine = b.fence })
	_, err = fmt.Fprintf(conn, "{\"ev\":\"fence\",\"id\":%d}\n", mine)
	require.NoError(b.T, err)
	b.Wait("the connected processes", func() bool {
		for _, p := range b.conns {
			if !p.known {
				return false
			}
		}
		return b.passed >= int64(mine)
	})
}

// Wait fails the test if cond doesn't become true. cond is called with the lock held.
func (b *Backend) Wait(what string, cond func() bool) {
	b.T.Helper()
	if !b.Holds(Patience, cond) {
		b.T.Fatalf("server %s: waited %v for: %s\nit received:\n%s", b.Name, Patience, what, b.story())
	}
}

func (b *Backend) story() string {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	var s strings.Builder
	for _, e := range b.Events {
		line := e.Ev + " " + e.Name + " " + e.HTTP + " " + string(e.Msg) + e.Bad
		s.WriteString(line[:min(len(line), 300)] + "\n")
	}
	return Tail(s.String(), 6000)
}

// WaitStarts waits for the n-th start and returns its process.
func (b *Backend) WaitStarts(n int) *process {
	b.T.Helper()
	b.Wait("process number "+string(rune('0'+n)), func() bool { return len(b.Procs) >= n })
	b.Mu.Lock()
	defer b.Mu.Unlock()
	return b.Procs[n-1]
}

func (b *Backend) Starts() int {
	b.T.Helper()
	b.CatchUp()
	b.Mu.Lock()
	defer b.Mu.Unlock()
	return len(b.Procs)
}

// WaitLive waits until n of the connected processes are running. A process's exit is
// noticed a little later.
func (b *Backend) WaitLive(n int) {
	b.T.Helper()
	b.CatchUp()
	b.Wait(fmt.Sprintf("%d processes", n), func() bool { return len(b.liveLocked()) == n })
}

// Live returns the running processes.
func (b *Backend) Live() []*process {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	return b.liveLocked()
}

func (b *Backend) liveLocked() []*process {
	var out []*process
	for _, p := range b.Procs {
		if !p.Gone {
			out = append(out, p)
		}
	}
	return out
}

// WaitGone waits until all processes have exited.
func (b *Backend) WaitGone() {
	b.T.Helper()
	b.WaitLive(0)
}

// Do sends a command to every running process and waits until it is done. It first waits
// for a start.
func (b *Backend) Do(action Obj) {
	b.T.Helper()
	b.WaitStarts(1)
	b.doAll(action)
}

func (b *Backend) doAll(action Obj) {
	b.T.Helper()
	for _, p := range b.Live() {
		b.DoAt(p, action)
	}
}

func (b *Backend) DoAt(p *process, action Obj) {
	b.T.Helper()
	var id int64
	b.Update(func() { p.cmds++; id = p.cmds })
	full := Obj{"id": id}
	for k, v := range action {
		full[k] = v
	}
	_, _ = p.conn.Write(append(Marshal(full), '\n')) // an exit is noticed below
	b.Wait("the end of "+string(Marshal(action)), func() bool { return p.done >= id || p.Gone })
}

// Received returns all requests and notifications of a method so far; "" is any method.
func (b *Backend) Received(method string) []Event {
	b.T.Helper()
	b.CatchUp()
	b.doAll(Obj{"do": "sync"})
	b.Mu.Lock()
	defer b.Mu.Unlock()
	return b.Pick(method)
}

func (b *Backend) Pick(method string) []Event {
	var out []Event
	for _, e := range b.Events {
		if e.Ev == "recv" && e.Method != "" && (method == "" || e.Method == method) {
			out = append(out, e)
		}
	}
	return out
}

func (b *Backend) Count(method string) int { b.T.Helper(); return len(b.Received(method)) }

// WaitReceived waits for the n-th message of a method.
func (b *Backend) WaitReceived(method string, n int) Event {
	b.T.Helper()
	b.Wait(method, func() bool { return len(b.Pick(method)) >= n })
	b.Mu.Lock()
	defer b.Mu.Unlock()
	return b.Pick(method)[n-1]
}

func (b *Backend) Uris(method string) []string {
	b.T.Helper()
	var out []string
	for _, e := range b.Received(method) {
		out = append(out, Str(e.Msg, "params", "uri"))
	}
	return out
}

// WaitEvent waits for the first event of a kind and name; "" is any name.
func (b *Backend) WaitEvent(ev, name string) Event {
	b.T.Helper()
	return b.WaitEvents(ev, name, 1)
}

func (b *Backend) WaitEvents(ev, name string, n int) (found Event) {
	b.T.Helper()
	b.Wait(ev+" "+name, func() bool {
		seen := 0
		for _, e := range b.Events {
			if e.Ev == ev && (name == "" || e.Name == name) {
				if seen++; seen == n {
					found = e
					return true
				}
			}
		}
		return false
	})
	return found
}

func (b *Backend) Updated(uri string) {
	b.T.Helper()
	b.Do(Obj{"do": "notify", "method": "notifications/resources/updated", "params": Obj{"uri": uri}})
}

func (b *Backend) ListChanged(kind string) {
	b.T.Helper()
	b.Do(Obj{"do": "notify", "method": "notifications/" + kind + "/list_changed"})
}

func (b *Backend) Add(kind string, entry Obj) {
	b.T.Helper()
	b.Do(Obj{"do": "add", "kind": kind, "entry": entry})
}

func (b *Backend) Remove(kind, name string) {
	b.T.Helper()
	b.Do(Obj{"do": "remove", "kind": kind, "name": name})
}
