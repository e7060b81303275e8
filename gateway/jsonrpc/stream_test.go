package jsonrpc_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/jsonrpc"
)

func TestReaderFramesByLine(t *testing.T) {
	t.Parallel()
	big := `{"big":"` + strings.Repeat("x", 200<<10) + `"}`
	r := jsonrpc.NewReader(strings.NewReader("{\"a\":1}\r\n\n  \n"+big+"\nlast"), 1<<20)
	for _, want := range []string{`{"a":1}`, big, "last"} {
		got, err := r.Read()
		require.NoError(t, err)
		require.Equal(t, want, string(got))
		require.Equal(t, want == "last", r.Truncated(), "%.9s", want)
	}
	_, err := r.Read()
	require.ErrorIs(t, err, io.EOF)
}

func TestALineMayBeAsLongAsTheLimitWithItsBreak(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1000, 200 << 10} { // within one buffer and across several
		longest := strings.Repeat("x", limit-1)
		r := jsonrpc.NewReader(strings.NewReader(longest+"\n"+longest+"x\n{}\n"), int64(limit))
		got, err := r.Read()
		require.NoError(t, err)
		require.True(t, longest == string(got))
		_, err = r.Read()
		var tooLong *jsonrpc.TooLongError
		require.ErrorAs(t, err, &tooLong)
		got, err = r.Read()
		require.NoError(t, err)
		require.Equal(t, "{}", string(got))
	}
}

// reads is a function that implements io.Reader.
type reads func(p []byte) (int, error)

func (f reads) Read(p []byte) (int, error) { return f(p) }

func TestReaderDoesNotTakeInWhatIsTooLongAlready(t *testing.T) {
	t.Parallel()
	taken := 0
	r := jsonrpc.NewReader(reads(func(p []byte) (int, error) { // an endless line
		taken += copy(p, bytes.Repeat([]byte("x"), len(p)))
		if taken > 1<<20 {
			return 0, io.EOF
		}
		return len(p), nil
	}), 100<<10)
	_, err := r.Read()
	var tooLong *jsonrpc.TooLongError
	require.ErrorAs(t, err, &tooLong)
	require.Less(t, taken, 300<<10)
}

func TestAPeerThatGivesNothingAndNoErrorIsNotReadForEver(t *testing.T) {
	t.Parallel()
	_, err := jsonrpc.NewReader(reads(func([]byte) (int, error) { return 0, nil }), 1000).Read()
	require.ErrorIs(t, err, io.ErrNoProgress)
}

func TestReaderReadsFramesOfEverySizeFromEveryPiece(t *testing.T) {
	t.Parallel()
	const chunk = 64 << 10 // bytes per read
	var frames []string
	var text strings.Builder
	for i, size := range []int{1, chunk - 2, chunk - 1, chunk, chunk + 1, 5, 2*chunk - 1, 2 * chunk, 3*chunk + 7, 2} {
		f := strings.Repeat(string(rune('a'+i)), size)
		frames = append(frames, f)
		text.WriteString(f + "\n")
	}
	for name, pieces := range map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader,
		"halves": iotest.HalfReader, "data with its error": iotest.DataErrReader,
	} {
		t.Run(name, func(t *testing.T) {
			r := jsonrpc.NewReader(pieces(strings.NewReader(text.String())), 4*chunk)
			var got [][]byte
			for range frames {
				frame, err := r.Read()
				require.NoError(t, err)
				got = append(got, frame)
			}
			_, err := r.Read()
			require.ErrorIs(t, err, io.EOF)
			for i, want := range frames { // compared at the end: each has its own memory
				require.True(t, want == string(got[i]), "frame %d of %d bytes", i, len(want))
			}
		})
	}
}

func TestReaderGoesOnAfterAFrameThatIsTooLong(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"within one buffer": 2000, "over several buffers": 300 << 10} {
		t.Run(name, func(t *testing.T) {
			long := `{"jsonrpc":"2.0","id":42,"result":"` + strings.Repeat("x", size) + `"}`
			r := jsonrpc.NewReader(strings.NewReader(long+"\n{}\n"), 1000)
			_, err := r.Read()
			var tooLong *jsonrpc.TooLongError
			require.True(t, errors.As(err, &tooLong), "%v", err)
			require.Equal(t, "42", string(tooLong.ID()))
			require.True(t, tooLong.IsResponse())
			next, err := r.Read()
			require.NoError(t, err)
			require.Equal(t, "{}", string(next))
		})
	}
}

// gate is a writer that blocks until it is opened.
type gate struct {
	open chan struct{}
	mu   sync.Mutex
	got  bytes.Buffer
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.got.Write(p)
}

func TestSendQueueKeepsOrderAndMergesWhatWaits(t *testing.T) {
	t.Parallel()
	g := &gate{open: make(chan struct{})}
	o := jsonrpc.NewStream(g)
	done := make(chan error, 1)
	go func() { done <- o.Run() }()
	o.Send([]byte("1\n"))
	require.Eventually(t, func() bool { return o.StalledFor() > 0 }, 30*time.Second, time.Millisecond, "the first write is in progress")
	o.SendLow("", "k", []byte("old\n"))
	o.SendLow("", "other", []byte("o\n"))
	o.SendLow("", "k", []byte("newest\n"))
	o.Send([]byte("2\n"))
	o.SendLow("", "k", []byte("next\n"))
	require.EqualValues(t, len("1\n")+len("newest\n")+len("o\n")+len("2\n")+len("next\n"), o.UnsentBytes())
	o.Finish()
	o.Send([]byte("too late\n"))
	close(g.open)
	require.NoError(t, <-done)
	require.Equal(t, "1\nnewest\no\n2\nnext\n", g.got.String())
	require.Zero(t, o.UnsentBytes())
}

func TestSendQueueNeverBlocksItsSendersAndLosesNothing(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	o := jsonrpc.NewStream(w) // a pipe in the poller: frames are tried inline first
	done := make(chan error, 1)
	go func() { done <- o.Run(); w.Close() }()

	const senders, each = 8, 500
	pad := strings.Repeat("x", 300)
	var all sync.WaitGroup
	for s := range senders {
		all.Go(func() {
			for i := range each {
				o.Send(fmt.Appendf(nil, "%d %d %s\n", s, i, pad))
			}
		})
	}
	all.Wait() // without a reader: 1.2 MB exceed a pipe
	require.Positive(t, o.UnsentBytes())
	o.Finish()

	next := [senders]int{}
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, <-done)
	for line := range strings.Lines(string(text)) {
		var s, i int
		var rest string
		_, err := fmt.Sscanf(line, "%d %d %s", &s, &i, &rest)
		require.NoError(t, err, line)
		require.Equal(t, next[s], i, "order of one sender")
		require.Equal(t, pad, rest, "frames stay complete")
		next[s]++
	}
	for s := range senders {
		require.Equal(t, each, next[s])
	}
}

func TestSendQueueWritesGatheredFramesTogetherAndInOrder(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	o := jsonrpc.NewStream(w)
	o.Send([]byte("at once\n"))
	require.Zero(t, o.UnsentBytes())
	o.SendBuffered([]byte("gathered\n"))
	o.SendBuffered([]byte("with it\n"))
	o.Send([]byte("behind them\n"))
	require.EqualValues(t, len("gathered\nwith it\nbehind them\n"), o.UnsentBytes(), "they wait for Run")

	o.Finish()
	require.NoError(t, o.Run())
	require.NoError(t, w.Close())
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "at once\ngathered\nwith it\nbehind them\n", string(text))
}

func TestSendQueueEndsWithItsSinksError(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	r.Close()
	defer w.Close()
	o := jsonrpc.NewStream(w)
	o.Send([]byte("x\n"))
	require.Error(t, o.Run())
	o.Send([]byte("discarded\n"))
	require.Zero(t, o.UnsentBytes())

	closed := jsonrpc.NewStream(io.Discard)
	closed.Close(jsonrpc.ErrClosed)
	require.ErrorIs(t, closed.Run(), jsonrpc.ErrClosed)
}

func TestPendingEndsEachCallOnce(t *testing.T) {
	t.Parallel()
	var p jsonrpc.Pending[string]
	a, err := p.Add("a")
	require.NoError(t, err)
	b, err := p.Add("b")
	require.NoError(t, err)
	require.NotEqual(t, a.ID, b.ID)
	info, ok := p.Lookup(b.ID)
	require.True(t, ok)
	require.Equal(t, "b", info)

	id := fmt.Appendf(nil, "%d", a.ID)
	require.True(t, p.Resolve(id, jsonrpc.Reply{Result: []byte("1")}, nil))
	require.False(t, p.Resolve(id, jsonrpc.Reply{}, nil), "a doubled answer")
	require.False(t, p.Resolve([]byte(`"1"`), jsonrpc.Reply{}, nil), "an answer without a request")
	got := <-a.Done()
	reply, err := got.Take()
	require.NoError(t, err)
	require.Equal(t, "1", string(reply.Result))

	p.Close(jsonrpc.ErrClosed)
	_, err = (<-b.Done()).Take()
	require.ErrorIs(t, err, jsonrpc.ErrClosed)
	p.Close(io.ErrUnexpectedEOF)
	_, err = p.Add("c")
	require.ErrorIs(t, err, jsonrpc.ErrClosed, "the first reason counts")
	require.Zero(t, p.Len())
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("{}\n\n{\"a\":1}\r\nlast"), int64(10))
	f.Add([]byte("{\"id\":1,\"x\":\"yyyyyyyyyyyyyyy\"}\n{}"), int64(5))
	f.Fuzz(func(t *testing.T, src []byte, limit int64) {
		if limit < 1 || limit > 1<<16 {
			return
		}
		r := jsonrpc.NewReader(bytes.NewReader(src), limit)
		for {
			frame, err := r.Read()
			var tooLong *jsonrpc.TooLongError
			switch {
			case errors.As(err, &tooLong):
				continue
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				t.Fatal(err)
			case len(frame) == 0 || int64(len(frame)) > limit || bytes.IndexByte(frame, '\n') >= 0:
				t.Fatalf("frame %q under limit %d", frame, limit)
			}
		}
	})
}

// A lost frame is identified by its own members, not by nested ones.
func TestTooLongFramesAreKnownByTheirMembers(t *testing.T) {
	t.Parallel()
	for start, response := range map[string]bool{
		`{"jsonrpc":"2.0","id":1,"method":"x","params":{"result":"`:       false,
		`{"jsonrpc":"2.0","id":1,"params":{"x":"`:                         false,
		`{"jsonrpc":"2.0","id":1,"result":{"action":{"method":"x"},"x":"`: true,
		`{"id":1,"error":{"data":"method","x":"`:                          true,
	} {
		frame := start + strings.Repeat("x", 10<<10) + `"}}`
		_, err := jsonrpc.NewReader(strings.NewReader(frame), 5<<10).Read()
		var long *jsonrpc.TooLongError
		require.ErrorAs(t, err, &long)
		require.Equal(t, response, long.IsResponse(), start)
		require.Equal(t, "1", string(long.ID()))
	}
}
