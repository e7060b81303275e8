package upstream

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/memory"
)

func readEvents(r io.Reader, limit int64) (got []event, ev *events, err error) {
	ev = newEvents(r, limit, nil)
	for {
		e, err := ev.next()
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
		want []event
		id   string
	}{
		"plain":               {"data: a\n\n", []event{{"message", []byte("a")}}, ""},
		"CRLF":                {"event: endpoint\r\ndata: a\r\n\r\n", []event{{"endpoint", []byte("a")}}, ""},
		"several lines":       {"data: a\ndata:b\ndata\n\n", []event{{"message", []byte("a\nb\n")}}, ""},
		"comments":            {": ping\n\n:\ndata: a\n: x\n\n", []event{{"message", []byte("a")}}, ""},
		"ids":                 {"id: 1\ndata: a\n\nid: 2\n\n", []event{{"message", []byte("a")}}, "2"},
		"names do not linger": {"event: x\n\ndata: a\n\n", []event{{"message", []byte("a")}}, ""},
		"one space only":      {"data:  a\n\n", []event{{"message", []byte(" a")}}, ""},
		"byte order mark":     {"\xEF\xBB\xBFdata: a\n\n", []event{{"message", []byte("a")}}, ""},
		"no blank line":       {"data: a\n", []event{{"message", []byte("a")}}, ""},
		"cut line":            {"data: a\n\ndata: b", []event{{"message", []byte("a")}}, ""},
		"long line":           {"data: " + long + "\r\n\n", []event{{"message", []byte(long)}}, ""},
		"long other field":    {"x: " + long + "\ndata: a\n\n", []event{{"message", []byte("a")}}, ""},
	} {
		for how, r := range map[string]io.Reader{
			"whole": strings.NewReader(test.in), "by byte": iotest.OneByteReader(strings.NewReader(test.in)),
		} {
			got, ev, err := readEvents(r, 1<<20)
			require.ErrorIs(t, err, io.EOF, name)
			require.Equal(t, test.want, got, "%s, %s", name, how)
			require.Equal(t, test.id, ev.lastID, name)
		}
	}
	_, ev, _ := readEvents(strings.NewReader("retry: 1500\n\n"), 100)
	require.Equal(t, 1500*time.Millisecond, ev.retry)
}

// endless never ends a line.
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
		var long *jsonrpc.TooLong
		require.ErrorAs(t, err, &long, name)
	}
}

func TestEventsThatAreReadAtOnceShareTheirRoom(t *testing.T) {
	t.Parallel()
	a := memory.New(12 << 20)
	shared := a.Party()
	half := io.MultiReader(strings.NewReader("data: "), io.LimitReader(endless{}, 2<<20), strings.NewReader("\n\n"))
	r, w := io.Pipe()
	ended := make(chan error)
	go func() {
		_, err := newEvents(r, 4<<20, shared).next()
		ended <- err
	}()
	_, err := io.Copy(w, io.MultiReader(strings.NewReader("data: "), io.LimitReader(endless{}, 2<<20)))
	require.NoError(t, err)
	_, err = newEvents(half, 4<<20, shared).next()
	require.ErrorIs(t, err, memory.ErrFull)

	// What has ended takes no room any more.
	require.NoError(t, w.Close())
	require.ErrorIs(t, <-ended, io.EOF)
	require.True(t, shared.Room(3<<20))
	for range 2 {
		again := io.MultiReader(strings.NewReader("data: "), io.LimitReader(endless{}, 2<<20), strings.NewReader("\n\n"))
		ev, err := newEvents(again, 4<<20, shared).next()
		require.NoError(t, err)
		require.Len(t, ev.data, 2<<20)
	}
}

func TestEventsOfManyShortLinesTakeWhatTheyHold(t *testing.T) {
	t.Parallel()
	in := strings.Repeat("data:\n", 1<<20)
	const limit = 2 << 20 // for a million line breaks
	ev, err := newEvents(strings.NewReader(in+"\n"), limit, nil).next()
	require.NoError(t, err)
	require.Len(t, ev.data, 1<<20-1)
}

func FuzzEvents(f *testing.F) {
	f.Add("data: a\n\n")
	f.Add("id: 1\r\nevent: x\r\ndata: a\r\ndata: b\r\n\r\n")
	f.Add(": c\nretry: 5\n\ndata\n\n")
	f.Add("\xEF\xBB\xBFdata:" + strings.Repeat("y", 5000) + "\n\n")
	f.Fuzz(func(t *testing.T, in string) {
		whole, _, err := readEvents(strings.NewReader(in), 4096)
		var long *jsonrpc.TooLong
		if !errors.Is(err, io.EOF) && !errors.As(err, &long) {
			t.Fatalf("unexpected error %v", err)
		}
		bits, _, _ := readEvents(iotest.OneByteReader(strings.NewReader(in)), 4096)
		require.Equal(t, whole, bits)
		for _, e := range whole {
			require.LessOrEqual(t, len(e.data), 4097)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
	f.Add([]byte(`log {"jsonrpc":"2.0","id":1,"result":{}}`))
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\xff\"}}"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"a":{"jsonrpc":"2.0"`))
	f.Fuzz(func(t *testing.T, frame []byte) {
		m, err := parse(frame, 512)
		if err != nil {
			var bad *jsonrpc.ParseError
			require.ErrorAs(t, err, &bad)
			asks(frame)
			return
		}
		if m.Method == "" {
			require.True(t, (m.Result == nil) != (m.Error == nil))
		}
	})
}
