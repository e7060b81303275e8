// Command testserver is a scripted MCP server for tests and benchmarks.
//
// It records all received messages, and misbehaves as its script or the test commands.
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
	return err
}

// serveLines reads one message per line until the input ends or an action makes the
// process deaf.
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

// lines writes frames, one per line.
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

// watchSignals reports TERM, INT and HUP, and exits unless the script ignores them.
func (s *server) watchSignals(signals <-chan os.Signal) {
	for sig := range signals {
		s.tell(event{Ev: "signal", Name: sig.String()})
		if !s.IgnoreTerm {
			os.Exit(0)
		}
	}
}
