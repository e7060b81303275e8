//go:build bench

package bench

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"goblin/gateway/bench/internal/rig"
	"goblin/registry/rawjson"
)

var programs rig.Programs

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() == "" {
		return m.Run() // nothing is measured
	}
	dir, err := os.MkdirTemp("", "gbench")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if programs, err = rig.Build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// peer fails the benchmark instead of returning errors.
type peer struct{ *rig.Peer }

func started(b *testing.B, p *rig.Peer, err error) peer {
	b.Helper()
	check(b, err)
	b.Cleanup(p.Close)
	return peer{p}
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (p peer) send(b *testing.B, method, params string) { check(b, p.Send(method, params)) }

func (p peer) receive(b *testing.B) []byte {
	answer, err := p.Receive()
	check(b, err)
	return answer
}

func (p peer) ask(b *testing.B, method, params string) []byte {
	answer, err := p.Ask(method, params)
	check(b, err)
	return answer
}

// fixture is a backend asked directly, and Goblin in front of others.
type fixture struct{ *rig.Fixture }

func newFixture(b *testing.B, resources, servers int) fixture {
	b.Helper()
	dir, err := os.MkdirTemp("", "gb")
	check(b, err)
	b.Cleanup(func() { os.RemoveAll(dir) })
	f, err := rig.NewFixture(dir, programs, servers, resources)
	check(b, err)
	return fixture{f}
}

func (f fixture) direct(b *testing.B) peer {
	p, err := f.Direct(1)
	return started(b, p, err)
}

func (f fixture) through(b *testing.B, args ...string) peer {
	p, err := f.Through(args...)
	return started(b, p, err)
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
				call := func(p peer, tool string) time.Duration {
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
	burst := func(p peer, tool string) time.Duration {
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
	before := rig.CPU(through.PID)
	for b.Loop() {
		near = append(near, burst(direct, "echo"))
		far = append(far, burst(through, "s0_echo"))
	}
	if spent := rig.CPU(through.PID) - before; spent > 0 {
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
	cmd := f.Command("serve", "--listen", address)
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
		if answer.StatusCode >= 300 || rig.IsFailure(text) {
			b.Fatalf("status %s: %s", answer.Status, text)
		}
		if id := answer.Header.Get("Mcp-Session-Id"); id != "" {
			session = id
		}
		return nil
	}
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + rig.Hello + `}`
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

// BenchmarkMemory is what Goblin's process holds once all is listed, or after calls with
// answers of 1 MiB, 16 of them at a time: at once, and when it has been idle for a while.
func BenchmarkMemory(b *testing.B) {
	list := func(p peer) { p.ask(b, "resources/list", "{}") }
	call := func(p peer) {
		for range 20 {
			for range 16 {
				p.send(b, "tools/call", `{"name":"s0_echo","arguments":{"size":1048576}}`)
			}
			for range 16 {
				p.receive(b)
			}
		}
	}
	for _, c := range []struct {
		name               string
		resources, servers int
		do                 func(peer)
	}{{"10servers", 20, 10, list}, {"100000resources", 100_000, 1, list}, {"answersOf1MiB", 1, 1, call}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				p := newFixture(b, c.resources, c.servers).through(b, "stdio", "--standalone")
				c.do(p)
				b.ReportMetric(float64(rig.Resident(p.PID))/1024, "MiB")
				time.Sleep(4 * time.Second)
				b.ReportMetric(float64(rig.Resident(p.PID))/1024, "idle-MiB")
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
				p, err := f.Start("stdio", "--standalone")
				check(b, err)
				answered = append(answered, time.Since(begin))
				_, err = p.Ask("tools/list", "{}")
				ready = append(ready, time.Since(begin))
				p.Close()
				check(b, err)
			}
			b.ReportMetric(micros(median(answered))/1000, "initialize-ms")
			b.ReportMetric(micros(median(ready))/1000, "ready-ms")
		})
	}
}
