package bridge_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"goblin/gateway/bridge"
	"goblin/gateway/e2e"
)

// rig is a bridge between a client and daemons that the test simulates.
type rig struct {
	t       testing.TB
	in      io.WriteCloser // the client's input
	out     *bufio.Reader
	outFile interface {
		io.Closer
		SetReadDeadline(t time.Time) error
	}
	daemons chan net.Conn // the daemons' ends of the bridge's connections
	down    atomic.Bool   // connections fail
	cancel  context.CancelFunc
	done    chan error
}

func newRig(t testing.TB, set ...func(*bridge.Options)) *rig {
	ln, err := net.Listen("unix", filepath.Join(e2e.ShortDir(t), "s"))
	require.NoError(t, err)
	inR, inW, err := os.Pipe()
	require.NoError(t, err)
	outR, outW, err := os.Pipe()
	require.NoError(t, err)
	r := &rig{t: t, in: inW, out: bufio.NewReaderSize(outR, 1<<20), outFile: outR}
	t.Cleanup(func() {
		inR.Close()
		ln.Close()
	})
	r.run(inR, outW, func() (near, far net.Conn, err error) {
		if near, err = net.Dial("unix", ln.Addr().String()); err == nil {
			far, err = ln.Accept()
		}
		return near, far, err
	}, set...)
	return r
}

// newStillRig returns a rig for synctest. It uses pipes, because a bubble cannot wait for
// files and sockets.
func newStillRig(t testing.TB, set ...func(*bridge.Options)) *rig {
	inR, inW := net.Pipe()
	outR, outW := net.Pipe()
	r := &rig{t: t, in: inW, out: bufio.NewReaderSize(outR, 1<<20), outFile: outR}
	r.run(inR, outW, func() (near, far net.Conn, err error) {
		near, far = net.Pipe()
		return near, far, nil
	}, set...)
	return r
}

// run starts the bridge, which calls dial to connect.
func (r *rig) run(in io.Reader, out io.WriteCloser, dial func() (near, far net.Conn, err error), set ...func(*bridge.Options)) {
	ctx, cancel := context.WithCancel(context.Background())
	r.daemons, r.cancel, r.done = make(chan net.Conn, 16), cancel, make(chan error, 1)
	o := bridge.Options{In: in, Out: out, Connect: func(context.Context) (net.Conn, error) {
		if r.down.Load() {
			return nil, errors.New(`start the daemon: exec "goblin"`)
		}
		near, far, err := dial()
		if err == nil {
			r.daemons <- far
		}
		return near, err
	}}
	for _, s := range set {
		s(&o)
	}
	go func() {
		err := bridge.Run(ctx, o)
		out.Close()
		r.done <- err
	}()
	r.t.Cleanup(func() {
		r.in.Close()
		r.outFile.Close()
		cancel()
		for ended := false; !ended; { // until then it may connect again
			select {
			case c := <-r.daemons:
				c.Close()
			case <-r.done:
				ended = true
			}
		}
	})
}

// send writes lines to the bridge as the client.
func (r *rig) send(lines ...string) {
	r.t.Helper()
	_, err := io.WriteString(r.in, strings.Join(lines, "\n")+"\n")
	require.NoError(r.t, err)
}

// expect reads lines from the bridge as the client.
func (r *rig) expect(lines ...string) {
	r.t.Helper()
	for _, want := range lines {
		require.Equal(r.t, want, r.read())
	}
}

func (r *rig) read() string {
	r.t.Helper()
	require.NoError(r.t, r.outFile.SetReadDeadline(time.Now().Add(time.Minute)))
	text, err := r.out.ReadString('\n')
	require.NoError(r.t, err)
	return strings.TrimSuffix(text, "\n")
}

func (r *rig) end() error {
	r.t.Helper()
	select {
	case err := <-r.done:
		r.done <- err
		return err
	case <-time.After(30 * time.Second):
		r.t.Fatal("the bridge does not return")
		return nil
	}
}

// far is a daemon's end of the bridge's connection.
type far struct {
	t testing.TB
	c net.Conn
	r *bufio.Reader
}

func (r *rig) daemon() *far {
	r.t.Helper()
	select {
	case c := <-r.daemons:
		r.t.Cleanup(func() { c.Close() })
		require.NoError(r.t, c.SetDeadline(time.Now().Add(30*time.Second)))
		return &far{r.t, c, bufio.NewReaderSize(c, 1<<20)}
	case <-time.After(30 * time.Second):
		r.t.Fatal("the bridge does not connect")
		return nil
	}
}

func (f *far) expect(lines ...string) {
	f.t.Helper()
	for _, want := range lines {
		require.Equal(f.t, want, f.read())
	}
}

func (f *far) read() string {
	f.t.Helper()
	text, err := f.r.ReadString('\n')
	require.NoError(f.t, err)
	return strings.TrimSuffix(text, "\n")
}

func (f *far) send(lines ...string) {
	f.t.Helper()
	_, err := io.WriteString(f.c, strings.Join(lines, "\n")+"\n")
	require.NoError(f.t, err)
}

// repeated reads a request that the bridge repeats for the client, and answers it. tail
// is the end of the answer.
func (f *far) repeated(method, params, tail string) {
	f.t.Helper()
	text := f.read()
	_, rest, ok := strings.Cut(text, `,"method":`)
	require.True(f.t, ok, text)
	require.Equal(f.t, fmt.Sprintf(`"%s","params":%s}`, method, params), rest)
	f.answer(text, tail)
}

// answer answers a request of the bridge. tail is the end of the answer.
func (f *far) answer(request, tail string) {
	f.t.Helper()
	head, _, _ := strings.Cut(request, `,"method":`)
	require.Contains(f.t, head, `"id":"goblin-bridge-`)
	f.send(head + "," + tail + "}")
}

const (
	initReq  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"x":1.50}}}`
	initPar  = `{"protocolVersion":"2025-11-25","capabilities":{"x":1.50}}`
	initAns  = `{"jsonrpc":"2.0","id":0,"result":{"serverInfo":{"name":"goblin"}}}`
	initNote = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

var changed = []string{
	`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
	`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`,
	`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`,
}

func (r *rig) open() *far {
	r.t.Helper()
	h := r.daemon()
	r.send(initReq)
	h.expect(initReq)
	h.send(initAns)
	r.expect(initAns)
	r.send(initNote)
	h.expect(initNote)
	return h
}

// reopen connects the next daemon.
func (r *rig) reopen() *far {
	r.t.Helper()
	h := r.daemon()
	h.repeated("initialize", initPar, `"result":{}`)
	h.expect(initNote)
	r.expect(changed...)
	return h
}

func request(id, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"%s","params":%s}`, id, method, params)
}

func result(id, value string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, value)
}

func BenchmarkBridge(b *testing.B) {
	ping, pong := request("1", "tools/call", `{"name":"x","arguments":{"text":"`+strings.Repeat("y", 100)+`"}}`)+"\n", result("1", `{"content":[]}`)+"\n"
	answer := func(c net.Conn, r *bufio.Reader) {
		for {
			if _, err := r.ReadSlice('\n'); err != nil {
				return
			}
			if _, err := io.WriteString(c, pong); err != nil {
				return
			}
		}
	}
	b.Run("direct", func(b *testing.B) {
		dir := b.TempDir()
		ln, err := net.Listen("unix", filepath.Join(dir, "s"))
		require.NoError(b, err)
		defer ln.Close()
		c, err := net.Dial("unix", ln.Addr().String())
		require.NoError(b, err)
		defer c.Close()
		peer, err := ln.Accept()
		require.NoError(b, err)
		defer peer.Close()
		go answer(peer, bufio.NewReader(peer))
		r := bufio.NewReader(c)
		for b.Loop() {
			_, _ = io.WriteString(c, ping)
			_, _ = r.ReadSlice('\n')
		}
	})
	b.Run("bridged", func(b *testing.B) {
		r := newRig(b)
		h := r.daemon()
		go answer(h.c, h.r)
		_ = h.c.SetDeadline(time.Time{})
		b.ReportAllocs()
		for b.Loop() {
			_, _ = io.WriteString(r.in, ping)
			_, _ = r.out.ReadSlice('\n')
		}
		r.in.Close()
	})
}

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // parallel tests wait
	goleak.VerifyTestMain(m)
}
