package daemon_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"goblin/gateway/daemon"
	"goblin/gateway/e2e"
)

// asDaemon makes the test binary a detached daemon, like `goblin`. Its value selects the
// behavior.
const asDaemon = "GOBLIN_TEST_DAEMON"

func TestMain(m *testing.M) {
	if mode := os.Getenv(asDaemon); mode != "" {
		if err := beDaemon(mode); err != nil {
			fmt.Fprintln(os.Stderr, "test daemon:", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// beDaemon serves the endpoint that the first argument has as JSON. It records in a file
// that it became the daemon, and echoes MCP connections.
func beDaemon(mode string) error {
	var p daemon.Endpoint
	if err := json.Unmarshal([]byte(os.Args[1]), &p); err != nil {
		return err
	}
	if mode == "broken" {
		return errors.New("goblin.yaml:3: unknown key\nsecond line")
	}
	l, err := daemon.Listen(p)
	var running *daemon.RunningError
	if errors.As(err, &running) {
		return nil
	}
	if err != nil {
		return err
	}
	defer l.Close()
	f, err := os.OpenFile(filepath.Join(p.Dir, "daemons"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	fmt.Fprintln(f, os.Getpid())
	f.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // exits soon after a failed test
	defer cancel()
	if mode == "lingers" {
		l.SetLinger(200*time.Millisecond, nil)
	}
	return l.Serve(ctx, daemon.Handlers{
		MCP: echo,
		Control: func(_ context.Context, op string, _ json.RawMessage) (any, error) {
			if op == "stop" {
				cancel()
			}
			dir, err := os.Getwd()
			return map[string]string{"dir": dir}, err
		},
	})
}

func echo(ctx context.Context, c net.Conn, r io.Reader, _ daemon.Client) {
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	_, _ = io.Copy(c, r)
}

// place returns an endpoint in a folder with a short path.
func place(t *testing.T) daemon.Endpoint {
	t.Helper()
	p, err := daemon.Find("hash", "v1", env(map[string]string{"XDG_RUNTIME_DIR": e2e.ShortDir(t)}))
	require.NoError(t, err)
	return p
}

func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func context30s(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// serve runs a daemon in this process and returns it with a function that stops it. The
// end of the test checks the result of Serve.
func serve(t *testing.T, p daemon.Endpoint, h daemon.Handlers, set ...func(*daemon.Listener)) (*daemon.Listener, func()) {
	t.Helper()
	l, err := daemon.Listen(p)
	require.NoError(t, err)
	for _, s := range set {
		s(l)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Serve(ctx, h) }()
	ended := false
	end := func() {
		if ended {
			return
		}
		ended = true
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, l.Close())
	}
	t.Cleanup(end)
	return l, end
}

func start(t *testing.T, p daemon.Endpoint, mode string) error {
	t.Helper()
	return daemon.Start(context30s(t), p, os.Args[0], daemonArgs(t, p), daemonEnv(mode))
}

func daemonArgs(t *testing.T, p daemon.Endpoint) []string {
	t.Helper()
	text, err := json.Marshal(p)
	require.NoError(t, err)
	return []string{string(text)}
}

func daemonEnv(mode string) []string { return append(os.Environ(), asDaemon+"="+mode) }

// daemonPIDs returns the pids of all processes that became the daemon of p.
func daemonPIDs(t *testing.T, p daemon.Endpoint) (pids []int) {
	t.Helper()
	f, err := os.Open(filepath.Join(p.Dir, "daemons"))
	require.NoError(t, err)
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		pid, err := strconv.Atoi(s.Text())
		require.NoError(t, err)
		pids = append(pids, pid)
	}
	return pids
}
