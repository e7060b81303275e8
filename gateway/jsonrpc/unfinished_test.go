package jsonrpc_test

import (
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/memory"
)

func TestUnfinishedFrameCanBeThrownAway(t *testing.T) {
	for range 2 { // memory that frames of other tests left to be used again is larger
		runtime.GC()
	}
	in, peer := io.Pipe()
	r := jsonrpc.NewReader(in, 4<<20)
	grown := make(chan int64, 100)
	r.Watch(func(n int64) { grown <- n })
	frames := make(chan []byte)
	go func() {
		defer close(frames)
		for {
			frame, err := r.Read()
			if err != nil {
				return
			}
			frames <- frame
		}
	}()
	write := func(s string) {
		_, err := io.WriteString(peer, s)
		require.NoError(t, err)
	}
	text := strings.Repeat("x", 300<<10)
	large := `{"jsonrpc":"2.0","id":7,"method":"m","params":{"x":"` + text + `"}}`

	write(`{"id":1}` + "\n")
	<-frames
	n, lost := r.Shed()
	require.Zero(t, n)
	require.Nil(t, lost, "nothing is unfinished")

	write(large[:200<<10])
	sum := <-grown
	require.GreaterOrEqual(t, sum, int64(192<<10), "all that was read, and room for more")
	require.Less(t, sum, int64(512<<10))
	require.Equal(t, sum, r.Held())
	n, lost = r.Shed()
	require.Equal(t, sum, n)
	require.Equal(t, "7", string(lost.ID()))
	require.False(t, lost.IsResponse())
	require.ErrorIs(t, lost, memory.ErrFull)
	require.Zero(t, r.Held())
	n, _ = r.Shed()
	require.Zero(t, n, "once")

	// Its end is skipped, at once or in parts, and the next frames are whole.
	write(large[200<<10:] + "\n" + large + "\n" + `{"id":2}` + "\n")
	require.Equal(t, large, string(<-frames))
	require.Equal(t, `{"id":2}`, string(<-frames))
	require.Zero(t, r.Held())
	require.NoError(t, peer.Close())
	_, more := <-frames
	require.False(t, more)
}

func TestFrameThatWasThrownAwayJustBeforeItsEnd(t *testing.T) {
	in, peer := io.Pipe()
	r := jsonrpc.NewReader(in, 4<<20)
	grown := make(chan int64, 100)
	r.Watch(func(n int64) { grown <- n })
	frames := make(chan []byte, 1)
	go func() {
		frame, err := r.Read()
		if err == nil {
			frames <- frame
		}
	}()
	_, err := io.WriteString(peer, strings.Repeat("x", 100<<10))
	require.NoError(t, err)
	<-grown
	n, _ := r.Shed()
	require.NotZero(t, n)
	_, err = io.WriteString(peer, "x\n{}\n")
	require.NoError(t, err)
	require.Equal(t, "{}", string(<-frames))
}

// Whoever waits for a frame is told once that it is lost, also when it turns out to
// be too long besides.
func TestFrameThatWasThrownAwayAndIsTooLong(t *testing.T) {
	for rest, text := range map[string]string{
		"less than a chunk": strings.Repeat("x", 10<<10), "chunks": strings.Repeat("x", 300<<10),
	} {
		t.Run(rest, func(t *testing.T) {
			in, peer := io.Pipe()
			r := jsonrpc.NewReader(in, 132<<10)
			type read struct {
				frame []byte
				err   error
			}
			reads := make(chan read, 10)
			go func() {
				frame, err := r.Read()
				reads <- read{frame, err}
			}()
			for _, part := range []string{strings.Repeat("x", 128<<10), "x"} { // when the second is read, the first is held
				_, err := io.WriteString(peer, part)
				require.NoError(t, err)
			}
			_, lost := r.Shed()
			require.NotNil(t, lost)
			_, err := io.WriteString(peer, text+"\n{}\n")
			require.NoError(t, err)
			got := <-reads
			require.NoError(t, got.err)
			require.Equal(t, "{}", string(got.frame))
		})
	}
}
