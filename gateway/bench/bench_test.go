//go:build bench

package main

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"goblin/registry/rawjson"
)

// peer fails the benchmark instead of returning errors.
type peer struct{ *client }

func started(b *testing.B, p *client, err error) peer {
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

// fixture is a setup of a benchmark.
type fixture struct{ *setup }

func newFixture(b *testing.B, resources, servers int) fixture {
	b.Helper()
	dir, err := os.MkdirTemp("", "gb")
	check(b, err)
	b.Cleanup(func() { os.RemoveAll(dir) })
	progs, err := builtPrograms()
	check(b, err)
	f, err := newSetup(dir, progs, servers, resources)
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

// BenchmarkInFlight keeps 64 calls of 1 kB in flight. share-% is Goblin's throughput as a
// part of the direct one, cpu-µs the processor time of its process per call.
func BenchmarkInFlight(b *testing.B) {
	f := newFixture(b, 1, 1)
	goblin := f.through(b, "stdio", "--standalone").client
	direct := &target{tool: "echo", load: stream(f.direct(b).client)}
	through := &target{tool: "s0_echo", load: stream(goblin), pids: []int{goblin.PID}}
	both := func() {
		for _, t := range []*target{direct, through} {
			check(b, t.turn(64, 1000, 100*time.Millisecond))
		}
	}
	both() // to warm up
	direct.reset()
	through.reset()
	for b.Loop() {
		both()
	}
	if through.cpu > 0 {
		b.ReportMetric(micros(through.cpu)/float64(len(through.latency)), "cpu-µs")
	}
	d, t := median(direct.rate), median(through.rate)
	b.ReportMetric(d, "direct-calls/s")
	b.ReportMetric(t, "goblin-calls/s")
	b.ReportMetric(100*t/d, "share-%")
}

// BenchmarkHTTPFront compares a call over Streamable HTTP with one over
// stdio, both through Goblin.
func BenchmarkHTTPFront(b *testing.B) {
	f := newFixture(b, 1, 1)
	through := f.through(b, "stdio", "--standalone")
	daemon, err := (&load{ctx: b.Context()}).serve(f.setup)
	check(b, err)
	b.Cleanup(daemon.stop)
	session, err := newWeb(daemon.url)
	check(b, err)
	var stdio, front []time.Duration
	one := func() {
		begin := time.Now()
		through.ask(b, "tools/call", `{"name":"s0_echo","arguments":{"size":100}}`)
		stdio = append(stdio, time.Since(begin))
		begin = time.Now()
		_, err := session.post(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"s0_echo","arguments":{"size":100}}}`)
		check(b, err)
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
				b.ReportMetric(float64(resident(p.PID))/1024, "MiB")
				time.Sleep(4 * time.Second)
				b.ReportMetric(float64(resident(p.PID))/1024, "idle-MiB")
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
