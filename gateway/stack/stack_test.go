package stack

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/gateway/e2e"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/servers"
)

func TestMain(m *testing.M) {
	if err := e2e.ProvideTestServer(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	cfg, err := config.Parse(filepath.Join(t.TempDir(), "goblin.yaml"), []byte(text), os.LookupEnv)
	require.NoError(t, err)
	return cfg
}

func TestHTTPThatFailsIsLoggedAndEndsOnlyWhatNeedsIt(t *testing.T) {
	t.Parallel()
	for name, required := range map[string]bool{"required": true, "not required": false} {
		t.Run(name, func(t *testing.T) {
			log := make(teller, 10)
			i, err := New(Options{
				Config: parse(t, "gateway: {listen: '127.0.0.1:0'}\nservers: {s: {command: s, disabled: true}}"), Version: "v",
				Logger: slog.New(slog.NewTextHandler(log, nil)), HTTP: true, HTTPRequired: required,
			})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			require.NoError(t, i.address.Close())
			ended := make(chan error, 1)
			go func() { ended <- i.Run(ctx) }()
			require.Contains(t, <-log, "HTTP endpoint failed")
			if required {
				require.ErrorContains(t, <-ended, "serve HTTP: serve on 127.0.0.1:")
				return
			}
			select {
			case err := <-ended:
				t.Fatal("everything else stopped too", err)
			default:
			}
			cancel()
			require.NoError(t, <-ended)
		})
	}
}

// teller sends each log line to a channel.
type teller chan string

func (w teller) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}

// newPlace returns the endpoint of a daemon in its own folder.
func newPlace(t *testing.T) daemon.Endpoint {
	dir := e2e.ShortDir(t)
	return daemon.Endpoint{
		Dir: dir, Socket: filepath.Join(dir, "s"), Lock: filepath.Join(dir, "l"),
		Log: filepath.Join(dir, "log"), Version: "v",
	}
}

func TestSocketHasRoomForSoManySessions(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	i, err := New(Options{
		Config: parse(t, "gateway: {limits: {sessions: 2}}"), Version: "v",
		Logger: slog.New(slog.DiscardHandler), Endpoint: &place,
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx) }()

	ask := func(c net.Conn) string {
		t.Helper()
		require.NoError(t, c.SetDeadline(time.Now().Add(30*time.Second)))
		_, err := c.Write([]byte(`{"jsonrpc":"2.0","method":"notifications/odd"}` + "\n" + `{"jsonrpc":"2.0","id":7,"method":"ping"}` + "\n"))
		require.NoError(t, err)
		line, err := jsonrpc.NewReader(c, 1<<20).Read()
		require.NoError(t, err)
		return string(line)
	}
	var open []net.Conn
	for range 2 {
		c, err := daemon.Dial(ctx, place, daemon.KindMCP)
		require.NoError(t, err)
		require.Equal(t, `{"jsonrpc":"2.0","id":7,"result":{}}`, ask(c))
		open = append(open, c)
	}
	third, err := daemon.Dial(ctx, place, daemon.KindMCP)
	require.NoError(t, err)
	require.Equal(t, `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"Too many sessions: at most 2 (limits.sessions)",`+
		`"data":{"code":"CONNECTION_ERROR","server":"goblin"}}}`, ask(third))
	_, err = third.Read(make([]byte, 1))
	require.Error(t, err, "it is closed")
	require.NoError(t, third.Close())

	require.NoError(t, open[0].Close())
	require.Eventually(t, func() bool { return i.sockets.Load() == 1 }, 30*time.Second, time.Millisecond)
	next, err := daemon.Dial(ctx, place, daemon.KindMCP)
	require.NoError(t, err)
	require.Equal(t, `{"jsonrpc":"2.0","id":7,"result":{}}`, ask(next))
	require.NoError(t, next.Close())
	require.NoError(t, open[1].Close())
	cancel()
	require.NoError(t, <-ended)
}

func TestListOfAServerThatIsNotThereNamesThoseThatAre(t *testing.T) {
	t.Parallel()
	i, err := New(Options{
		Config: parse(t, "servers: {a: {command: x, disabled: true}}"), Version: "v", Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	_, err = i.List(context.Background(), daemon.ListQuery{Kind: "tools", Server: "b"})
	var unknown *servers.UnknownError
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, []string{"a"}, unknown.Known)
}

// Cleanups of temporary folders remove old files.
func TestADaemonKeepsItsFilesFresh(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	i, err := New(Options{
		Config: parse(t, "servers: {s: {command: sh, args: [-c, 'cat >/dev/null']}}"), Version: "v",
		Logger: slog.New(slog.DiscardHandler), Endpoint: &place, Runtime: place.Dir,
	})
	require.NoError(t, err)
	i.touchInterval = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx) }()
	var kept []string
	require.Eventually(t, func() bool {
		records, err := filepath.Glob(filepath.Join(place.Dir, "children-*"))
		kept = append(records, place.Socket, place.Lock)
		return err == nil && (len(records) == 1 || runtime.GOOS == "windows")
	}, patience, time.Millisecond)
	old := time.Now().Add(-30 * 24 * time.Hour)
	for _, path := range kept {
		require.NoError(t, os.Chtimes(path, old, old))
	}
	for _, path := range kept {
		require.Eventually(t, func() bool {
			info, err := os.Stat(path)
			return err == nil && time.Since(info.ModTime()) < time.Hour
		}, patience, time.Millisecond, path)
	}
	cancel()
	require.NoError(t, <-ended)
}
