package main

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// side is one way to the server: direct, through Goblin or through a peer.
type side struct {
	name  string
	start func() (*target, func(), error)

	values [figures][]float64
}

// The figures of a side. The first four have one value per round. Memory has one per life.
const (
	latency     = iota // of one call at a time, in ns
	throughput         // with 64 calls in flight, per second
	cpuAlone           // per call, in ns
	cpuInFlight        // the same with 64 calls in flight
	memoryIdle         // RssAnon in KiB, before the first call
	memoryAfter        // the same after the last call
	memoryFile         // RssFile in KiB, after the last call
	figures
)

const (
	peerSize   = 1024 // bytes of a result
	peerRounds = 3    // per life
	peerTurn   = 300 * time.Millisecond
)

var quietNode = []string{"NODE_NO_WARNINGS=1"}

// peers prints Goblin beside a direct connection and beside other gateways, as Markdown.
// The server is built with mcp-go.
func (l *load) peers() error {
	programs, err := l.progs.sdkPrograms()
	if err != nil {
		return err
	}
	var gateways []*npmGateway
	for _, p := range []*npmGateway{&mcpProxy, &supergateway} {
		if err := p.fetch(); err != nil {
			l.out.line(fmt.Sprintf("%s is skipped: %v\n", p, err))
			continue
		}
		gateways = append(gateways, p)
	}
	version, _ := exec.Command("node", "--version").Output()
	l.out.line(fmt.Sprintf("%d cores, %s, Node %s, a server of mcp-go, results of 1 KiB, %d starts of each process with %d rounds.\n",
		runtime.NumCPU(), runtime.Version(), cmp.Or(strings.TrimSpace(string(version)), "missing"), l.lives, peerRounds))
	overStdio := l.stdioSides(programs, gateways)
	overHTTP := l.webSides(programs, gateways)
	for _, sides := range [][]*side{overStdio, overHTTP} {
		for life := range l.lives {
			if err := l.peerLife(sides, life); err != nil {
				return err
			}
		}
	}
	l.peerReport("over stdio", overStdio, 2)
	l.peerReport("over Streamable HTTP", overHTTP, 1)
	l.memoryReport(slices.Concat(overStdio[1:], overHTTP[1:]))
	return nil
}

// stdioSides returns the server, two ways through Goblin, and the peers.
func (l *load) stdioSides(p programs, gateways []*npmGateway) []*side {
	piped := func(start func() (*client, error), tool string) func() (*target, func(), error) {
		return func() (*target, func(), error) {
			c, err := start()
			if err != nil {
				return nil, nil, err
			}
			return &target{tool: tool, load: stream(c), pids: []int{c.PID}}, c.Close, nil
		}
	}
	sides := []*side{
		{name: "direct", start: piped(func() (*client, error) { return startClient(nil, p.server...) }, "echo")},
		{name: "`goblin stdio --standalone`", start: piped(func() (*client, error) {
			f, err := l.fixtureOf(p, 1, 0)
			if err != nil {
				return nil, err
			}
			return f.Through("stdio", "--standalone")
		}, "s0_echo")},
		{name: "`goblin stdio` and its daemon", start: func() (*target, func(), error) { return l.daemonSide(p, 0) }},
	}
	for _, g := range gateways {
		s := &side{name: g.String() + ", its library", start: piped(func() (*client, error) {
			command, err := g.stdioCommand(p.server...)
			if err != nil {
				return nil, err
			}
			return startClient(quietNode, command...)
		}, "echo")}
		if g == &supergateway {
			s.name = g.String() + ", two in a chain"
			s.start = func() (*target, func(), error) { return l.chain(g, p) }
		}
		sides = append(sides, s)
	}
	return sides
}

// webSides returns the server with its own HTTP transport, Goblin, and the peers.
func (l *load) webSides(p programs, gateways []*npmGateway) []*side {
	web := func(command func(address string) []string) func() (*target, func(), error) {
		return func() (*target, func(), error) {
			d, err := l.listening(command)
			if err != nil {
				return nil, nil, err
			}
			t, err := d.target(d.url, "echo", false)
			if err != nil {
				d.stop()
				return nil, nil, err
			}
			return t, d.stop, nil
		}
	}
	sides := []*side{
		{name: "direct", start: web(func(address string) []string { return append(slices.Clone(p.server), address) })},
		{name: "`goblin serve`", start: func() (*target, func(), error) { return l.daemonSide(p, 1) }},
	}
	for _, g := range gateways {
		sides = append(sides, &side{name: g.String(), start: web(func(address string) []string { return g.serveCommand(address, p.server) })})
	}
	return sides
}

// daemonSide keeps one of the ways to a daemon: the bridge or HTTP.
func (l *load) daemonSide(p programs, way int) (*target, func(), error) {
	targets, end, err := l.daemonTargets(p)
	if err != nil {
		return nil, nil, err
	}
	return targets[way], end, nil
}

// serveCommand returns the command line that serves a stdio server over HTTP, for several
// requests of one session.
func (p *npmGateway) serveCommand(address string, server []string) []string {
	host, port, _ := net.SplitHostPort(address)
	if p == &supergateway {
		return p.command("--stdio", strings.Join(server, " "), "--outputTransport", "streamableHttp", "--stateful",
			"--port", port, "--logLevel", "none")
	}
	return p.command(append([]string{"--host", host, "--port", port, "--server", "stream", "--"}, server...)...)
}

// chain starts a gateway from HTTP to stdio before one from stdio to HTTP.
func (l *load) chain(g *npmGateway, p programs) (*target, func(), error) {
	d, err := l.listening(func(address string) []string { return g.serveCommand(address, p.server) })
	if err != nil {
		return nil, nil, err
	}
	c, err := startClient(quietNode, g.command("--streamableHttp", d.url, "--logLevel", "none")...)
	if err != nil {
		d.stop()
		return nil, nil, err
	}
	return &target{tool: "echo", load: stream(c), pids: []int{c.PID, d.pid}}, func() { c.Close(); d.stop() }, nil
}

// listening starts a program of Node and waits until it listens at the address that
// command gets.
func (l *load) listening(command func(address string) []string) (*listener, error) {
	return l.serveAt(func(address string) *exec.Cmd {
		line := command(address)
		cmd := exec.Command(line[0], line[1:]...)
		cmd.Env = append(os.Environ(), quietNode...)
		return cmd
	})
}

// peerLife starts all sides and measures them in turns, in changing order.
func (l *load) peerLife(sides []*side, life int) error {
	targets := make([]*target, len(sides))
	for i, s := range sides {
		t, end, err := s.start()
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		defer end()
		t.name, targets[i] = s.name, t
		s.add(memoryIdle, float64(t.memory("RssAnon:")))
	}
	for round := range 1 + peerRounds {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		for i := range sides {
			at := (i + round + life) % len(sides)
			if err := sides[at].round(targets[at], l.during(peerTurn), round > 0); err != nil {
				return err
			}
		}
	}
	for i, s := range sides {
		s.add(memoryAfter, float64(targets[i].memory("RssAnon:")))
		s.add(memoryFile, float64(targets[i].memory("RssFile:")))
	}
	return nil
}

func (s *side) add(figure int, v float64) { s.values[figure] = append(s.values[figure], v) }

// round measures one call at a time, then 64 in flight. The first round warms up.
func (s *side) round(t *target, turn time.Duration, counts bool) error {
	for _, window := range []int{1, 64} {
		t.reset()
		if err := t.turn(window, peerSize, turn); err != nil {
			return err
		}
		cpu := float64(t.cpu) / float64(len(t.latency))
		switch {
		case !counts:
		case window == 1:
			s.add(latency, float64(median(t.latency)))
			s.add(cpuAlone, cpu)
		default:
			s.add(throughput, t.rate[0])
			s.add(cpuInFlight, cpu)
		}
	}
	return nil
}

// memory sums a line of /proc/PID/status, in KiB.
func (t *target) memory(line string) (kib int) {
	for _, pid := range t.pids {
		kib += status(processDir(pid), line)
	}
	return kib
}

// peerReport prints the figures, and the ratios of the sides to each other. Goblin's sides
// follow the first one.
func (l *load) peerReport(title string, sides []*side, own int) {
	direct := sides[0]
	l.tableHead(title, "one call at a time", "times direct", "calls/s, 64 in flight", "times direct", "CPU per call", "the same, 64 in flight")
	for i, s := range sides {
		alone, inFlight := "", ""
		if i > 0 {
			alone, inFlight = duration(time.Duration(mean(s.values[cpuAlone]))), duration(time.Duration(mean(s.values[cpuInFlight])))
		}
		l.tableRow(s.name, duration(time.Duration(median(s.values[latency]))), spread(s, direct, latency),
			rateText(median(s.values[throughput])), spread(s, direct, throughput), alone, inFlight)
	}
	l.tableHead(title+", Goblin as a share of a peer", "one call at a time", "calls/s, 64 in flight", "CPU per call", "the same, 64 in flight")
	for _, s := range sides[1 : 1+own] {
		for _, other := range sides[1+own:] {
			l.tableRow(s.name+" / "+other.name, spread(s, other, latency), spread(s, other, throughput), spread(s, other, cpuAlone), spread(s, other, cpuInFlight))
		}
	}
}

func (l *load) memoryReport(sides []*side) {
	mib := func(all []float64) string {
		return fmt.Sprintf("%.0f–%.0f–%.0f", slices.Min(all)/1024, median(all)/1024, slices.Max(all)/1024)
	}
	l.tableHead("memory in MiB", "RssAnon, idle", "RssAnon, after the calls", "RssFile")
	for _, s := range sides {
		l.tableRow(s.name, mib(s.values[memoryIdle]), mib(s.values[memoryAfter]), mib(s.values[memoryFile]))
	}
}

// spread returns the minimum, median and maximum of the rounds' ratios.
func spread(s, other *side, figure int) string {
	if s == other {
		return "1"
	}
	ratios := make([]float64, len(s.values[figure]))
	for i, v := range s.values[figure] {
		ratios[i] = v / other.values[figure][i]
	}
	return ratioText(slices.Min(ratios)) + "–" + ratioText(median(ratios)) + "–" + ratioText(slices.Max(ratios))
}

// ratioText returns three digits at most.
func ratioText(r float64) string {
	digits := 0
	switch {
	case r < 0.1:
		digits = 3
	case r < 1:
		digits = 2
	case r < 10:
		digits = 1
	}
	return strconv.FormatFloat(r, 'f', digits, 64)
}

// rateText separates thousands.
func rateText(r float64) string {
	n := int(r)
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

func (l *load) tableHead(columns ...string) {
	l.out.line("")
	l.tableRow(columns...)
	l.out.line(strings.Repeat("|---", len(columns)) + "|")
}

func (l *load) tableRow(columns ...string) { l.out.line("| " + strings.Join(columns, " | ") + " |") }
