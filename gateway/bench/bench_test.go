package bench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

const backendEnv = "GOBLIN_BENCH_BACKEND"

var goblin string

func TestMain(m *testing.M) {
	if os.Getenv(backendEnv) != "" {
		serve(os.Stdin, os.Stdout)
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if goblin = os.Getenv("GOBLIN_BENCH_BINARY"); goblin == "" {
		dir, err := os.MkdirTemp("", "gbench")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		goblin = filepath.Join(dir, "goblin")
		if text, err := exec.Command("go", "build", "-o", goblin, "goblin").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build goblin: %v\n%s", err, text)
			return 1
		}
	}
	return m.Run()
}

// serve is the backend: it answers at once, so that what is measured is the
// way there and back.
func serve(in io.Reader, out io.Writer) {
	r := jsonrpc.NewReader(in, 1<<30)
	count, _ := strconv.Atoi(os.Getenv(backendEnv))
	var resources bytes.Buffer
	for i := range count {
		if i > 0 {
			resources.WriteByte(',')
		}
		fmt.Fprintf(&resources, `{"uri":"file:///srv/data/set-%d/item-%07d.json","name":"item-%07d.json","description":"An item of the data set","mimeType":"application/json","size":%d}`, i%97, i, i, i)
	}
	texts := map[int64][]byte{}
	for {
		frame, err := r.Read()
		if err != nil {
			return
		}
		m, err := jsonrpc.Parse(frame)
		if err != nil || m.ID == nil {
			continue
		}
		result := []byte("{}")
		switch m.Method {
		case "initialize":
			result = []byte(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"bench","version":"1"}}`)
		case "tools/list":
			result = []byte(`{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`)
		case "resources/list":
			result = append(append([]byte(`{"resources":[`), resources.Bytes()...), "]}"...)
		case "resources/templates/list":
			result = []byte(`{"resourceTemplates":[]}`)
		case "tools/call":
			n, _ := rawjson.Int(rawjson.Path(m.Params, "arguments", "size"))
			if texts[n] == nil {
				texts[n] = []byte(`{"content":[{"type":"text","text":"` + strings.Repeat("x", int(n)) + `"}]}`)
			}
			result = texts[n]
		}
		if _, err := out.Write(jsonrpc.Result(m.ID, result)); err != nil {
			return
		}
	}
}

// peer is a process that speaks MCP on its standard streams.
type peer struct {
	in  io.WriteCloser
	out *bufio.Reader
	id  int
	pid int // 0 inside this process
}

func connect(in io.WriteCloser, out io.Reader) *peer {
	return &peer{in: in, out: bufio.NewReaderSize(out, 1<<20)}
}

// start runs a command as a peer and shakes hands.
func start(b *testing.B, env []string, name string, args ...string) *peer {
	b.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	check(b, err)
	out, err := cmd.StdoutPipe()
	check(b, err)
	check(b, cmd.Start())
	b.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	p := connect(in, out)
	p.pid = cmd.Process.Pid
	p.ask(b, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`)
	_, err = io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	check(b, err)
	return p
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (p *peer) send(b *testing.B, method, params string) string {
	p.id++
	id := strconv.Itoa(p.id)
	_, err := io.WriteString(p.in, `{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":`+params+"}\n")
	check(b, err)
	return id
}

var (
	wantError = []byte(`"error":`)
	isNotice  = []byte(`"method":`)
)

// receive reads the next answer.
func (p *peer) receive(b *testing.B) []byte {
	for {
		line, err := p.out.ReadSlice('\n')
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = p.out.ReadSlice('\n')
		}
		check(b, err)
		head := line[:min(len(line), 120)]
		if bytes.Contains(head, isNotice) {
			continue
		}
		if bytes.Contains(head, wantError) {
			b.Fatalf("error: %s", line)
		}
		return line
	}
}

func (p *peer) ask(b *testing.B, method, params string) []byte {
	p.send(b, method, params)
	return p.receive(b)
}

// fixture is a backend asked directly, and Goblin in front of another.
type fixture struct {
	self   string
	config string
	env    []string
}

func newFixture(b *testing.B, resources, servers int) *fixture {
	b.Helper()
	self, err := os.Executable()
	check(b, err)
	dir, err := os.MkdirTemp("", "gb")
	check(b, err)
	b.Cleanup(func() { os.RemoveAll(dir) })
	f := &fixture{self: self, config: filepath.Join(dir, "c.yaml")}
	f.env = []string{"XDG_RUNTIME_DIR=" + dir, "HOME=" + dir, "GOBLIN_CONFIG=" + f.config}
	var text strings.Builder
	text.WriteString("gateway: {startup_wait: 30s, linger: 1s}\nservers:\n")
	for i := range servers {
		fmt.Fprintf(&text, "  s%d: {command: %q, args: [backend], env: {%s: %q}}\n", i, self, backendEnv, strconv.Itoa(resources))
	}
	check(b, os.WriteFile(f.config, []byte(text.String()), 0o600))
	return f
}

func (f *fixture) direct(b *testing.B) *peer { return start(b, []string{backendEnv + "=1"}, f.self) }

func (f *fixture) through(b *testing.B, args ...string) *peer {
	p := start(b, f.env, goblin, args...)
	p.ask(b, "tools/list", "{}") // waits for the servers
	return p
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// BenchmarkCall is a tools/call after the other; over-µs is what Goblin adds
// to the median.
func BenchmarkCall(b *testing.B) {
	for _, size := range []int{100, 10_000, 1_000_000} {
		for _, mode := range [][]string{{"stdio", "--standalone"}, {"stdio"}} {
			name := fmt.Sprintf("%dB/%s", size, map[int]string{1: "bridged", 2: "standalone"}[len(mode)])
			b.Run(name, func(b *testing.B) {
				f := newFixture(b, 1, 1)
				direct, through := f.direct(b), f.through(b, mode...)
				args := fmt.Sprintf(`,"arguments":{"size":%d}}`, size)
				call := func(p *peer, tool string) time.Duration {
					start := time.Now()
					p.ask(b, "tools/call", `{"name":"`+tool+`"`+args)
					return time.Since(start)
				}
				for range 200 {
					call(direct, "echo")
					call(through, "s0_echo")
				}
				var near, far []time.Duration
				for b.Loop() {
					near = append(near, call(direct, "echo"))
					far = append(far, call(through, "s0_echo"))
				}
				d, t := median(near), median(far)
				b.ReportMetric(micros(d), "direct-µs")
				b.ReportMetric(micros(t), "goblin-µs")
				b.ReportMetric(micros(t-d), "over-µs")
				b.ReportMetric(float64(t)/float64(d), "ratio")
			})
		}
	}
}

// BenchmarkInFlight keeps 64 calls of 1 kB under way; share-% is Goblin's
// throughput as a part of the direct one, cpu-µs what its process spends on a
// call.
func BenchmarkInFlight(b *testing.B) {
	const window, chunk = 64, 2000
	f := newFixture(b, 1, 1)
	direct, through := f.direct(b), f.through(b, "stdio", "--standalone")
	burst := func(p *peer, tool string) time.Duration {
		params := `{"name":"` + tool + `","arguments":{"size":1000}}`
		free := make(chan struct{}, window)
		begin := time.Now()
		var sender sync.WaitGroup
		sender.Go(func() {
			for range chunk {
				free <- struct{}{}
				p.send(b, "tools/call", params)
			}
		})
		for range chunk {
			p.receive(b)
			<-free
		}
		sender.Wait()
		return time.Since(begin)
	}
	burst(direct, "echo")
	burst(through, "s0_echo")
	var near, far []time.Duration
	before := cpu(through.pid)
	for b.Loop() {
		near = append(near, burst(direct, "echo"))
		far = append(far, burst(through, "s0_echo"))
	}
	if spent := cpu(through.pid) - before; spent > 0 {
		b.ReportMetric(micros(spent)/float64(chunk*len(far)), "cpu-µs")
	}
	d, t := median(near), median(far)
	b.ReportMetric(chunk/d.Seconds(), "direct-calls/s")
	b.ReportMetric(chunk/t.Seconds(), "goblin-calls/s")
	b.ReportMetric(100*float64(d)/float64(t), "share-%")
}

// BenchmarkHTTPFront compares a call over Streamable HTTP with one over
// stdio, both through Goblin.
func BenchmarkHTTPFront(b *testing.B) {
	f := newFixture(b, 1, 1)
	through := f.through(b, "stdio", "--standalone")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(b, err)
	address := l.Addr().String()
	l.Close()
	cmd := exec.Command(goblin, "serve", "--listen", address)
	cmd.Env = append(os.Environ(), f.env...)
	check(b, cmd.Start())
	b.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	session := ""
	post := func(body string) error {
		r, err := http.NewRequest(http.MethodPost, "http://"+address+"/mcp", strings.NewReader(body))
		check(b, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		check(b, err)
		if answer.StatusCode >= 300 || bytes.Contains(text[:min(len(text), 120)], wantError) {
			b.Fatalf("status %s: %s", answer.Status, text)
		}
		if id := answer.Header.Get("Mcp-Session-Id"); id != "" {
			session = id
		}
		return nil
	}
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`
	for post(hello) != nil {
		time.Sleep(10 * time.Millisecond)
	}
	check(b, post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	check(b, post(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`))
	var stdio, front []time.Duration
	one := func() {
		begin := time.Now()
		through.ask(b, "tools/call", `{"name":"s0_echo","arguments":{"size":100}}`)
		stdio = append(stdio, time.Since(begin))
		begin = time.Now()
		check(b, post(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"s0_echo","arguments":{"size":100}}}`))
		front = append(front, time.Since(begin))
	}
	for range 200 {
		one()
	}
	stdio, front = nil, nil
	for b.Loop() {
		one()
	}
	s, h := median(stdio), median(front)
	b.ReportMetric(micros(s), "stdio-µs")
	b.ReportMetric(micros(h), "http-µs")
	b.ReportMetric(micros(h-s), "over-µs")
}

// BenchmarkMemory is what Goblin's process holds once all is listed.
func BenchmarkMemory(b *testing.B) {
	for name, f := range map[string]struct{ resources, servers int }{"10servers": {20, 10}, "100000resources": {100_000, 1}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p := newFixture(b, f.resources, f.servers).through(b, "stdio", "--standalone")
				p.ask(b, "resources/list", "{}")
				if kb := resident(p.pid); kb > 0 {
					b.ReportMetric(float64(kb)/1024, "MiB")
				}
			}
		})
	}
}

// BenchmarkListPage is a page of 1,000 resources out of 100,000.
func BenchmarkListPage(b *testing.B) {
	f := newFixture(b, 100_000, 1)
	p := f.through(b, "stdio", "--standalone")
	first := p.ask(b, "resources/list", "{}")
	cursor, ok := rawjson.String(rawjson.Path(bytes.TrimSpace(first), "result", "nextCursor"))
	if !ok {
		b.Fatalf("no second page: %.200s", first)
	}
	params := `{"cursor":"` + cursor + `"}`
	for b.Loop() {
		p.send(b, "resources/list", params)
		p.receive(b)
	}
}

// BenchmarkStart is the time from starting Goblin to its answer to
// initialize, and until the tools of all servers are listed.
func BenchmarkStart(b *testing.B) {
	for _, servers := range []int{1, 20} {
		b.Run(fmt.Sprintf("%dservers", servers), func(b *testing.B) {
			f := newFixture(b, 1, servers)
			var answered, ready []time.Duration
			for b.Loop() {
				begin := time.Now()
				p := start(b, f.env, goblin, "stdio", "--standalone")
				answered = append(answered, time.Since(begin))
				p.ask(b, "tools/list", "{}")
				ready = append(ready, time.Since(begin))
				p.in.Close()
			}
			b.ReportMetric(micros(median(answered))/1000, "initialize-ms")
			b.ReportMetric(micros(median(ready))/1000, "ready-ms")
		})
	}
}
