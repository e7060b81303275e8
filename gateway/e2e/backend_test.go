package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// told is one line of a fake server to the test.
type told struct {
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
	proc    *process
	method  string
}

// process is one start of a fake server. It is known by its connection first,
// and counts as started once it has said hello.
type process struct {
	conn  net.Conn
	known bool
	pid   int
	start int
	gone  bool
	cmds  int64
	done  int64
}

// backend is a fake server as the test sees it: what it is told, and how to
// command it.
type backend struct {
	board
	t      *testing.T
	name   string
	conf   obj
	ln     net.Listener
	conns  []*process // all that have connected
	procs  []*process // those that were started, in that order
	events []told
	fence  int   // connections made to wait for the ones before
	passed int64 // the last of them that was heard
}

// backend adds a stdio server to the config. conf is merged into its entry.
func (w *world) backend(name string, script obj, conf ...obj) *backend {
	w.t.Helper()
	b, path := w.fake(name, script)
	b.conf["command"], b.conf["args"] = fakeserver, []string{path}
	for _, c := range conf {
		for k, v := range c {
			b.conf[k] = v
		}
	}
	return b
}

// fake prepares a fake server's script and its control socket.
func (w *world) fake(name string, script obj) (b *backend, path string) {
	w.t.Helper()
	require.False(w.t, w.written, "the config is written already")
	base := filepath.Join(w.dir, "b"+string(rune('0'+len(w.backends))))
	full := obj{"name": name, "control": base + ".sock"}
	for k, v := range script {
		full[k] = v
	}
	path = base + ".json"
	require.NoError(w.t, os.WriteFile(path, marshal(full), 0o600))
	ln, err := net.Listen("unix", base+".sock")
	require.NoError(w.t, err)
	b = &backend{t: w.t, name: name, conf: obj{}, ln: ln}
	w.backends = append(w.backends, b)
	go b.accept()
	return b, path
}

// remote starts a fake HTTP server and adds it to the config.
func (w *world) remote(name, path string, script obj, conf ...obj) *backend {
	w.t.Helper()
	b, file := w.fake(name, script)
	addr := w.launch(b, file)
	b.conf["url"] = "http://" + addr + path
	for _, c := range conf {
		for k, v := range c {
			b.conf[k] = v
		}
	}
	return b
}

func (w *world) launch(b *backend, file string) (addr string) {
	w.t.Helper()
	cmd := exec.Command(fakeserver, "-http", "127.0.0.1:0", file)
	cmd.Env = w.environ()
	require.NoError(w.t, cmd.Start())
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	return b.waitEvent("http", "").Name
}

func (b *backend) accept() {
	for {
		conn, err := b.ln.Accept()
		if err != nil {
			return
		}
		p := &process{conn: conn}
		b.update(func() { b.conns = append(b.conns, p) })
		go b.hear(p)
	}
}

func (b *backend) hear(p *process) {
	r := bufio.NewReader(p.conn)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			_ = p.conn.Close()
			b.update(func() { p.known, p.gone = true, true })
			return
		}
		e := told{proc: p}
		if err := json.Unmarshal(line, &e); err != nil {
			panic(err)
		}
		e.method = str(e.Msg, "method")
		b.update(func() {
			switch e.Ev {
			case "hello":
				p.known, p.pid, p.start = true, e.PID, e.Start
				b.procs = append(b.procs, p)
			case "fence":
				p.known, b.passed = true, max(b.passed, e.ID)
			case "done":
				p.done = e.ID
			default:
				b.events = append(b.events, e)
			}
		})
	}
}

func (b *backend) close() {
	if b.ln == nil {
		return // it is not scripted
	}
	_ = b.ln.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.conns {
		_ = p.conn.Close()
	}
}

// catchUp waits for the hello of every process that has connected by now. A
// process connects before it reads its first message, and connections are
// accepted in their order.
func (b *backend) catchUp() {
	b.t.Helper()
	conn, err := net.Dial("unix", b.ln.Addr().String())
	require.NoError(b.t, err)
	defer conn.Close()
	var mine int
	b.update(func() { b.fence++; mine = b.fence })
	_, err = fmt.Fprintf(conn, "{\"ev\":\"fence\",\"id\":%d}\n", mine)
	require.NoError(b.t, err)
	b.wait("the processes that have connected", func() bool {
		for _, p := range b.conns {
			if !p.known {
				return false
			}
		}
		return b.passed >= int64(mine)
	})
}

// wait fails the test if cond, called under lock, does not become true.
func (b *backend) wait(what string, cond func() bool) {
	b.t.Helper()
	if !b.holds(patience, cond) {
		b.t.Fatalf("backend %s: waited %v for: %s\nit was told:\n%s", b.name, patience, what, b.story())
	}
}

// story is everything that the backend received, for failures.
func (b *backend) story() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var s strings.Builder
	for _, e := range b.events {
		line := e.Ev + " " + e.Name + " " + e.HTTP + " " + string(e.Msg) + e.Bad
		s.WriteString(line[:min(len(line), 300)] + "\n")
	}
	return tail(s.String(), 6000)
}

// waitStarts waits until n processes were started in all and gives the n-th.
func (b *backend) waitStarts(n int) *process {
	b.t.Helper()
	b.wait("process number "+string(rune('0'+n)), func() bool { return len(b.procs) >= n })
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.procs[n-1]
}

func (b *backend) starts() int {
	b.t.Helper()
	b.catchUp()
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.procs)
}

// waitLive waits until n processes, of those that have connected by now, have
// not ended: the end of one that ended is heard a little later.
func (b *backend) waitLive(n int) {
	b.t.Helper()
	b.catchUp()
	b.wait(fmt.Sprintf("%d processes", n), func() bool { return len(b.liveLocked()) == n })
}

// live are the processes that have not ended.
func (b *backend) live() []*process {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.liveLocked()
}

func (b *backend) liveLocked() []*process {
	var out []*process
	for _, p := range b.procs {
		if !p.gone {
			out = append(out, p)
		}
	}
	return out
}

// waitGone waits until no process is left.
func (b *backend) waitGone() {
	b.t.Helper()
	b.waitLive(0)
}

// do commands every live process, at least one that ever started, and waits
// until it is done.
func (b *backend) do(action obj) {
	b.t.Helper()
	b.waitStarts(1)
	b.doAll(action)
}

func (b *backend) doAll(action obj) {
	b.t.Helper()
	for _, p := range b.live() {
		b.doAt(p, action)
	}
}

func (b *backend) doAt(p *process, action obj) {
	b.t.Helper()
	var id int64
	b.update(func() { p.cmds++; id = p.cmds })
	full := obj{"id": id}
	for k, v := range action {
		full[k] = v
	}
	_, _ = p.conn.Write(append(marshal(full), '\n')) // its end shows below
	b.wait("the end of "+string(marshal(action)), func() bool { return p.done >= id || p.gone })
}

// received are the requests and notifications of one method, all there are
// when it is called; "" is every method.
func (b *backend) received(method string) []told {
	b.t.Helper()
	b.catchUp()
	b.doAll(obj{"do": "sync"})
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pick(method)
}

func (b *backend) pick(method string) []told {
	var out []told
	for _, e := range b.events {
		if e.Ev == "recv" && e.method != "" && (method == "" || e.method == method) {
			out = append(out, e)
		}
	}
	return out
}

func (b *backend) count(method string) int { b.t.Helper(); return len(b.received(method)) }

// waitReceived waits for the n-th message of a method.
func (b *backend) waitReceived(method string, n int) told {
	b.t.Helper()
	b.wait(method, func() bool { return len(b.pick(method)) >= n })
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pick(method)[n-1]
}

// uris are the params.uri of the messages of a method.
func (b *backend) uris(method string) []string {
	b.t.Helper()
	var out []string
	for _, e := range b.received(method) {
		out = append(out, str(e.Msg, "params", "uri"))
	}
	return out
}

// waitEvent waits for the first event of that kind and name ("" is any).
func (b *backend) waitEvent(ev, name string) told {
	b.t.Helper()
	return b.waitEvents(ev, name, 1)
}

func (b *backend) waitEvents(ev, name string, n int) (found told) {
	b.t.Helper()
	b.wait(ev+" "+name, func() bool {
		seen := 0
		for _, e := range b.events {
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

// updated sends notifications/resources/updated.
func (b *backend) updated(uri string) {
	b.t.Helper()
	b.do(obj{"do": "notify", "method": "notifications/resources/updated", "params": obj{"uri": uri}})
}

// listChanged sends the notice for "tools", "prompts" or "resources".
func (b *backend) listChanged(kind string) {
	b.t.Helper()
	b.do(obj{"do": "notify", "method": "notifications/" + kind + "/list_changed"})
}

func (b *backend) add(kind string, entry obj) {
	b.t.Helper()
	b.do(obj{"do": "add", "kind": kind, "entry": entry})
}

func (b *backend) remove(kind, name string) {
	b.t.Helper()
	b.do(obj{"do": "remove", "kind": kind, "name": name})
}
