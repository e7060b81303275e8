//go:build bench

package main

import (
	"os"
	"testing"
	"time"
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

func (f fixture) through(b *testing.B, args ...string) peer {
	p, err := f.Through(args...)
	return started(b, p, err)
}

// BenchmarkMemory measures the memory of Goblin's process after all lists were read, or
// after concurrent calls of 1 MiB. It measures at once and after an idle time.
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
