//go:build bench

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

// display is Goblin's UI on a terminal.
type display struct {
	b    *testing.B
	tty  *os.File
	cmd  *exec.Cmd
	news chan []byte // output

	mu      sync.Mutex
	written int
}

// show starts Goblin on a terminal of a common size.
func (f fixture) show(b *testing.B) *display {
	b.Helper()
	s := &display{b: b, cmd: f.Command(), news: make(chan []byte, 1<<16)}
	s.cmd.Env = append(s.cmd.Env, "TERM=tmux-256color", "LANG=C.UTF-8")
	tty, err := pty.StartWithSize(s.cmd, &pty.Winsize{Rows: 40, Cols: 120})
	check(b, err)
	s.tty = tty
	go func() {
		defer close(s.news)
		for {
			part := make([]byte, 64<<10)
			n, err := tty.Read(part)
			if err != nil {
				return
			}
			s.mu.Lock()
			s.written += n
			s.mu.Unlock()
			s.news <- part[:n]
		}
	}()
	b.Cleanup(func() {
		_ = tty.Close()
		_ = s.cmd.Wait()
	})
	return s
}

// await waits for a text in the output.
func (s *display) await(text string) {
	s.b.Helper()
	var all bytes.Buffer
	deadline := time.After(time.Minute)
	for !bytes.Contains(all.Bytes(), []byte(text)) {
		select {
		case part := <-s.news:
			all.Write(part)
		case <-deadline:
			s.b.Fatalf("no %q in the output: %q", text, all.Bytes())
		}
	}
}

// rest waits until nothing was written for the time quiet.
func (s *display) rest(quiet time.Duration) {
	for {
		select {
		case <-s.news:
		case <-time.After(quiet):
			return
		}
	}
}

// press returns the time from a key until the next output.
func (s *display) press(key string) time.Duration {
	began := time.Now()
	_, err := s.tty.WriteString(key)
	check(s.b, err)
	select {
	case <-s.news:
	case <-time.After(10 * time.Second):
		s.b.Fatalf("nothing is written after %q", key)
	}
	return time.Since(began)
}

func (s *display) bytes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written
}

// storm makes the server send 20 subscribers 50 updates per second each.
func (p peer) storm(b *testing.B, seconds int) {
	p.ask(b, "tools/call", fmt.Sprintf(`{"name":"s0_storm","arguments":{"resources":20,"times":50,"seconds":%d}}`, seconds))
}

// full returns the UI of a gateway with 100,000 resources, and a client with 20
// subscriptions.
func full(b *testing.B) (*display, peer) {
	f := newFixture(b, 100_000, 1)
	s := f.show(b)
	s.await("100k")
	p := f.through(b, "stdio")
	s.rest(500 * time.Millisecond)
	_, err := s.tty.WriteString("4g")
	check(b, err)
	for range 20 {
		for _, key := range []string{"s", "j"} {
			s.press(key)
			s.rest(100 * time.Millisecond)
		}
	}
	return s, p
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// BenchmarkScreenKey measures the time from a key to the first output, through the whole
// program, at 100,000 resources.
func BenchmarkScreenKey(b *testing.B) {
	s, p := full(b)
	keys := []struct{ name, keys string }{
		{"move", strings.Repeat("j", 40)},
		{"page", strings.Repeat("\x04\x15", 20)},
		{"sort", strings.Repeat("o", 20)},
		{"filter", "/item 77\x7f\x7f\x7f\x7f\x7f\x7f\x7f~itm95"},
	}
	measure := func(b *testing.B, name, typed string, pause func()) {
		var all []time.Duration
		for b.Loop() {
			for _, key := range typed {
				pause()
				all = append(all, s.press(string(key)))
			}
			s.rest(300 * time.Millisecond)
			if name == "filter" {
				_, _ = s.tty.WriteString("\x1b")
				s.rest(300 * time.Millisecond)
			}
		}
		b.ReportMetric(millis(median(all)), "median-ms")
		b.ReportMetric(millis(slices.Max(all)), "most-ms")
	}
	for _, k := range keys {
		b.Run(k.name, func(b *testing.B) {
			measure(b, k.name, k.keys, func() { s.rest(100 * time.Millisecond) })
		})
	}
	b.Run("inStorm", func(b *testing.B) {
		p.storm(b, 120)
		time.Sleep(time.Second)
		measure(b, "storm", strings.Repeat("j", 40), func() {
			time.Sleep(7 * time.Millisecond)
			for len(s.news) > 0 {
				<-s.news
			}
		})
	})
}

// BenchmarkScreenIdle measures the cost of the UI at 100,000 resources while nothing
// happens.
func BenchmarkScreenIdle(b *testing.B) {
	s, _ := full(b)
	for b.Loop() {
		s.rest(2 * time.Second)
		const long = 20 * time.Second
		cpu, written := processorTime(s.cmd.Process.Pid), s.bytes()
		time.Sleep(long)
		b.ReportMetric(100*float64(processorTime(s.cmd.Process.Pid)-cpu)/float64(long), "%-of-a-core")
		b.ReportMetric(float64(s.bytes()-written), "bytes")
	}
}

// BenchmarkScreenStorm measures memory before and after 20 seconds of 1,000 updates per
// second, and after an idle time.
func BenchmarkScreenStorm(b *testing.B) {
	s, p := full(b)
	pid := s.cmd.Process.Pid
	go func() { // a client reads its messages
		for range s.news {
		}
	}()
	for b.Loop() {
		time.Sleep(5 * time.Second)
		b.ReportMetric(float64(ownMemory(pid))/1024, "before-MiB")
		cpu := processorTime(pid)
		p.storm(b, 20)
		time.Sleep(20 * time.Second)
		b.ReportMetric(100*float64(processorTime(pid)-cpu)/float64(20*time.Second), "%-of-a-core")
		b.ReportMetric(float64(ownMemory(pid))/1024, "MiB")
		time.Sleep(6 * time.Second)
		b.ReportMetric(float64(ownMemory(pid))/1024, "idle-MiB")
	}
}
