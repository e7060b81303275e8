package remoteui_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/remoteui"
)

// peer is a relay that the test simulates.
type peer struct {
	t *testing.T
	c net.Conn
}

func (p peer) send(kind byte, payload string) {
	p.t.Helper()
	_, err := p.c.Write(remoteui.AppendFrame(nil, kind, []byte(payload)))
	require.NoError(p.t, err)
}

func (p peer) next() (kind byte, payload string) {
	p.t.Helper()
	k, b, err := remoteui.ReadFrame(p.c, nil)
	require.NoError(p.t, err)
	return k, string(b)
}

// accepted returns a Conn whose relay is a peer.
func accepted(t *testing.T, hello string) (*remoteui.Conn, peer) {
	t.Helper()
	a, b := net.Pipe()
	p := peer{t, b}
	go p.c.Write(remoteui.AppendFrame(nil, 'h', []byte(hello)))
	s, err := remoteui.Accept(a, a)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close(); b.Close() })
	return s, p
}

func TestHelloTellsTheTerminal(t *testing.T) {
	s, _ := accepted(t, `{"width":120,"height":-4,"env":{"TERM":"xterm","LD_PRELOAD":"x","LANG":"C.UTF-8","LC_ALL":"C\u0000x"},"theme":"light","ascii":true,"dark":false}`)
	w, h := s.Size()
	require.Equal(t, []int{120, 1}, []int{w, h})
	require.Equal(t, []string{"LANG=C.UTF-8", "TERM=xterm"}, s.Env())
	require.Equal(t, "xterm", s.Getenv("TERM"))
	require.Empty(t, s.Getenv("LD_PRELOAD"), "only required variables are accepted")
	require.Equal(t, "light", s.Theme())
	require.True(t, s.ASCII())
	dark, known := s.Dark()
	require.Equal(t, []bool{false, true}, []bool{dark, known})
}

func TestAcceptUsesWhatWasReadAhead(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	ahead := remoteui.AppendFrame(remoteui.AppendFrame(nil, 'h', []byte(`{"width":7,"height":8}`)), 'i', []byte("k"))
	s, err := remoteui.Accept(a, io.MultiReader(strings.NewReader(string(ahead)), a))
	require.NoError(t, err)
	defer s.Close()
	buf := make([]byte, 10)
	n, err := s.Read(buf)
	require.NoError(t, err)
	require.Equal(t, "k", string(buf[:n]))
	_, known := s.Dark()
	require.False(t, known)
}

func TestAcceptRefusesWhatIsNoHello(t *testing.T) {
	for name, first := range map[string]string{
		"another frame": string(remoteui.AppendFrame(nil, 'i', []byte("x"))),
		"no JSON":       string(remoteui.AppendFrame(nil, 'h', []byte("x"))),
		"too large":     "h" + string(binary.BigEndian.AppendUint32(nil, remoteui.MaxControl+1)),
		"cut off":       "h\x00",
	} {
		t.Run(name, func(t *testing.T) {
			a, b := net.Pipe()
			go func() { b.Write([]byte(first)); b.Close() }()
			_, err := remoteui.Accept(a, a)
			require.Error(t, err)
			_, err = a.Write(nil)
			require.ErrorIs(t, err, io.ErrClosedPipe, "the connection is closed")
		})
	}
}

func TestKeysKeepTheirCuts(t *testing.T) {
	s, p := accepted(t, `{}`)
	p.send('i', "\x1b")
	p.send('i', "qw")
	p.send('s', `{"width":3,"height":2}`)
	<-s.Resized() // all earlier data is queued
	buf := make([]byte, 10)
	n, _ := s.Read(buf)
	require.Equal(t, "\x1b", string(buf[:n]))
	n, _ = s.Read(buf[:1])
	require.Equal(t, "q", string(buf[:n]))
	n, _ = s.Read(buf)
	require.Equal(t, "w", string(buf[:n]))
	p.send('i', "last")
	p.c.Close()
	rest, err := io.ReadAll(s)
	require.NoError(t, err)
	require.Equal(t, "last", string(rest))
	<-s.Done()
	_, err = s.Write([]byte("x"))
	require.ErrorIs(t, err, remoteui.ErrDisconnected)
}

func TestSizesAndBackgroundsMerge(t *testing.T) {
	s, p := accepted(t, `{}`)
	for range 3 {
		p.send('s', `{"width":300,"height":50}`)
		p.send('b', "\x01")
	}
	p.send('s', `{"width":5000,"height":0}`)
	p.send('b', "\x00")
	p.send('i', "x")
	_, err := s.Read(make([]byte, 1))
	require.NoError(t, err)
	<-s.Resized()
	<-s.Backgrounds()
	require.Empty(t, s.Resized())
	require.Empty(t, s.Backgrounds())
	w, h := s.Size()
	require.Equal(t, []int{1000, 1}, []int{w, h})
	p.send('s', `{"width":1000,"height":1000}`)
	<-s.Resized()
	w, h = s.Size()
	require.Equal(t, []int{1000, 250}, []int{w, h}, "the size is limited")
	dark, known := s.Dark()
	require.Equal(t, []bool{false, true}, []bool{dark, known})
}

func TestBadFramesEndThatScreen(t *testing.T) {
	for name, frame := range map[string]struct {
		kind    byte
		payload string
	}{
		"unknown": {'?', ""}, "a second hello": {'h', "{}"}, "size": {'s', "x"}, "background": {'b', ""}, "answer": {'d', "x"},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := accepted(t, `{}`)
			p.send(frame.kind, frame.payload)
			<-s.Done()
		})
	}
}

func TestUnreadKeysWaitInBounds(t *testing.T) {
	t.Parallel()
	s, p := accepted(t, `{}`)
	piece := strings.Repeat("k", 4096)
	sent := 0
	for {
		patience := 30 * time.Second // slow writes succeed
		if sent >= remoteui.MaxQueued {
			patience = 200 * time.Millisecond
		}
		require.NoError(t, p.c.SetWriteDeadline(time.Now().Add(patience)))
		if _, err := p.c.Write(remoteui.AppendFrame(nil, 'i', []byte(piece))); err != nil {
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			break
		}
		sent += len(piece)
		require.LessOrEqual(t, sent, remoteui.MaxQueued+3*len(piece))
	}
	require.GreaterOrEqual(t, sent, remoteui.MaxQueued)
	require.NoError(t, s.Close(), "Close does not wait for a reader")
}

func TestOutputIsOneFramePerWrite(t *testing.T) {
	t.Parallel()
	s, p := accepted(t, `{}`)
	big := strings.Repeat("x", remoteui.MaxOutput+1)
	go func() {
		for _, out := range []string{"one", "", big} {
			if n, err := s.Write([]byte(out)); n != len(out) || err != nil {
				t.Errorf("Write returned %d, %v", n, err)
			}
		}
		s.Exit("told to")
	}()
	for _, want := range []string{"one", "", big[1:], "x"} {
		kind, payload := p.next()
		require.Equal(t, byte('o'), kind)
		require.True(t, want == payload, "%d bytes for %d", len(payload), len(want))
	}
	kind, payload := p.next()
	require.Equal(t, "x told to", string(kind)+" "+payload)
	_, _, err := remoteui.ReadFrame(p.c, nil)
	require.ErrorIs(t, err, io.EOF)
}

func TestARelayThatDoesNotReadIsGivenUp(t *testing.T) {
	s, _ := accepted(t, `{}`)
	s.SetWriteLimit(20 * time.Millisecond)
	_, err := s.Write([]byte("nobody reads this"))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	<-s.Done()
	_, err = s.Write([]byte("x"))
	require.ErrorIs(t, err, remoteui.ErrDisconnected)
}

func TestExitDoesNotWaitForTheWriteLimit(t *testing.T) {
	t.Parallel()
	s, _ := accepted(t, `{}`) // no reader, and the limit is 15 s
	wrote := make(chan error)
	go func() {
		_, err := s.Write([]byte("stuck"))
		wrote <- err
	}()
	require.Error(t, s.Exit(""))
	require.Error(t, <-wrote)
}

// meddling is a connection that interrupts its first write, or the wait before it.
type meddling struct {
	net.Conn
	began  atomic.Bool
	meddle func()
}

func (m *meddling) SetWriteDeadline(at time.Time) error {
	if !m.began.Swap(true) {
		m.meddle()
	}
	return m.Conn.SetWriteDeadline(at)
}

func TestAWriteThatBeginsDuringExitDoesNotHoldItUp(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	t.Cleanup(func() { b.Close() })
	m := &meddling{Conn: a}
	go b.Write(remoteui.AppendFrame(nil, 'h', []byte(`{}`)))
	s, err := remoteui.Accept(m, a)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	s.SetWriteLimit(time.Hour)
	exited := make(chan error, 1)
	m.meddle = func() {
		go func() { exited <- s.Exit("") }()
		<-time.After(100 * time.Millisecond) // it may have begun or wait
	}
	_, err = s.Write([]byte("nobody reads this"))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Error(t, <-exited)
}

func TestOutputIsDroppedWhileTheRelayIsStopped(t *testing.T) {
	s, p := accepted(t, `{}`)
	p.send('p', "")
	p.send('i', "x")
	_, err := s.Read(make([]byte, 1))
	require.NoError(t, err)
	n, err := s.Write([]byte("dropped")) // no reader, so it would wait
	require.NoError(t, err)
	require.Equal(t, 7, n)
	p.send('s', `{"width":1,"height":1}`)
	<-s.Resized()
	go s.Write([]byte("shown"))
	_, payload := p.next()
	require.Equal(t, "shown", payload)
}

func TestOutputUnderWayWaitsForAStoppedRelay(t *testing.T) {
	t.Parallel()
	s, p := accepted(t, `{}`)
	const limit = time.Second
	s.SetWriteLimit(limit)
	wrote := make(chan error)
	go func() {
		_, err := s.Write([]byte("all of it"))
		wrote <- err
	}()
	head := make([]byte, 3)
	_, err := io.ReadFull(p.c, head)
	require.NoError(t, err)
	p.send('p', "")
	<-time.After(2 * limit) // longer than the limit of a write
	kind, payload, err := remoteui.ReadFrame(io.MultiReader(strings.NewReader(string(head)), p.c), nil)
	require.NoError(t, err)
	require.Equal(t, "o all of it", string(kind)+" "+string(payload))
	require.NoError(t, <-wrote)
}

func TestOrdersGetTheirOwnAnswer(t *testing.T) {
	s, p := accepted(t, `{}`)
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error)
	go func() { first <- s.Open(ctx, remoteui.Pager, "a.txt", []byte("hello")) }()
	kind, payload := p.next()
	require.Equal(t, "c \x00\x00\x00\x00\x00\x00\x00\x01hello", string(kind)+" "+payload)
	kind, payload = p.next()
	require.Equal(t, byte('e'), kind)
	var o struct {
		ID         uint64
		Kind, Name string
	}
	require.NoError(t, json.Unmarshal([]byte(payload), &o))
	require.Equal(t, "pager a.txt", o.Kind+" "+o.Name)
	late := o.ID
	cancel()
	require.ErrorIs(t, <-first, context.Canceled)

	type saved struct {
		where string
		err   error
	}
	second := make(chan saved)
	go func() {
		where, err := s.Save(t.Context(), "b.bin", nil)
		second <- saved{where, err}
	}()
	kind, payload = p.next()
	require.Equal(t, byte('w'), kind)
	require.NoError(t, json.Unmarshal([]byte(payload), &o))
	require.NotEqual(t, late, o.ID)
	answer := func(id uint64, path, failure string) {
		b, _ := json.Marshal(map[string]any{"id": id, "path": path, "error": failure})
		p.send('d', string(b))
	}
	answer(late, "", "the late one")
	answer(o.ID, "/x/b.bin", "")
	require.Equal(t, saved{"/x/b.bin", nil}, <-second)

	go func() { first <- s.Open(t.Context(), remoteui.Editor, "c", nil) }()
	p.next()
	p.c.Close()
	require.ErrorIs(t, <-first, remoteui.ErrDisconnected)
	require.ErrorContains(t, s.Open(t.Context(), "shell", "c", nil), `unknown program "shell"`)
}

func TestAnswersThatNobodyWaitsForHoldNothingUp(t *testing.T) {
	s, p := accepted(t, `{}`)
	for range 3 {
		p.send('d', `{"id":7}`)
	}
	p.send('i', "k")
	buf := make([]byte, 10)
	n, err := s.Read(buf)
	require.NoError(t, err)
	require.Equal(t, "k", string(buf[:n]))
}

func TestOrdersAreBounded(t *testing.T) {
	s, _ := accepted(t, `{}`)
	require.ErrorContains(t, s.Browse(t.Context(), strings.Repeat("x", remoteui.MaxPage+1)), "the limit is")
	id := make([]byte, 8)
	require.NoError(t, remoteui.Collect(0, append(id, "x"...)))
	require.ErrorContains(t, remoteui.Collect(remoteui.MaxContent, append(id, "x"...)), "content exceeds")
	require.ErrorContains(t, remoteui.Collect(0, id[:7]), "without an order")
}

func TestConnsThatAreDroppedLeaveNothing(t *testing.T) {
	for i := range 50 {
		s, p := accepted(t, `{}`)
		if i%2 == 0 {
			go s.Write([]byte("half")) // interrupted by the close
			p.c.Read(make([]byte, 3))
		}
		p.c.Close()
		<-s.Done()
		require.NoError(t, s.Close())
		require.NoError(t, s.Close())
	}
}
