package jsonrpc_test

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/jsonrpc"
)

// counted counts the writes to a file.
type counted struct {
	*os.File
	frames [][]byte
}

func (c *counted) WriteFrames(frames [][]byte) error {
	_, err := c.TryWrite(bytes.Join(frames, nil))
	return err
}

func (c *counted) TryWrite(frame []byte) (int, error) {
	c.frames = append(c.frames, bytes.Clone(frame))
	return len(frame), nil
}

func TestAWriteBatchIsOneWrite(t *testing.T) {
	t.Parallel()
	to, other := &counted{}, &counted{}
	o, p := jsonrpc.NewSendQueue(to), jsonrpc.NewSendQueue(other)
	var burst jsonrpc.WriteBatch
	for _, frame := range []string{"a\n", "b\n", "c\n"} {
		burst.Send(o, []byte(frame))
	}
	burst.Send(p, []byte("alone\n"))
	require.Empty(t, to.frames)
	require.EqualValues(t, 6, o.UnsentBytes())
	burst.Flush()
	require.Equal(t, "a\nb\nc\n", string(bytes.Join(to.frames, []byte("|"))))
	require.Equal(t, "alone\n", string(bytes.Join(other.frames, []byte("|"))))
	require.Zero(t, o.UnsentBytes())
	burst.Flush()
	require.Len(t, to.frames, 1)

	big := strings.Repeat("x", 32<<10) + "\n"
	burst.Send(o, []byte(big))
	require.Len(t, to.frames, 2, "large batches do not wait")
	(*jsonrpc.WriteBatch)(nil).Send(o, []byte("at once\n"))
	require.Len(t, to.frames, 3)
	(*jsonrpc.WriteBatch)(nil).Flush()
}

func TestAWriteBatchKeepsTheOrderOfOthersFrames(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	o := jsonrpc.NewStream(w)
	var burst jsonrpc.WriteBatch
	burst.Send(o, []byte("held\n"))
	o.Send([]byte("behind it\n"))
	o.SendLow("", "k", []byte("first\n"))
	burst.Send(o, []byte("held too\n"))
	o.SendLow("", "k", []byte("merged\n"))
	burst.Flush() // Run writes the lanes
	o.Finish()
	require.NoError(t, o.Run())
	require.NoError(t, w.Close())
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "held\nbehind it\nfirst\nheld too\nmerged\n", string(text))
}

func TestAWriteBatchThatDoesNotFitIsWrittenByRun(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	o := jsonrpc.NewStream(w)
	done := make(chan error, 1)
	go func() { done <- o.Run(); w.Close() }()
	var burst jsonrpc.WriteBatch
	var want strings.Builder
	for i := range 2000 { // 400 kB without a reader
		frame := strings.Repeat(string(rune('a'+i%26)), 199) + "\n"
		want.WriteString(frame)
		burst.Send(o, []byte(frame))
	}
	burst.Flush()
	require.Positive(t, o.UnsentBytes())
	o.Finish()
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, <-done)
	require.True(t, want.String() == string(text))
	require.Zero(t, o.UnsentBytes())
}

func TestAWriteBatchToAClosedPeerIsDiscarded(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer w.Close()
	o := jsonrpc.NewStream(w)
	var burst jsonrpc.WriteBatch
	burst.Send(o, []byte("x\n"))
	r.Close()
	burst.Flush()
	require.Error(t, o.Run())
	burst.Send(o, []byte("y\n"))
	burst.Flush()
	require.Zero(t, o.UnsentBytes())
}

func TestReaderKnowsWhenALineHasArrived(t *testing.T) {
	t.Parallel()
	from, to := io.Pipe()
	r := jsonrpc.NewReader(from, 1<<10)
	require.False(t, r.Ready())
	go func() {
		to.Write([]byte("{}\n{}\n{")) //nolint:errcheck // a pipe with a reader
		to.Close()
	}()
	_, err := r.Read()
	require.NoError(t, err)
	require.True(t, r.Ready())
	_, err = r.Read()
	require.NoError(t, err)
	require.False(t, r.Ready(), "the line is incomplete")
}

// Read does not return a blank line. It would wait for the next line.
func TestReaderIsNotReadyForBlankLines(t *testing.T) {
	t.Parallel()
	r := jsonrpc.NewReader(strings.NewReader("{}\n\n \t\r\n\u00a0\n{}\n \u00a0{}\n\u00a0\r\n{"), 1<<10)
	for _, ready := range []bool{true, true, false} {
		_, err := r.Read()
		require.NoError(t, err)
		require.Equal(t, ready, r.Ready())
	}
}

func TestPendingTellsOfCallsThatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	var p jsonrpc.Pending[string]
	type told struct {
		info string
		id   int64
		text string
		err  error
	}
	var got []told
	p.OnDone = func(info string, id int64, reply jsonrpc.Reply, err error) {
		require.Equal(t, 0, countOf(&p, id), "the stream is closed")
		got = append(got, told{info, id, string(reply.Result), err})
	}
	a, err := p.AddAsync("a")
	require.NoError(t, err)
	b, err := p.AddAsync("b")
	require.NoError(t, err)
	c, err := p.AddAsync("c")
	require.NoError(t, err)
	waited, err := p.Add("waited")
	require.NoError(t, err)
	require.Equal(t, 4, p.Len())

	require.True(t, p.Resolve([]byte("1"), jsonrpc.Reply{Result: []byte("one")}, nil))
	require.False(t, p.Resolve([]byte("1"), jsonrpc.Reply{}, nil), "a doubled answer")
	require.Equal(t, []told{{"a", a, "one", nil}}, got)

	info, ok := p.RemoveAsync(b)
	require.True(t, ok)
	require.Equal(t, "b", info)
	_, ok = p.RemoveAsync(b)
	require.False(t, ok)
	_, ok = p.RemoveAsync(waited.ID)
	require.False(t, ok, "a call waits for that one")

	p.Close(jsonrpc.ErrClosed)
	require.Equal(t, told{"c", c, "", jsonrpc.ErrClosed}, got[len(got)-1])
	require.Len(t, got, 2)
	_, err = (<-waited.Done()).Take()
	require.ErrorIs(t, err, jsonrpc.ErrClosed)
	_, err = p.AddAsync("late")
	require.ErrorIs(t, err, jsonrpc.ErrClosed)
}

func TestACallThatIsUsedAgainIsWaitedForIfItsOpenerWaits(t *testing.T) {
	t.Parallel()
	var p jsonrpc.Pending[string]
	p.OnDone = func(string, int64, jsonrpc.Reply, error) { t.Error("reported a call that is waited for") }
	id, err := p.AddAsync("a")
	require.NoError(t, err)
	_, ok := p.RemoveAsync(id)
	require.True(t, ok)
	again, err := p.Add("b")
	require.NoError(t, err)
	require.True(t, p.Fail(again.ID, jsonrpc.ErrClosed))
	require.Len(t, again.Done(), 1)
}

func countOf(p *jsonrpc.Pending[string], id int64) int {
	if _, ok := p.Lookup(id); ok {
		return 1
	}
	return 0
}
