//go:build soak

package soak

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// soak is a daemon with servers that fail in all ways, clients of all kinds, and a
// changing config. It runs for the duration in SOAK.
type soak struct {
	t      *testing.T
	w      *e2e.World
	seed   uint64
	base   string
	daemon *e2e.Program
	pid    int
	http   *http.Client
	names  []string
	conf   e2e.Obj

	proxies []*e2e.Proxy
	// file is locked to write a config with mistakes. Callers that start a program that
	// reads the config hold a read lock.
	file sync.RWMutex

	serial, asked, answered, updates atomic.Int64

	mu     sync.Mutex
	faults int
	counts map[string]int
	left   []string // HTTP sessions that no client deleted
	times  []time.Duration
}

// wrong records a defect.
func (s *soak) wrong(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faults++; s.faults <= 30 {
		s.t.Errorf(time.Now().Format("15:04:05.000 ")+format, args...)
	}
}

func (s *soak) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what]++
}

func (s *soak) took(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.times) < 1<<20 {
		s.times = append(s.times, d)
	}
}

// figures are measurements that must return to their initial values.
type figures struct {
	goroutines, descriptors, children, sessions, subscriptions, up int
	resident                                                       int // MiB
}

func (s *soak) figures() (f figures) {
	resp, err := s.http.Get(s.base + "/metrics")
	if err != nil {
		s.wrong("GET /metrics: %v", err)
		return f
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		s.wrong("GET /metrics: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, _, _ := strings.Cut(series, "{")
		x, _ := strconv.ParseFloat(value, 64)
		switch name {
		case "go_goroutines":
			f.goroutines = int(x)
		case "process_resident_memory_bytes":
			f.resident = int(x) >> 20
		case "mcp_sessions_active":
			f.sessions += int(x)
		case "mcp_resource_subscriptions_active":
			f.subscriptions += int(x)
		case "mcp_server_up":
			f.up += int(x)
		}
	}
	fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.pid))
	f.descriptors = len(fds)
	f.children = len(children(s.pid))
	return f
}

// children returns the child processes of a process, including zombies.
func children(parent int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// quiet waits until all clients have left and fits accepts the figures.
func (s *soak) quiet(r *rand.Rand, fits func(f figures) bool) (f figures, ok bool) {
	s.mu.Lock()
	left := s.left
	s.left = nil
	s.mu.Unlock()
	for _, id := range left {
		s.forget(id, r)
	}
	s.http.CloseIdleConnections()
	// Idle connections are no leak, but would stay for 90 s.
	for _, f := range fleet {
		if f.http != "" {
			s.restart(f.name)
		}
	}
	// One session may remain: the one of all stateless requests.
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		if f = s.figures(); f.sessions <= 1 && f.subscriptions == 0 && f.up == len(fleet) && fits(f) {
			return f, true
		}
		if time.Now().After(end) {
			return f, false
		}
	}
}

// turmoil runs all clients and faults at once for a while.
func (s *soak) turmoil(length time.Duration, phase uint64) {
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	go func() {
		select {
		case <-s.daemon.Exited:
			s.wrong("the daemon has exited: %v\n%s", s.daemon.Cmd.ProcessState, s.story())
			cancel()
		case <-ctx.Done():
		}
	}()
	var all sync.WaitGroup
	places := slices.Sorted(maps.Keys(visitors))
	for i, name := range slices.Concat(places, []string{"bridge", "session", "stateless"}) {
		r := rand.New(rand.NewPCG(s.seed, phase<<32+uint64(i)))
		all.Go(func() {
			for ctx.Err() == nil {
				visitors[name](s, ctx, r)
				s.pause(ctx, r, 100)
				s.count("visits: " + name)
			}
		})
	}
	all.Go(func() { s.reload(ctx, rand.New(rand.NewPCG(s.seed, phase<<32+100))) })
	all.Go(func() { s.trouble(ctx, rand.New(rand.NewPCG(s.seed, phase<<32+101))) })
	all.Wait()
}

// soakTime returns the duration after the warm-up, and the seed.
func soakTime(t *testing.T) (length time.Duration, seed uint64) {
	t.Helper()
	length, seed = 10*time.Minute, rand.Uint64()
	if text := os.Getenv("SOAK"); text != "" {
		var err error
		length, err = time.ParseDuration(text)
		require.NoError(t, err, "SOAK")
	}
	if text := os.Getenv("SOAK_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "SOAK_SEED")
	}
	return length, seed
}

func TestSoakLosesNoAnswerAndLeavesNothingBehind(t *testing.T) {
	length, seed := soakTime(t)
	t.Logf("SOAK=%v SOAK_SEED=%d", length, seed)
	w := e2e.NewWorld(t)
	w.Gateway["startup_wait"] = "1s"
	w.Gateway["limits"] = e2e.Obj{"sessions": 256, "unsent": "2MiB"}
	w.Gateway["listen"] = "127.0.0.1:0"
	s := &soak{t: t, w: w, seed: seed, counts: map[string]int{}, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}}
	t.Cleanup(s.http.CloseIdleConnections)
	s.launchFleet()
	mine, _ := s.conf[moving].(e2e.Obj)
	s.writeConfig(mine)
	w.Written = true
	daemon := w.Serve()
	s.daemon, s.base, s.pid = daemon.Program, daemon.Base, daemon.Cmd.Process.Pid

	e2e.Eventually(t, "all servers", func() bool { return s.figures().up == len(fleet) })
	s.turmoil(min(max(length/10, 8*time.Second), 20*time.Second), 1)
	r := rand.New(rand.NewPCG(seed, 0))
	last, steady := figures{}, 0
	before, ok := s.quiet(r, func(f figures) bool {
		if steady++; f.goroutines != last.goroutines || f.descriptors != last.descriptors || f.children != last.children {
			last, steady = f, 0
		}
		return steady >= 10 // two seconds
	})
	if !ok {
		t.Fatalf("not quiet after warm-up: %+v\n%s", before, s.story())
	}
	t.Logf("after warm-up: %+v", before)

	s.turmoil(length, 2)
	raced := os.Getenv("GOBLIN_E2E_RACE") != "" // the race detector uses much memory
	select {
	case <-daemon.Exited:
		t.FailNow()
	default:
	}
	after, ok := s.quiet(r, func(f figures) bool {
		return f.goroutines <= before.goroutines+10 && f.descriptors <= before.descriptors+8 &&
			f.children <= before.children+1 && (raced || f.resident <= before.resident+128)
	})
	t.Logf("at the end: %+v", after)
	s.report()
	if !ok {
		t.Fatalf("figures do not return to their initial values\n%s", s.story())
	}
	require.Positive(t, s.answered.Load())
	for _, p := range []*soakClient{s.newClient("last", r)} {
		p.modern = true
		end := p.overHTTP(context.Background(), s.base)
		for _, f := range fleet {
			if f.name != "each" { // it is refused to requests without a session
				require.True(t, p.do(s.call(f.name, "echo")), "%s answers again", f.name)
			}
		}
		end()
	}
	s.http.CloseIdleConnections()
	daemon.Signal(syscall.SIGTERM)
	require.Equal(t, e2e.ExitOK, daemon.Ends(15*time.Second))
}

// report logs the counts and fails after too many defects.
func (s *soak) report() {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.times)
	q := func(f float64) time.Duration { return s.times[int(f*float64(len(s.times)-1))] }
	s.t.Logf("%d requests, %d results, %d updates; healthy server: %d calls, p50 %v, p95 %v, worst %v",
		s.asked.Load(), s.answered.Load(), s.updates.Load(), len(s.times), q(0.5), q(0.95), q(1))
	for _, what := range slices.Sorted(maps.Keys(s.counts)) {
		s.t.Logf("%6d %s", s.counts[what], what)
	}
	if s.faults > 30 {
		s.t.Errorf("%d defects in all", s.faults)
	}
}

// story returns the daemon's last output. It stops the daemon, with the stacks of its
// goroutines.
func (s *soak) story() string {
	s.daemon.Signal(syscall.SIGQUIT)
	<-s.daemon.Exited
	text := s.daemon.Stderr.String()
	if at := regexp.MustCompile(`(?m)^(panic:|fatal error:|SIGQUIT|runtime:)`).FindStringIndex(text); at != nil {
		text = text[max(0, at[0]-4000):]
	}
	return text[:min(len(text), 200_000)]
}
