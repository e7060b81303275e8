//go:build unix

package serve_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
	"goblin/gateway/daemon"
	"goblin/gateway/e2e"
	"goblin/gateway/remoteui"
	"goblin/gateway/serve"
)

// said is a stderr that tests can wait for.
type said struct {
	mu   sync.Mutex
	more sync.Cond
	text bytes.Buffer
}

func newSaid() *said {
	s := &said{}
	s.more.L = &s.mu
	return s
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.more.Broadcast()
	return s.text.Write(p)
}

// until waits for a text and returns all output.
func (s *said) until(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !strings.Contains(s.text.String(), text) {
		s.more.Wait()
	}
	return s.text.String()
}

// newProcess returns a process whose config has no servers.
func newProcess(t *testing.T, show serve.ShowFunc) (p *serve.Process, place daemon.Endpoint, stderr *said) {
	t.Helper()
	dir := e2e.ShortDir(t)
	file := filepath.Join(dir, "goblin.yaml")
	require.NoError(t, os.WriteFile(file, []byte("servers: {}\n"), 0o600))
	stderr = newSaid()
	app := &cli.App{
		In: strings.NewReader(""), Out: io.Discard, Err: stderr, ConfigFlag: file, Version: cli.Version{Version: "test"},
		Getenv: func(name string) string { return map[string]string{"XDG_RUNTIME_DIR": dir, "HOME": dir}[name] },
	}
	in, out, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { in.Close(); out.Close() })
	place, err = app.FindDaemon(file)
	require.NoError(t, err)
	return &serve.Process{App: app, In: in, Out: out, Err: os.Stderr, Show: show}, place, stderr
}

// run starts a mode and stops it at the end of the test.
func run(t *testing.T, mode func(ctx context.Context) error) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mode(ctx) }()
	end = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	t.Cleanup(end)
	return end
}

func background(p *serve.Process) func(context.Context) error {
	return func(ctx context.Context) error { return p.Background(ctx, false) }
}

// relay is a simulated relay that has sent its hello.
func relay(t *testing.T, place daemon.Endpoint) net.Conn {
	t.Helper()
	for {
		c, err := daemon.Dial(t.Context(), place, daemon.KindScreen)
		if err != nil {
			require.ErrorIs(t, err, daemon.ErrNotRunning) // the daemon is starting
			<-time.After(5 * time.Millisecond)
			continue
		}
		t.Cleanup(func() { c.Close() })
		_, err = c.Write([]byte("h\x00\x00\x00\x02{}"))
		require.NoError(t, err)
		return c
	}
}

func TestScreensOfADaemonAreBounded(t *testing.T) {
	t.Parallel()
	shown := make(chan struct{})
	p, place, _ := newProcess(t, func(_ context.Context, _ *serve.Daemon, c *remoteui.Conn, owner bool) error {
		require.False(t, owner)
		shown <- struct{}{}
		<-c.Done()
		return nil
	})
	run(t, background(p))
	var first net.Conn
	for range serve.MaxScreens {
		c := relay(t, place)
		if first == nil {
			first = c
		}
		<-shown
	}
	one := relay(t, place)
	require.NoError(t, one.SetReadDeadline(time.Now().Add(30*time.Second)))
	head := make([]byte, 5)
	_, err := io.ReadFull(one, head)
	require.NoError(t, err)
	reason := make([]byte, binary.BigEndian.Uint32(head[1:]))
	_, err = io.ReadFull(one, reason)
	require.NoError(t, err)
	require.Equal(t, "x this daemon already shows the maximum of 32 UIs", string(head[:1])+" "+string(reason))

	first.Close() // frees its slot
	for room := false; !room; {
		relay(t, place)
		select {
		case <-shown:
			room = true
		case <-time.After(100 * time.Millisecond): // it was still running
		}
	}
}

func TestATerminalThatTakesNothingDoesNotHoldUpTheEndOfItsDaemon(t *testing.T) {
	t.Parallel()
	writing := make(chan struct{})
	wrote := make(chan error, 1)
	p, place, _ := newProcess(t, func(_ context.Context, _ *serve.Daemon, c *remoteui.Conn, _ bool) error {
		c.SetWriteLimit(time.Hour)
		for {
			select {
			case writing <- struct{}{}:
			case <-c.Done():
			}
			if _, err := c.Write(make([]byte, 1<<20)); err != nil {
				wrote <- err
				return err
			}
		}
	})
	end := run(t, background(p))
	relay(t, place)
	<-writing
	for stuck := false; !stuck; {
		select {
		case <-writing:
		case <-time.After(300 * time.Millisecond):
			stuck = true
		}
	}
	end()
	// The daemon reports its exit. It does not wait until the connection is closed.
	require.ErrorIs(t, <-wrote, os.ErrDeadlineExceeded)
}

func TestTheReasonWhyThereIsNoScreenIsTold(t *testing.T) {
	t.Parallel()
	p, _, stderr := newProcess(t, func(context.Context, *serve.Daemon, *remoteui.Conn, bool) error { return nil })
	run(t, p.Screen)
	require.Contains(t, stderr.until("press Ctrl-C to stop"), "the UI's input is not a terminal")
}

func TestAScreenThatPanicsCostsNobodyElse(t *testing.T) {
	t.Parallel()
	p, place, _ := newProcess(t, func(context.Context, *serve.Daemon, *remoteui.Conn, bool) error { panic("oops") })
	run(t, background(p))
	for range 2 {
		text, err := io.ReadAll(relay(t, place))
		require.NoError(t, err)
		require.Contains(t, string(text), "the UI failed: oops")
	}
}
