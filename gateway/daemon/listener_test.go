package daemon_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/daemon"
)

var echoing = daemon.Handlers{
	MCP:     echo,
	Control: func(context.Context, string, json.RawMessage) (any, error) { return "fine", nil },
}

func TestSocketIsPrivate(t *testing.T) {
	p := place(t)
	serve(t, p, echoing)
	for _, path := range []string{p.Socket, p.Lock} {
		fi, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), fi.Mode().Perm(), path)
	}
}

func TestConnectionsOfAllKinds(t *testing.T) {
	p := place(t)
	h := echoing
	h.Screen = func(_ context.Context, c net.Conn, _ io.Reader) { _, _ = io.WriteString(c, "screen\n") }
	serve(t, p, h)

	mcp, err := daemon.Dial(context30s(t), p, daemon.KindMCP)
	require.NoError(t, err)
	defer mcp.Close()
	_, err = io.WriteString(mcp, "hello\n")
	require.NoError(t, err)
	require.Equal(t, "hello\n", line(t, mcp))

	screen, err := daemon.Dial(context30s(t), p, daemon.KindScreen)
	require.NoError(t, err)
	defer screen.Close()
	require.Equal(t, "screen\n", line(t, screen))

	var out string
	require.NoError(t, daemon.Control(context30s(t), p, "status", nil, &out))
	require.Equal(t, "fine", out)
}

func line(t *testing.T, r io.Reader) string {
	t.Helper()
	text, err := bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err)
	return text
}

// raw connects without a first line.
func raw(t *testing.T, p daemon.Endpoint) net.Conn {
	t.Helper()
	c, err := net.Dial("unix", p.Socket)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(30*time.Second)))
	return c
}

func TestHandshakeRefusals(t *testing.T) {
	p := place(t)
	serve(t, p, echoing)
	tests := map[string]struct{ first, want string }{
		"garbage":          {"GET / HTTP/1.1\r\n", "first line must be"},
		"MCP at once":      {`{"jsonrpc":"2.0","id":1,"method":"initialize"}` + "\n", "first line must be"},
		"another protocol": {`{"goblin":9,"kind":"mcp","version":"v1"}` + "\n", "not 9"},
		"unknown kind":     {`{"goblin":1,"kind":"disco","version":"v1"}` + "\n", `unknown kind of connection "disco"`},
		"another version":  {`{"goblin":1,"kind":"mcp","version":"v2"}` + "\n", `version "v1", the caller "v2"`},
		"no UI":            {`{"goblin":1,"kind":"screen","version":"v1"}` + "\n", "does not support screen connections"},
		"endless":          {strings.Repeat("x", 20_000), "longer than 16384 bytes"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := raw(t, p)
			_, err := io.WriteString(c, tt.first)
			require.NoError(t, err)
			var answer struct {
				Goblin int
				OK     bool
				Error  string
			}
			require.NoError(t, json.Unmarshal([]byte(line(t, c)), &answer))
			require.Equal(t, 1, answer.Goblin)
			require.False(t, answer.OK)
			require.Contains(t, answer.Error, tt.want)
		})
	}
	_, err := daemon.Dial(context30s(t), p, daemon.KindScreen)
	var refused *daemon.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, os.Getpid(), refused.PID)
	require.NotErrorIs(t, err, daemon.ErrNotRunning)
}

func TestBytesBehindTheFirstLineReachTheHandler(t *testing.T) {
	p := place(t)
	serve(t, p, echoing)
	c := raw(t, p)
	_, err := io.WriteString(c, `{"goblin":1,"kind":"mcp","version":"v1"}`+"\nearly\n")
	require.NoError(t, err)
	r := bufio.NewReader(c)
	for _, want := range []string{`"ok":true`, "early"} {
		text, err := r.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, text, want)
	}
}

func TestSilentConnectionIsCutAndDelaysNobody(t *testing.T) {
	p := place(t)
	l, _ := serve(t, p, echoing, func(l *daemon.Listener) { l.SetHello(time.Hour) })
	silent := raw(t, p)
	_, err := io.WriteString(silent, `{"goblin":1,`)
	require.NoError(t, err)
	require.NoError(t, daemon.Control(context30s(t), p, "status", nil, nil), "it delays no other connection")
	require.Eventually(t, func() bool { return l.Connections() == 1 }, 30*time.Second, time.Millisecond)

	l.SetHello(50 * time.Millisecond)
	cut := raw(t, p)
	text, err := io.ReadAll(cut) // the daemon closes it long before the deadline
	require.NoError(t, err)
	require.Contains(t, string(text), "timeout before the first line")
	require.Eventually(t, func() bool { return l.Connections() == 1 }, 30*time.Second, time.Millisecond, "the other one is within its limit")
}

func TestAnotherUserIsRefused(t *testing.T) {
	t.Run("by the daemon", func(t *testing.T) {
		daemon.Foreign(t, false, true)
		p := place(t)
		serve(t, p, echoing)
		text, err := io.ReadAll(raw(t, p)) // closed without an answer
		require.NoError(t, err)
		require.Empty(t, text)
	})
	t.Run("by the client, for its process", func(t *testing.T) {
		daemon.Foreign(t, false, true)
		p := place(t)
		ln, err := net.Listen("unix", p.Socket)
		require.NoError(t, err)
		defer ln.Close()
		_, err = daemon.Dial(context30s(t), p, daemon.KindMCP)
		require.ErrorContains(t, err, "is another user")
		require.NotErrorIs(t, err, daemon.ErrNotRunning)
	})
	t.Run("by the client, for its socket", func(t *testing.T) {
		p := place(t)
		serve(t, p, echoing)
		daemon.Foreign(t, true, false)
		_, err := daemon.Dial(context30s(t), p, daemon.KindMCP)
		require.ErrorContains(t, err, "another user")
	})
}

func TestDialFindsNoDaemon(t *testing.T) {
	tests := map[string]func(t *testing.T, p daemon.Endpoint){
		"no socket": func(*testing.T, daemon.Endpoint) {},
		"a socket without a listener": func(t *testing.T, p daemon.Endpoint) {
			ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: p.Socket, Net: "unix"})
			require.NoError(t, err)
			ln.SetUnlinkOnClose(false)
			require.NoError(t, ln.Close())
		},
		"a daemon that ends before it answers": func(t *testing.T, p daemon.Endpoint) {
			ln, err := net.Listen("unix", p.Socket)
			require.NoError(t, err)
			t.Cleanup(func() { ln.Close() })
			go func() {
				for {
					c, err := ln.Accept()
					if err != nil {
						return
					}
					c.Close()
				}
			}()
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			p := place(t)
			prepare(t, p)
			_, err := daemon.Dial(context30s(t), p, daemon.KindMCP)
			require.ErrorIs(t, err, daemon.ErrNotRunning)
		})
	}
}

func TestDaemonThatHangsIsNamed(t *testing.T) {
	daemon.AnswerLimit(t, 50*time.Millisecond)
	p := place(t)
	ln, err := net.Listen("unix", p.Socket) // accepts connections and never answers
	require.NoError(t, err)
	defer ln.Close()
	require.NoError(t, os.WriteFile(p.Lock, []byte("4711\n"), 0o600))
	_, err = daemon.Dial(context30s(t), p, daemon.KindMCP)
	require.ErrorContains(t, err, "pid 4711")
	require.NotErrorIs(t, err, daemon.ErrNotRunning, "starting another would not help")
}

func TestSecondDaemonIsRefused(t *testing.T) {
	p := place(t)
	_, end := serve(t, p, echoing)
	_, err := daemon.Listen(p)
	var running *daemon.RunningError
	require.ErrorAs(t, err, &running)
	require.Equal(t, os.Getpid(), running.PID)

	inode := stat(t, p.Lock)
	end()
	l, err := daemon.Listen(p)
	require.NoError(t, err)
	require.True(t, os.SameFile(inode, stat(t, p.Lock)), "the lock file must never change")
	require.NoError(t, l.Close())
	require.NoFileExists(t, p.Socket)
}

// A program that cleans up /tmp may remove the lock of a running daemon.
func TestSecondDaemonIsRefusedWithoutTheFirstOnesLock(t *testing.T) {
	p, elsewhere := place(t), place(t)
	serve(t, p, echoing)
	require.NoError(t, os.Remove(p.Lock))
	_, err := daemon.Listen(p)
	var running *daemon.RunningError
	require.ErrorAs(t, err, &running)
	require.Equal(t, os.Getpid(), running.PID)

	require.NoError(t, os.Remove(p.Lock))
	other, _ := serve(t, elsewhere, echoing)
	require.ErrorAs(t, other.AddEndpoint(p), &running)

	c, err := daemon.Dial(context30s(t), p, daemon.KindMCP)
	require.NoError(t, err, "the first daemon must still be found")
	c.Close()
}

func TestFreshenedFilesAreNotOld(t *testing.T) {
	p := place(t)
	l, _ := serve(t, p, echoing)
	require.NoError(t, os.WriteFile(p.Log, []byte("log\n"), 0o600))
	old := time.Now().Add(-30 * 24 * time.Hour)
	for _, path := range []string{p.Socket, p.Lock, p.Log} {
		require.NoError(t, os.Chtimes(path, old, old))
	}
	l.TouchFiles()
	for _, path := range []string{p.Socket, p.Lock, p.Log} {
		require.WithinDuration(t, time.Now(), stat(t, path).ModTime(), time.Hour, path)
	}
}

func TestASocketThatSomebodyRemovesIsThereAgain(t *testing.T) {
	p := place(t)
	l, _ := serve(t, p, echoing)
	first, err := daemon.Dial(context30s(t), p, daemon.KindMCP)
	require.NoError(t, err)
	defer first.Close()
	require.NoError(t, os.Remove(p.Socket))
	l.TouchFiles()
	c, err := daemon.Dial(context30s(t), p, daemon.KindMCP)
	require.NoError(t, err)
	c.Close()
	require.Equal(t, os.FileMode(0o600), stat(t, p.Socket).Mode().Perm())
	l.TouchFiles()
	_, err = first.Write([]byte("still\n"))
	require.NoError(t, err)
	line, err := bufio.NewReader(first).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "still\n", line, "existing connections stay")
}

func TestADaemonThatEndsLeavesTheSocketOfTheNextOne(t *testing.T) {
	p := place(t)
	old, err := daemon.Listen(p)
	require.NoError(t, err)
	for _, path := range []string{p.Lock, p.Socket} { // as a cleanup of the folder does
		require.NoError(t, os.Remove(path))
	}
	serve(t, p, echoing)
	old.TouchFiles()
	require.NoError(t, old.Close())
	c, err := daemon.Dial(context30s(t), p, daemon.KindMCP)
	require.NoError(t, err)
	c.Close()
}

func stat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	fi, err := os.Stat(path)
	require.NoError(t, err)
	return fi
}

// A daemon that stops its servers takes no connections but still has the lock.
func TestNextDaemonWaitsForTheLastToStop(t *testing.T) {
	p := place(t)
	old, err := daemon.Listen(p)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.NoError(t, old.Serve(ctx, echoing))
	require.ErrorIs(t, errOf(daemon.Dial(context30s(t), p, daemon.KindMCP)), daemon.ErrNotRunning)

	got := make(chan error, 1)
	closing := make(chan struct{})
	go func() {
		next, err := daemon.Listen(p)
		if err == nil {
			select {
			case <-closing:
			default:
				err = errors.New("two daemons at once")
			}
			err = errors.Join(err, next.Close())
		}
		got <- err
	}()
	// Waiting is not visible from outside. The order of the locks is.
	close(closing)
	require.NoError(t, old.Close())
	require.NoError(t, <-got)
}

func errOf(_ net.Conn, err error) error { return err }

func TestLinger(t *testing.T) {
	brief := func(l *daemon.Listener) { l.SetLinger(20*time.Millisecond, nil) }
	ended := func(t *testing.T, l *daemon.Listener) {
		t.Helper()
		select {
		case <-l.Done():
		case <-time.After(30 * time.Second):
			t.Fatal("the daemon lingers forever")
		}
	}
	t.Run("exits without connections", func(t *testing.T) {
		p := place(t)
		l, _ := serve(t, p, echoing, brief)
		ended(t, l)
		require.NoFileExists(t, p.Socket)
	})
	t.Run("exits after the last session, regardless of control requests", func(t *testing.T) {
		p := place(t)
		l, _ := serve(t, p, echoing, brief)
		one, err := daemon.Dial(context30s(t), p, daemon.KindMCP)
		require.NoError(t, err)
		two, err := daemon.Dial(context30s(t), p, daemon.KindMCP)
		require.NoError(t, err)
		require.NoError(t, one.Close())
		// Much longer than the daemon lingers.
		for range 10 {
			require.NoError(t, daemon.Control(context30s(t), p, "status", nil, nil))
			select {
			case <-l.Done():
				t.Fatal("the daemon exited during a session")
			case <-time.After(10 * time.Millisecond):
			}
		}
		require.NoError(t, two.Close())
		ended(t, l)
		_, err = daemon.Dial(context30s(t), p, daemon.KindMCP)
		require.ErrorIs(t, err, daemon.ErrNotRunning)
	})
	t.Run("not asked for", func(t *testing.T) {
		p := place(t)
		l, _ := serve(t, p, echoing)
		c, err := daemon.Dial(context30s(t), p, daemon.KindMCP)
		require.NoError(t, err)
		require.NoError(t, c.Close())
		require.Eventually(t, func() bool { return l.Connections() == 0 }, 30*time.Second, time.Millisecond)
		require.NoError(t, daemon.Control(context30s(t), p, "status", nil, nil))
	})
}

// A client that connects during the shutdown is asked to start the next daemon.
func TestConnectionTakenWhileEndingIsToldSo(t *testing.T) {
	p := place(t)
	_, end := serve(t, p, echoing)
	late := raw(t, p)
	// The daemon accepts connections in order.
	require.NoError(t, daemon.Control(context30s(t), p, "status", nil, nil))
	ended := make(chan struct{})
	go func() { defer close(ended); end() }()
	require.Eventually(t, func() bool {
		_, err := os.Stat(p.Socket)
		return errors.Is(err, os.ErrNotExist)
	}, 30*time.Second, time.Millisecond)
	_, err := io.WriteString(late, `{"goblin":1,"kind":"mcp","version":"v1"}`+"\n")
	require.NoError(t, err)
	require.Contains(t, line(t, late), `"ending":true`)
	<-ended
}

func TestServeWaitsForHandlersAndClosesTheStubborn(t *testing.T) {
	p := place(t)
	h := echoing
	h.MCP = func(_ context.Context, _ net.Conn, r io.Reader, _ daemon.Client) { _, _ = io.Copy(io.Discard, r) } // ignores ctx
	_, end := serve(t, p, h, func(l *daemon.Listener) { l.SetHandlers(50 * time.Millisecond) })
	c, err := daemon.Dial(context30s(t), p, daemon.KindMCP)
	require.NoError(t, err)
	defer c.Close()
	end()
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err)
}

func TestControl(t *testing.T) {
	p := place(t)
	entered, cancelled := make(chan struct{}), make(chan struct{})
	serve(t, p, daemon.Handlers{Control: func(ctx context.Context, op string, args json.RawMessage) (any, error) {
		switch op {
		case "echo":
			return args, nil
		case "fail":
			return nil, errors.New(`no server "x"`)
		case "odd":
			return make(chan int), nil
		}
		close(entered)
		<-ctx.Done()
		close(cancelled)
		return nil, ctx.Err()
	}})
	var out []string
	require.NoError(t, daemon.Control(context30s(t), p, "echo", []string{"a", "b"}, &out))
	require.Equal(t, []string{"a", "b"}, out)
	require.NoError(t, daemon.Control(context30s(t), p, "echo", 1, nil))

	var failed *daemon.OperationError
	require.ErrorAs(t, daemon.Control(context30s(t), p, "fail", nil, nil), &failed)
	require.Equal(t, `no server "x"`, failed.Message)
	require.Error(t, daemon.Control(context30s(t), p, "odd", nil, nil))
	require.Error(t, daemon.Control(context30s(t), p, "echo", 1, &out), "an answer of another type")
	require.Error(t, daemon.Control(context30s(t), p, "", nil, nil), "unknown operation")

	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-entered; cancel() }()
	require.ErrorIs(t, daemon.Control(ctx, p, "wait", nil, nil), context.Canceled)
	<-cancelled // the daemon cancelled the operation too

	require.ErrorIs(t, daemon.Control(context30s(t), place(t), "echo", nil, nil), daemon.ErrNotRunning)
}
