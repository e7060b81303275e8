package wire_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/memlimit"
	"goblin/gateway/upstream/wire"
)

func readEvents(r io.Reader, limit int64) (got []wire.StreamEvent, ev *wire.StreamReader, err error) {
	ev = wire.NewStreamReader(r, limit, nil)
	for {
		e, err := ev.Next()
		if err != nil {
			return got, ev, err
		}
		got = append(got, e)
	}
}

func TestEventStreams(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100<<10)
	for name, test := range map[string]struct {
		in   string
		want []wire.StreamEvent
		id   string
	}{
		"plain":               {"data: a\n\n", []wire.StreamEvent{{Name: "message", Data: []byte("a")}}, ""},
		"CRLF":                {"event: endpoint\r\ndata: a\r\n\r\n", []wire.StreamEvent{{Name: "endpoint", Data: []byte("a")}}, ""},
		"several lines":       {"data: a\ndata:b\ndata\n\n", []wire.StreamEvent{{Name: "message", Data: []byte("a\nb\n")}}, ""},
		"comments":            {": ping\n\n:\ndata: a\n: x\n\n", []wire.StreamEvent{{Name: "message", Data: []byte("a")}}, ""},
		"ids":                 {"id: 1\ndata: a\n\nid: 2\n\n", []wire.StreamEvent{{Name: "message", Data: []byte("a")}}, "2"},
		"names do not linger": {"event: x\n\ndata: a\n\n", []wire.StreamEvent{{Name: "message", Data: []byte("a")}}, ""},
		"one space only":      {"data:  a\n\n", []wire.StreamEvent{{Name: "message", Data: []byte(" a")}}, ""},
		"byte order mark":     {"\xEF\xBB\xBFdata: a\n\n", []wire.StreamEvent{{Name: "message", Data: []byte("a")}}, ""},
		"lone CR":             {"event: x\rdata: a\r\rdata: b\r\r", []wire.StreamEvent{{Name: "x", Data: []byte("a")}, {Name: "message", Data: []byte("b")}}, ""},
		"all line ends":       {"data: a\r\n\rdata: b\n\rdata: c\r\ndata: d\r\n\r\n", []wire.StreamEvent{{Name: "message", Data: []byte("a")}, {Name: "message", Data: []byte("b")}, {Name: "message", Data: []byte("c\nd")}}, ""},
		"lone CR at the end":  {"data: a\r", []wire.StreamEvent{{Name: "message", Data: []byte("a")}}, ""},
		"mark and CR":         {"\xEF\xBB\xBF\rdata: a\r\r", []wire.StreamEvent{{Name: "message", Data: []byte("a")}}, ""},
		"mark later":          {"data: a\n\n\xEF\xBB\xBFdata: b\n\n", []wire.StreamEvent{{Name: "message", Data: []byte("a")}}, ""},
		"empty data":          {"event: x\ndata\n\ndata:\r\rdata: a\n\n", []wire.StreamEvent{{Name: "message", Data: []byte("a")}}, ""},
		"two empty lines":     {"data\ndata\n\n", []wire.StreamEvent{{Name: "message", Data: []byte("\n")}}, ""},
		"id with NUL":         {"id: 1\ndata: a\n\nid: 2\x00\ndata: b\n\n", []wire.StreamEvent{{Name: "message", Data: []byte("a")}, {Name: "message", Data: []byte("b")}}, "1"},
		"id for no header":    {"id: 1\ndata: a\n\nid: 2\x01\n\n", []wire.StreamEvent{{Name: "message", Data: []byte("a")}}, "1"},
		"id is taken back":    {"id: 1\ndata: a\n\nid\n\n", []wire.StreamEvent{{Name: "message", Data: []byte("a")}}, ""},
		"id of a cut event":   {"id: 1\ndata: a\n\nid: 2\ndata: b\ndata: c", []wire.StreamEvent{{Name: "message", Data: []byte("a")}}, "1"},
		"long line with CR":   {"data: " + long + "\r\r", []wire.StreamEvent{{Name: "message", Data: []byte(long)}}, ""},
		"no blank line":       {"data: a\n", []wire.StreamEvent{{Name: "message", Data: []byte("a")}}, ""},
		"cut line":            {"data: a\n\ndata: b", []wire.StreamEvent{{Name: "message", Data: []byte("a")}}, ""},
		"long line":           {"data: " + long + "\r\n\n", []wire.StreamEvent{{Name: "message", Data: []byte(long)}}, ""},
		"long other field":    {"x: " + long + "\ndata: a\n\n", []wire.StreamEvent{{Name: "message", Data: []byte("a")}}, ""},
	} {
		for how, r := range map[string]io.Reader{
			"whole": strings.NewReader(test.in), "by byte": iotest.OneByteReader(strings.NewReader(test.in)),
		} {
			got, ev, err := readEvents(r, 1<<20)
			require.ErrorIs(t, err, io.EOF, name)
			require.Equal(t, test.want, got, "%s, %s", name, how)
			require.Equal(t, test.id, ev.LastID, name)
		}
	}
	_, ev, _ := readEvents(strings.NewReader("retry: 1500\n\n"), 100)
	require.Equal(t, 1500*time.Millisecond, ev.Retry)
}

// endless is a reader of a line without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestEventsAreBounded(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]io.Reader{
		"one endless line": io.MultiReader(strings.NewReader(`data: {"id":1,"a":"`), endless{}),
		"endless lines":    strings.NewReader(strings.Repeat("data: xxxxxxxxxxxxxxxxxxxx\n", 100_000)),
	} {
		_, _, err := readEvents(r, 1<<20)
		var long *jsonrpc.TooLongError
		require.ErrorAs(t, err, &long, name)
	}
}

func TestEventsThatAreReadAtOnceShareTheirRoom(t *testing.T) {
	t.Parallel()
	a := memlimit.New(12 << 20)
	shared := a.NewOwner()
	half := io.MultiReader(strings.NewReader("data: "), io.LimitReader(endless{}, 2<<20), strings.NewReader("\n\n"))
	r, w := io.Pipe()
	ended := make(chan error)
	go func() {
		_, err := wire.NewStreamReader(r, 4<<20, shared).Next()
		ended <- err
	}()
	_, err := io.Copy(w, io.MultiReader(strings.NewReader("data: "), io.LimitReader(endless{}, 2<<20)))
	require.NoError(t, err)
	_, err = wire.NewStreamReader(half, 4<<20, shared).Next()
	require.ErrorIs(t, err, memlimit.ErrFull)

	// A finished stream uses no memory.
	require.NoError(t, w.Close())
	require.ErrorIs(t, <-ended, io.EOF)
	require.True(t, shared.CanReserve(3<<20))
	for range 2 {
		again := io.MultiReader(strings.NewReader("data: "), io.LimitReader(endless{}, 2<<20), strings.NewReader("\n\n"))
		ev, err := wire.NewStreamReader(again, 4<<20, shared).Next()
		require.NoError(t, err)
		require.Len(t, ev.Data, 2<<20)
	}
}

func TestEventsOfManyShortLinesTakeWhatTheyHold(t *testing.T) {
	t.Parallel()
	in := strings.Repeat("data:\n", 1<<20)
	const limit = 2 << 20 // for a million line breaks
	ev, err := wire.NewStreamReader(strings.NewReader(in+"\n"), limit, nil).Next()
	require.NoError(t, err)
	require.Len(t, ev.Data, 1<<20-1)
}

func FuzzEvents(f *testing.F) {
	f.Add("data: a\n\n")
	f.Add("id: 1\r\nevent: x\r\ndata: a\r\ndata: b\r\n\r\n")
	f.Add("data: a\r\rdata: b\r\n\rid: 1\x00\rdata\r\r")
	f.Add(": c\nretry: 5\n\ndata\n\n")
	f.Add("\xEF\xBB\xBFdata:" + strings.Repeat("y", 5000) + "\n\n")
	f.Fuzz(func(t *testing.T, in string) {
		whole, _, err := readEvents(strings.NewReader(in), 4096)
		var long *jsonrpc.TooLongError
		if !errors.Is(err, io.EOF) && !errors.As(err, &long) {
			t.Fatalf("unexpected error %v", err)
		}
		bits, _, _ := readEvents(iotest.OneByteReader(strings.NewReader(in)), 4096)
		require.Equal(t, whole, bits)
		// The standard treats all line breaks the same.
		same, _, _ := readEvents(strings.NewReader(strings.NewReplacer("\r\n", "\r", "\n", "\r").Replace(in)), 4096)
		require.Equal(t, whole, same)
		for _, e := range whole {
			require.LessOrEqual(t, len(e.Data), 4097)
		}
	})
}
