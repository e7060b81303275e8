// Command testserver is a scripted MCP server for tests and benchmarks.
//
// It records the messages that a server is sent, and misbehaves in every way that a script
// or the test asks for.
//
//	testserver SCRIPT.json             MCP on stdin and stdout
//	testserver -http ADDR SCRIPT.json  Streamable HTTP at /mcp, HTTP+SSE at /sse
//	testserver -fast N                 without a script: fast answers, N resources
//
// It uses no MCP library, so that no leniency of one hides a fault of the program under test.
// It must not import anything of Goblin.
//
// # Script
//
// A script is one JSON object, see [script]. Whatever it does not say has a
// plain default: a read answers "<server> <uri>", a call and a prompt answer
// "<server>:<name>:<arguments>". The member "on" gives lists of actions by
// "METHOD KEY", "METHOD" or "start" that run before that default, see [action].
//
// # Control
//
// If the script names a Unix socket, the process dials it when it starts: the
// test is the listener, and so learns of every start (a connection) and every
// death (its end). Each message that arrives at the MCP side is told there
// before it is handled, each line from the test is one action that is done at
// once, and answered. The answer comes after all that was told before it, so
// that one round trip makes "the backend was asked nothing" a certain finding.
//
// Every request runs in a goroutine of its own; the process ends with its
// input, a signal, or a script's crash, and waits for nothing.
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
	signals := catchSignals() // before the test knows of the process
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
	return err
}

// serveLines reads one message per line until the input ends or an action says
// that the process is deaf.
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

// lines writes whole frames, each on a line.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) send(frame []byte) {
	_ = l.raw(append(frame[:len(frame):len(frame)], '\n')) // a reader that is gone is found by stdin's end
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

// watchSignals tells of TERM, INT and HUP, and ends the process unless the
// script is stubborn.
func (s *server) watchSignals(signals <-chan os.Signal) {
	for sig := range signals {
		s.tell(event{Ev: "signal", Name: sig.String()})
		if !s.IgnoreTerm {
			os.Exit(0)
		}
	}
}
