// Command testserver is a scripted MCP server for tests and benchmarks.
//
//	testserver SCRIPT.json             MCP on stdin and stdout
//	testserver -http ADDR SCRIPT.json  Streamable HTTP at /mcp, HTTP+SSE at /sse
//	testserver -fast N                 without a script: fast answers, N resources
//
// It uses no MCP library, whose leniency could hide a fault of the program under test. It
// must not import Goblin's packages.
//
// # Script
//
// A script is one JSON object, see [script]. By default a read answers "<server> <uri>",
// a call and a prompt "<server>:<name>:<arguments>". The member "on" has lists of actions
// for "METHOD KEY", "METHOD" or "start" that run before that, see [action].
//
// # Control
//
// If the script names a Unix socket, the process connects to it at its start. The test
// listens there, so it notices each start and exit. It gets each MCP message before the
// message is handled. Each line from the test is one action that runs immediately and is
// answered. The answer follows all earlier events. One round trip therefore proves that
// the server received nothing else.
//
// Each request runs in its own goroutine. The process exits at the end of its input,
// after a signal or by a crash action, without waiting.
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

func main() {
	addr := flag.String("http", "", "serve Streamable HTTP at this address instead of stdio")
	sleep := flag.Bool("sleep", false, "ignore signals and wait: the grandchild of other modes")
	resources := flag.Int("fast", -1, "serve benchmarks on stdio, with this number of resources, instead of a script")
	flag.Parse()
	if *sleep {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		time.Sleep(10 * time.Minute)
		return
	}
	serve := func() error { return run(*addr, flag.Arg(0)) }
	if *resources >= 0 {
		serve = func() error { return newFast(*resources, os.Stdout).serve(os.Stdin) }
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "testserver:", err)
		os.Exit(1)
	}
}

func run(addr, path string) error {
	sc, err := load(path)
	if err != nil {
		return err
	}
	s, out := newServer(sc), &lines{w: os.Stdout}
	s.everybody = s.sessions.send
	if addr == "" {
		s.everybody = out.send
	}
	signals := catchSignals() // before the test sees the process
	if err := s.connect(); err != nil {
		return err
	}
	go s.watchSignals(signals)
	s.act(s.outside(), sc.On["start"])
	if addr != "" {
		return s.serveHTTP(addr)
	}
	err = s.serveLines(os.Stdin, out)
	s.tell(event{Ev: "eof"})
	if sc.IgnoreEOF {
		select {}
	}
	if sc.ExitCode != 0 {
		os.Exit(sc.ExitCode)
	}
	return err
}

func (s *server) serveLines(in io.Reader, out *lines) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			s.receive(line, origin{send: out.send, answer: out.send, raw: out.raw})
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read stdin: %w", err)
		}
		if s.deaf.Load() {
			s.tell(event{Ev: "deaf"})
			select {}
		}
	}
}

type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) send(frame []byte) {
	_ = l.raw(append(frame[:len(frame):len(frame)], '\n')) // a missing reader is noticed by the end of stdin
}

func (l *lines) raw(text []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.w.Write(text)
	return err
}

func catchSignals() <-chan os.Signal {
	ch := make(chan os.Signal, 8)
	signal.Notify(ch, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	return ch
}

func (s *server) watchSignals(signals <-chan os.Signal) {
	for sig := range signals {
		s.tell(event{Ev: "signal", Name: sig.String()})
		if !s.IgnoreTerm {
			os.Exit(0)
		}
	}
}
