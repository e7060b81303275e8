package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"
)

// listener is a program that serves /mcp at an address.
type listener struct {
	url  string
	pid  int
	stop func()
}

// serve starts a daemon of Goblin with one server.
func (l *load) serve(programs programs) (*setup, *listener, error) {
	f, err := l.fixtureOf(programs, 1, 1)
	if err != nil {
		return nil, nil, err
	}
	h, err := l.serveOf(f)
	return f, h, err
}

func (l *load) serveOf(f *setup) (*listener, error) {
	return l.serveAt(func(address string) *exec.Cmd { return f.Command("serve", "--listen", address) })
}

// serveAt starts a program with an unused address and waits until it listens.
func (l *load) serveAt(command func(address string) *exec.Cmd) (*listener, error) {
	n, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := n.Addr().String()
	_ = n.Close()
	cmd := command(address)
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.WaitDelay = time.Second // its own processes may keep stderr open
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	h := &listener{url: "http://" + address + "/mcp", pid: cmd.Process.Pid, stop: func() {
		_ = cmd.Process.Signal(os.Interrupt)
		kill := time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
		_ = cmd.Wait()
	}}
	for over := time.Now().Add(20 * time.Second); l.ctx.Err() == nil && time.Now().Before(over); time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			return h, c.Close()
		}
	}
	h.stop()
	return nil, fmt.Errorf("%s does not listen\n%s", cmd, &said)
}

// target returns a target that calls over HTTP/1.1 or unencrypted HTTP/2.
func (h *listener) target(name, tool string, http2 bool) (*target, error) {
	w, err := newWeb(h.url, http2)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &target{name: name, tool: tool, load: w.load, pids: []int{h.pid}}, nil
}

// calls measures with two servers. The cheapest possible server is used for budgets that
// are times. Budgets that are ratios assume that a bare cat keeps 86 % of a server's
// throughput with 64 in flight. A server built with an SDK fulfills that.
func (l *load) calls() error {
	if err := l.plainCalls(); err != nil {
		return err
	}
	return l.sdkCalls()
}

func (l *load) plainCalls() error {
	alone, err := l.newFixture(1, 1)
	if err != nil {
		return err
	}
	shared, stop, err := l.daemonTargets(l.progs)
	if err != nil {
		return err
	}
	defer stop()
	targets, end, err := l.beside(alone)
	if err != nil {
		return err
	}
	defer end()
	targets[1].judge = judgeAlone
	shared[0].judge = judgeBridge
	shared[1].judge = judgeFront
	targets = append(targets, shared...)
	for _, size := range []int{100, 10_000, 1_000_000} {
		for _, window := range []int{1, 16, 64} {
			if err := l.compare(targets, "the least server", size, window); err != nil {
				return err
			}
		}
	}
	return nil
}

// daemonTargets starts a daemon and returns it over its bridge and over HTTP.
func (l *load) daemonTargets(programs programs) (targets []*target, end func(), err error) {
	f, h, err := l.serve(programs)
	if err != nil {
		return nil, nil, err
	}
	overHTTP, err := h.target(waysIn[2], "s0_echo", false)
	if err != nil {
		h.stop()
		return nil, nil, err
	}
	bridged, err := f.Through("stdio")
	if err != nil {
		h.stop()
		return nil, nil, err
	}
	bridge := &target{name: waysIn[1], tool: "s0_echo", load: stream(bridged), pids: []int{bridged.PID, h.pid}}
	return []*target{bridge, overHTTP}, func() { bridged.Close(); h.stop() }, nil
}

// sdkCalls measures the calls whose budgets are ratios.
func (l *load) sdkCalls() error {
	programs, err := l.progs.sdkPrograms()
	if err != nil {
		return err
	}
	f, err := l.fixtureOf(programs, 1, 0)
	if err != nil {
		return err
	}
	targets, end, err := l.beside(f)
	if err != nil {
		return err
	}
	defer end()
	targets[1].judge = judgeRatio
	for _, c := range []struct{ size, window int }{{100, 1}, {100, 64}, {10_000, 1}, {10_000, 16}, {10_000, 64}, {1_000_000, 1}} {
		if err := l.compare(targets, "a server of an SDK", c.size, c.window); err != nil {
			return err
		}
	}
	return nil
}

func (l *load) beside(f *setup) (targets []*target, end func(), err error) {
	var peers []*client
	end = func() {
		for _, p := range peers {
			p.Close()
		}
	}
	add := func(t *target, start func() (*client, error)) {
		if err != nil {
			return
		}
		var p *client
		if p, err = start(); err == nil {
			t.load = stream(p)
			t.pids = []int{p.PID}
			peers, targets = append(peers, p), append(targets, t)
		}
	}
	add(&target{name: "direct", tool: "echo"}, func() (*client, error) { return f.Direct(1) })
	add(&target{name: waysIn[0], tool: "s0_echo"}, func() (*client, error) { return f.Through("stdio", "--standalone") })
	if _, missing := exec.LookPath("cat"); missing == nil {
		add(&target{name: "a bare cat in between", tool: "echo"}, func() (*client, error) { return f.Copied(1) })
	}
	add(&target{name: relayName, tool: "echo"}, func() (*client, error) { return f.Relayed(1) })
	if err != nil {
		end()
		return nil, nil, err
	}
	return targets, end, nil
}

// relayName is the row of the lower bound for gateways in Go.
const relayName = "a minimal relay in Go"

// compare measures the targets in turns, in changing order, and reports them.
func (l *load) compare(targets []*target, backend string, size, window int) error {
	slice := min(50*time.Millisecond, l.during(time.Second))
	for _, t := range targets {
		if err := t.turn(window, size, slice); err != nil { // warm up
			return err
		}
		t.reset()
	}
	end := time.Now().Add(l.during(6 * time.Second))
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
	l.callReport(targets, backend, size, window)
	return nil
}

func (l *load) callReport(targets []*target, backend string, size, window int) {
	l.out.section(fmt.Sprintf("tools/call, result of %s, %d in flight, %s", bytesText(size), window, backend),
		"", "p50", "p99", "calls/s", "p50 ratio", "throughput", "CPU", "switches", "budget")
	direct := targets[0]
	var relay time.Duration
	for _, t := range targets {
		if t.name == relayName {
			relay = median(t.latency)
		}
	}
	for _, t := range targets {
		m := measurement{size: size, window: window, p50: median(t.latency), direct: median(direct.latency), alone: median(targets[1].latency), relay: relay}
		switches := 0.0
		if calls := len(t.latency); calls > 0 {
			m.cpu = t.cpu / time.Duration(calls)
			switches = float64(t.switches) / float64(calls)
		}
		// The median of the ratios of neighboring turns.
		var share []float64
		for i, rate := range t.rate {
			share = append(share, 100*rate/direct.rate[i])
		}
		m.share = median(share)
		verdict := ""
		if t.judge != nil {
			verdict = t.judge(&l.out, m)
		}
		l.out.row(t.name, duration(m.p50), duration(quantile(t.latency, 0.99)), fmt.Sprintf("%.0f", median(t.rate)),
			fmt.Sprintf("%.2f", m.ratio()), fmt.Sprintf("%.0f %%", m.share), duration(m.cpu), fmt.Sprintf("%.2f", switches), verdict)
	}
}

type measurement struct {
	size, window       int
	p50, direct, alone time.Duration // of the target, the server, the first transport
	relay              time.Duration // of the minimal relay, or 0
	share              float64       // of the server's throughput, in percent
	cpu                time.Duration // processor time per call
}

func (m measurement) ratio() float64 { return float64(m.p50) / float64(m.direct) }

// The judges return "" without a budget.

func judgeAlone(r *report, m measurement) string {
	switch {
	case m.size == 100 && m.window == 1:
		return most(r, "over direct", m.p50-m.direct, 80*time.Microsecond)
	case m.size == 100 && m.window == 64 && m.cpu > 0:
		return most(r, "CPU per call", m.cpu, 25*time.Microsecond)
	}
	return ""
}

func judgeBridge(r *report, m measurement) string {
	if m.size == 100 && m.window == 1 {
		return most(r, "over direct", m.p50-m.direct, 160*time.Microsecond)
	}
	return ""
}

func judgeFront(r *report, m measurement) string {
	if m.size == 100 && m.window == 1 {
		return most(r, "over stdio", m.p50-m.alone, 150*time.Microsecond)
	}
	return ""
}

func judgeRatio(r *report, m measurement) string {
	switch {
	case m.size == 100 && m.window == 64:
		return least(r, "throughput", m.share, 40)
	case m.size == 10_000:
		return most(r, "ratio", m.ratio(), 1.5)
	case m.size == 1_000_000:
		return most(r, "ratio", m.ratio(), 2)
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
