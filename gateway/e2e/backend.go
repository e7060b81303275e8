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

// Event is one line of a fake server to the test.
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

// process is one start of a fake server. It is known by its connection first,
// and counts as started once it has said hello.
type process struct {
	conn  net.Conn
	known bool
	Pid   int
	Start int
	Gone  bool
	cmds  int64
	done  int64
}

// Backend is a fake server as the test sees it: what it is told, and how to
// command it.
type Backend struct {
	board
	T      *testing.T
	Name   string
	Conf   Obj
	ln     net.Listener
	conns  []*process // all that have connected
	Procs  []*process // those that were started, in that order
	Events []Event
	fence  int   // connections made to wait for the ones before
	passed int64 // the last of them that was heard
}

// Backend adds a stdio server to the config. conf is merged into its entry.
func (w *World) Backend(name string, script Obj, conf ...Obj) *Backend {
	w.T.Helper()
	b, path := w.Fake(name, script)
	b.Conf["command"], b.Conf["args"] = TestServer, []string{path}
	b.configure(conf)
	return b
}

// configure merges conf into the entry. A timeout bounds calls of tools, too, unless it
// says how long those may take.
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

// Remote starts a fake HTTP server and adds it to the config.
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
		_ = cmd.Wait() // it was killed
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
		return // it is not scripted
	}
	_ = b.ln.Close()
	b.Mu.Lock()
	defer b.Mu.Unlock()
	for _, p := range b.conns {
		_ = p.conn.Close()
	}
}

// CatchUp waits for the hello of every process that has connected by now. A
// process connects before it reads its first message, and connections are
// accepted in their order.
func (b *Backend) CatchUp() {
	b.T.Helper()
	conn, err := net.Dial("unix", b.ln.Addr().String())
	require.NoError(b.T, err)
	defer conn.Close()
	var mine int
	b.Update(func() { b.fence++; mine = b.fence })
	_, err = fmt.Fprintf(conn, "{\"ev\":\"fence\",\"id\":%d}\n", mine)
	require.NoError(b.T, err)
	b.Wait("the processes that have connected", func() bool {
		for _, p := range b.conns {
			if !p.known {
				return false
			}
		}
		return b.passed >= int64(mine)
	})
}

// Wait fails the test if cond, called under lock, does not become true.
func (b *Backend) Wait(what string, cond func() bool) {
	b.T.Helper()
	if !b.Holds(Patience, cond) {
		b.T.Fatalf("backend %s: waited %v for: %s\nit was told:\n%s", b.Name, Patience, what, b.story())
	}
}

// story is everything that the backend received, for failures.
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

// WaitStarts waits until n processes were started in all and gives the n-th.
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

// WaitLive waits until n processes, of those that have connected by now, have
// not ended: the end of one that ended is heard a little later.
func (b *Backend) WaitLive(n int) {
	b.T.Helper()
	b.CatchUp()
	b.Wait(fmt.Sprintf("%d processes", n), func() bool { return len(b.liveLocked()) == n })
}

// Live are the processes that have not ended.
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

// WaitGone waits until no process is left.
func (b *Backend) WaitGone() {
	b.T.Helper()
	b.WaitLive(0)
}

// Do commands every live process, at least one that ever started, and waits
// until it is done.
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
	_, _ = p.conn.Write(append(Marshal(full), '\n')) // its end shows below
	b.Wait("the end of "+string(Marshal(action)), func() bool { return p.done >= id || p.Gone })
}

// Received are the requests and notifications of one method, all there are
// when it is called; "" is every method.
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

// Uris are the params.uri of the messages of a method.
func (b *Backend) Uris(method string) []string {
	b.T.Helper()
	var out []string
	for _, e := range b.Received(method) {
		out = append(out, Str(e.Msg, "params", "uri"))
	}
	return out
}

// WaitEvent waits for the first event of that kind and name ("" is any).
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

// Updated sends notifications/resources/updated.
func (b *Backend) Updated(uri string) {
	b.T.Helper()
	b.Do(Obj{"do": "notify", "method": "notifications/resources/updated", "params": Obj{"uri": uri}})
}

// ListChanged sends the notice for "tools", "prompts" or "resources".
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
