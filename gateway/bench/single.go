package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// relayMode makes this program a relay between its streams and those of a command.
const relayMode = "relay"

// relay is the smallest proxy in Go: four pipes, one read and one write per message. It
// shows what the runtime and the system take from any gateway.
func relay() error {
	cmd := exec.Command(os.Args[2], os.Args[3:]...)
	cmd.Stderr = os.Stderr
	to, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	from, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	// Use the runtime's poller, as Goblin does.
	if err := errors.Join(syscall.SetNonblock(0, true), syscall.SetNonblock(1, true)); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var both sync.WaitGroup
	both.Go(func() { forward(to, os.NewFile(0, "stdin")); _ = to.Close() })
	both.Go(func() { forward(os.NewFile(1, "stdout"), from) })
	both.Wait()
	return cmd.Wait()
}

func forward(to io.Writer, from io.Reader) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// singles measures results of 1 KiB, one at a time and 64 in flight.
func (l *load) singles() error {
	sdk, err := l.progs.sdkPrograms()
	if err != nil {
		return err
	}
	for _, s := range []struct {
		name  string
		progs programs
	}{{"the least server", l.progs}, {"a server of an SDK", sdk}} {
		if err := l.singlesOf(s.name, s.progs); err != nil {
			return err
		}
	}
	return nil
}

func (l *load) singlesOf(name string, progs programs) error {
	f, err := l.fixtureOf(progs, 1, 1)
	if err != nil {
		return err
	}
	shared, stop, err := l.daemonTargets(progs)
	if err != nil {
		return err
	}
	defer stop()
	targets, end, err := l.beside(f)
	if err != nil {
		return err
	}
	defer end()
	targets[1].judge = judgeRelay
	targets = append(targets, shared[0])
	for _, window := range []int{1, 64} {
		if err := l.compare(targets, name, 1024, window); err != nil {
			return err
		}
	}
	return nil
}

func judgeRelay(r *report, m measurement) string {
	if m.window != 1 {
		return ""
	}
	return most(r, "times the relay", float64(m.p50)/float64(m.relay), 1.5)
}
