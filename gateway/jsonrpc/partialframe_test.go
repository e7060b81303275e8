package jsonrpc_test

import (
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/memlimit"
)

func TestFrameForWhichThereIsNoRoomIsThrownAway(t *testing.T) {
	for name, size := range map[string]int{"of one piece": 300 << 10, "in chunks": 3 << 20} {
		t.Run(name, func(t *testing.T) {
			large := `{"jsonrpc":"2.0","id":7,"method":"m","params":{"x":"` + strings.Repeat("x", size) + `"}}` + "\n"
			a := memlimit.New(int64(size) / 2)
			r := jsonrpc.NewReader(strings.NewReader(large+large+`{"id":1}`+"\n"+large), 4<<20)
			r.SetOwner(a.NewOwner(), nil)
			lost := func() {
				_, err := r.Read()
				var long *jsonrpc.TooLongError
				require.ErrorAs(t, err, &long)
				require.ErrorIs(t, err, memlimit.ErrFull)
				require.Equal(t, "7", string(long.ID()))
				require.False(t, long.IsResponse())
				require.False(t, r.Ready(), "its rest is not read")
			}
			lost()
			lost()
			frame, err := r.Read()
			require.NoError(t, err)
			require.Equal(t, `{"id":1}`, string(frame))
			lost()
			_, err = r.Read()
			require.ErrorIs(t, err, io.EOF)
			require.True(t, a.NewOwner().CanReserve(size/8), "no memory is held")
		})
	}
}

func TestWholeFramesGiveTheirRoomBack(t *testing.T) {
	for range 2 { // reusable memory of other tests is larger
		runtime.GC()
	}
	a := memlimit.New(8 << 20)
	large := strings.Repeat("x", 500<<10) + "\n"
	r := jsonrpc.NewReader(strings.NewReader(strings.Repeat(large, 20)), 4<<20)
	r.SetOwner(a.NewOwner(), nil)
	for range 20 {
		frame, err := r.Read()
		require.NoError(t, err)
		require.Len(t, frame, 500<<10)
		require.True(t, a.NewOwner().CanReserve(2<<20))
	}
}

func TestPeerThatStopsInTheMiddleOfAFrameIsGivenUpWhenOthersAreShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := memlimit.New(40 << 20)
		in, peer := io.Pipe()
		r := jsonrpc.NewReader(in, 4<<20)
		var given atomic.Int32
		r.SetOwner(a.NewOwner(), func() { given.Add(1); peer.Close() })
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = r.Read()
		}()
		part := strings.Repeat("x", 200<<10)
		_, err := io.WriteString(peer, part)
		require.NoError(t, err)
		time.Sleep(time.Hour + time.Second/2)
		require.Zero(t, given.Load(), "the memory is not needed yet")

		var others [4]memlimit.Reservation
		for i := range others {
			others[i].SetOwner(a.NewOwner())
			require.True(t, others[i].Resize(5<<20+1<<19))
		}
		_, err = io.WriteString(peer, part)
		require.NoError(t, err)
		time.Sleep(59 * time.Second)
		require.Zero(t, given.Load(), "the minute is not over")
		time.Sleep(2 * time.Second)
		<-done
		require.EqualValues(t, 1, given.Load())
		time.Sleep(time.Hour)
		require.EqualValues(t, 1, given.Load())
	})
}

func TestQueueIsCrowdedWhenThereIsNoRoomForIt(t *testing.T) {
	a := memlimit.New(4 << 20)
	o := jsonrpc.NewSendQueue(sink(func([][]byte) error { return nil }))
	o.SetOwner(a.NewOwner())
	frame := []byte(strings.Repeat("x", 200<<10) + "\n")
	for range 5 {
		require.False(t, o.OverLimit())
		o.Send(frame)
	}
	o.Send(frame)
	require.True(t, o.OverLimit(), "a queue may use only the free part")
	require.True(t, a.NewOwner().CanReserve(700<<10), "others have their share")
	go o.Finish()
	require.NoError(t, o.Run())
	require.False(t, o.OverLimit())
	require.True(t, a.NewOwner().CanReserve(1<<20))

	o = jsonrpc.NewSendQueue(sink(func([][]byte) error { return nil }))
	o.SetOwner(a.NewOwner())
	o.Send(frame)
	o.Close(io.EOF)
	require.True(t, a.NewOwner().CanReserve(1<<20))
}

type sink func(frames [][]byte) error

func (f sink) WriteFrames(frames [][]byte) error { return f(frames) }
