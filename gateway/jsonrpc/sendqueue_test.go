package jsonrpc_test

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"goblin/gateway/jsonrpc"
)

// step is a sink that writes when the test allows it.
type step chan struct{}

func (s step) WriteFrames([][]byte) error {
	<-s
	return nil
}

// For a slow reader, the queue keeps only unread data.
func TestSendQueueLetsGoOfWhatIsWritten(t *testing.T) {
	t.Parallel()
	const frames, size = 16, 512 << 10
	sink := make(step)
	o := jsonrpc.NewSendQueue(sink)
	var all []weak.Pointer[byte]
	for range frames {
		frame := make([]byte, size)
		all = append(all, weak.Make(&frame[0]))
		o.Send(frame)
	}
	done := make(chan error, 1)
	go func() { done <- o.Run() }()
	for range frames / 2 {
		sink <- struct{}{}
	}
	held := func() (n int64) {
		runtime.GC()
		for _, p := range all {
			if p.Value() != nil {
				n += size
			}
		}
		return n
	}
	require.Eventually(t, func() bool { return held() <= o.UnsentBytes() }, 30*time.Second, 10*time.Millisecond)
	o.Finish()
	close(sink)
	require.NoError(t, <-done)
	require.Zero(t, held())
}
