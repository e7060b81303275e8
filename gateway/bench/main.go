// Command bench measures the goblin binary against direct connections to the same
// servers.
//
// Both take turns within one run, so that ratios are meaningful on a noisy machine. It
// builds and runs the real binary, or $GOBLIN_BENCH_BINARY. The server behind it is
// testserver -fast. Where a budget is a ratio, it is a server built with mcp-go.
//
//	go run ./gateway/bench                  two minutes, all measurements and budgets
//	go run ./gateway/bench -quick           20 seconds
//	go run ./gateway/bench -only calls      only some measurements
//	go run ./gateway/bench -only single     calls one at a time, with CPU time and switches
//	go run ./gateway/bench -against BINARY  compare with another Goblin, six minutes or one
//	go run ./gateway/bench -peers           compare with other gateways from npm, two minutes
//
// With -against, each row starts its processes five times, or twice with -quick. The
// minimum and the maximum of these ratios show how reliable a row is.
//
// gateway/bench/compare builds another revision and compares with it.
//
// The benchmarks with the build tag bench measure the rest: allocations per call, memory
// of an idle Goblin, and the UI on a real terminal.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"
)

func main() {
	do := helper()
	if do == nil {
		do = run
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// helper returns what this program does in place of a measurement if its first argument
// asks for it, otherwise nil.
func helper() func() error {
	if len(os.Args) < 2 {
		return nil
	}
	return map[string]func() error{sdkMode: serveSDK, relayMode: relay, httpRelayMode: serveHTTPRelay}[os.Args[1]]
}

type load struct {
	ctx   context.Context
	dir   string
	progs programs
	scale float64 // 1 for two minutes
	// lives is the number of starts of each process in a comparison. Its placement in
	// memory and on cores changes its call times by up to 20 %. That lasts its whole
	// life, even for two copies of one binary.
	lives   int
	fixture int // counts folders
	out     report
}

var parts = []struct {
	name string
	run  func(*load) error
}{
	{"calls", (*load).calls},
	{"single", (*load).singles},
	{"http", (*load).httpCalls},
	{"catalogs", (*load).catalogs},
	{"start", (*load).starts},
	{"updates", (*load).updates},
	{"recording", (*load).recordings},
	{"memory", (*load).memory},
}

func run() error {
	quick := flag.Bool("quick", false, "take 20 seconds instead of two minutes")
	only := flag.String("only", "", "measure only these, separated by commas: calls, single, http, catalogs, start, updates, recording, memory")
	against := flag.String("against", "", "compare with this binary of Goblin instead of with a direct connection")
	peers := flag.Bool("peers", false, "print Goblin beside other gateways, which npm installs, as Markdown")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, over := context.WithTimeout(ctx, 10*time.Minute)
	defer over()
	dir, err := os.MkdirTemp("", "gload")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l := &load{ctx: ctx, dir: dir, scale: 1, lives: 5, out: report{to: os.Stdout}}
	if *quick {
		l.scale, l.lives = 0.15, 2
	}
	if l.progs, err = buildPrograms(dir); err != nil {
		return err
	}
	begin := time.Now()
	if *against != "" {
		return l.against(*against, *only)
	}
	if *peers {
		return l.peers()
	}
	if err := l.all(*only); err != nil {
		return err
	}
	l.out.verdict(time.Since(begin))
	return nil
}

func (l *load) all(only string) error {
	for _, p := range parts {
		if !wanted(only, p.name) {
			continue
		}
		if err := p.run(l); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

func wanted(only, part string) bool {
	return only == "" || strings.Contains(","+only+",", ","+part+",")
}

func (l *load) newFixture(servers, resources int) (*setup, error) {
	return l.fixtureOf(l.progs, servers, resources)
}

func (l *load) fixtureOf(p programs, servers, resources int) (*setup, error) {
	l.fixture++
	dir := fmt.Sprintf("%s/%d", l.dir, l.fixture)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	return newSetup(dir, p, servers, resources)
}

// during scales a duration to the length of the run.
func (l *load) during(d time.Duration) time.Duration { return time.Duration(float64(d) * l.scale) }
