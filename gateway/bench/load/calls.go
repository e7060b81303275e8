package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"goblin/gateway/bench/internal/rig"
)

// host is a `goblin serve` that is stopped with stop.
type host struct {
	url  string
	stop func()
}

func (l *load) serve(f *rig.Fixture) (*host, error) {
	n, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := n.Addr().String()
	_ = n.Close()
	cmd := f.Command("serve", "--listen", address)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	h := &host{url: "http://" + address + "/mcp", stop: func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}}
	for l.ctx.Err() == nil {
		c, err := net.Dial("tcp", address)
		if err == nil {
			return h, c.Close()
		}
		time.Sleep(5 * time.Millisecond)
	}
	h.stop()
	return nil, fmt.Errorf("goblin serve does not listen: %w\n%s", l.ctx.Err(), &said)
}

// calls are tools/call of three sizes, one, 16 and 64 at a time, by all ways
// into Goblin.
func (l *load) calls() error {
	alone, err := l.newFixture(1, 1)
	if err != nil {
		return err
	}
	hosted, err := l.newFixture(1, 1)
	if err != nil {
		return err
	}
	h, err := l.serve(hosted)
	if err != nil {
		return err
	}
	defer h.stop()
	direct, err := alone.Direct(1)
	if err != nil {
		return err
	}
	defer direct.Close()
	standalone, err := alone.Through("stdio", "--standalone")
	if err != nil {
		return err
	}
	defer standalone.Close()
	bridged, err := hosted.Through("stdio")
	if err != nil {
		return err
	}
	defer bridged.Close()
	front, err := newWeb(h.url)
	if err != nil {
		return err
	}
	targets := []*target{
		{name: "direct", tool: "echo", load: stream(direct)},
		{name: "stdio --standalone", tool: "s0_echo", load: stream(standalone), pid: standalone.PID},
		{name: "stdio (bridge to a host)", tool: "s0_echo", load: stream(bridged)},
		{name: "Streamable HTTP", tool: "s0_echo", load: front.load},
	}
	if _, err := exec.LookPath("cat"); err == nil {
		copied, err := alone.Copied(1)
		if err != nil {
			return err
		}
		defer copied.Close()
		targets = append(targets, &target{name: "a bare cat in between", tool: "echo", load: stream(copied)})
	}
	if l.against != "" {
		other, err := l.other()
		if err != nil {
			return err
		}
		defer other.Close()
		targets = append(targets, &target{name: filepath.Base(l.against) + " --standalone", tool: "s0_echo", load: stream(other)})
	}
	for _, size := range []int{100, 10_000, 1_000_000} {
		for _, window := range []int{1, 16, 64} {
			if err := l.compare(targets, size, window); err != nil {
				return err
			}
			l.callReport(targets, size, window)
		}
	}
	return nil
}

// other is the Goblin that this one is compared with.
func (l *load) other() (*rig.Peer, error) {
	path, err := filepath.Abs(l.against)
	if err != nil {
		return nil, err
	}
	own := l.progs.Goblin
	l.progs.Goblin = path
	f, err := l.newFixture(1, 1)
	l.progs.Goblin = own
	if err != nil {
		return nil, err
	}
	return f.Through("stdio", "--standalone")
}

// compare gives the targets turns, in an order that changes.
func (l *load) compare(targets []*target, size, window int) error {
	const slice = 50 * time.Millisecond
	for _, t := range targets {
		if err := t.turn(window, size, slice); err != nil { // to warm up
			return err
		}
		t.reset()
	}
	end := time.Now().Add(l.during(8 * time.Second))
	for round := 0; round < 3 || time.Now().Before(end); round++ {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		for i := range targets {
			t := targets[(i+round)%len(targets)]
			if err := t.turn(window, size, slice); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *load) callReport(targets []*target, size, window int) {
	l.out.section(fmt.Sprintf("tools/call, result of %s, %d in flight", bytesText(size), window),
		"", "p50", "p99", "calls/s", "p50 ratio", "throughput", "budget")
	direct := targets[0]
	for _, t := range targets {
		// Medians of the ratios of neighbouring turns, and of all latencies.
		var share []float64
		for i, rate := range t.rate {
			share = append(share, rate/direct.rate[i])
		}
		p50 := median(t.latency)
		columns := []string{
			t.name, duration(p50), duration(quantile(t.latency, 0.99)), fmt.Sprintf("%.0f", median(t.rate)),
			fmt.Sprintf("%.2f", float64(p50)/float64(median(direct.latency))), fmt.Sprintf("%.0f %%", 100*median(share)),
			l.callBudget(targets, t, size, window, median(share)),
		}
		l.out.row(columns...)
	}
}

// callBudget says whether a target keeps what is demanded of it; "" for no
// demand.
func (l *load) callBudget(targets []*target, t *target, size, window int, share float64) string {
	p50 := median(t.latency)
	direct, alone := median(targets[0].latency), median(targets[1].latency)
	ratio := float64(p50) / float64(direct)
	switch {
	case t == targets[1] && size == 100 && window == 64:
		text := least(&l.out, "throughput", 100*share, 40)
		if t.cpu > 0 {
			text += "; " + most(&l.out, "CPU per call", t.cpu/time.Duration(len(t.latency)), 25*time.Microsecond)
		}
		return text
	case window > 1:
		return ""
	case t == targets[1] && size == 100:
		return most(&l.out, "over direct", p50-direct, 80*time.Microsecond)
	case t == targets[1] && size == 10_000:
		return most(&l.out, "ratio", ratio, 1.5)
	case t == targets[1]:
		return most(&l.out, "ratio", ratio, 2)
	case t == targets[2] && size == 100:
		return most(&l.out, "over direct", p50-direct, 160*time.Microsecond)
	case t == targets[3] && size == 100:
		return most(&l.out, "over stdio", p50-alone, 150*time.Microsecond)
	}
	return ""
}

func bytesText(n int) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%d MB", n/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%d kB", n/1e3)
	}
	return fmt.Sprintf("%d B", n)
}
