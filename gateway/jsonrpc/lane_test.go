package jsonrpc_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"goblin/gateway/jsonrpc"
)

// gated accepts frames when the test allows it, and joins them.
type gated struct {
	mu   sync.Mutex
	text bytes.Buffer
	open chan struct{}
}

func (g *gated) WriteFrames(frames [][]byte) error {
	<-g.open
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range frames {
		g.text.Write(f)
	}
	return nil
}

// All frames arrive complete, each lane keeps its order, and no frame overtakes one that
// it must follow.
func TestLanesKeepTheirOrderAndTheirAnswersBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sink := &gated{open: make(chan struct{})}
		o := jsonrpc.NewSendQueue(sink)
		done := make(chan error, 1)
		go func() { done <- o.Run() }()
		lanes := []string{"", "a", "b"}
		pad := strings.Repeat(".", rapid.SampledFrom([]int{1, 500, 5000}).Draw(t, "size"))
		n := rapid.IntRange(1, 120).Draw(t, "frames")
		marks := map[string]jsonrpc.QueuePosition{} // the last of each lane
		sent := map[string][]string{}               // frames of each lane, in order
		behind := map[string][]string{}             // by answer: frames that must precede it
		for i := range n {
			name := fmt.Sprint(i)
			frame := []byte(name + pad + "\n")
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0, 1:
				lane := rapid.SampledFrom(lanes).Draw(t, "lane")
				marks[lane] = o.SendLow(lane, "", frame)
				sent[lane] = append(sent[lane], name)
			case 2:
				o.Send(frame)
			case 3: // in parts
				o.SendParts([][]byte{frame[:1], frame[1 : len(frame)-1], frame[len(frame)-1:]}, nil)
			case 4:
				var after []jsonrpc.QueuePosition
				for _, lane := range rapid.SliceOfDistinct(rapid.SampledFrom(lanes), rapid.ID).Draw(t, "after") {
					after = append(after, marks[lane])
					behind[name] = append(behind[name], sent[lane]...)
				}
				if !o.SendAfter(after, frame[:1], frame[1:]) {
					o.Send(frame)
				}
			}
			if rapid.IntRange(0, 9).Draw(t, "write") == 0 {
				select {
				case sink.open <- struct{}{}:
				default:
				}
			}
		}
		o.Finish()
		close(sink.open)
		require.NoError(t, <-done)
		require.Zero(t, o.UnsentBytes())
		at := map[string]int{}
		for i, line := range strings.Split(strings.TrimSuffix(sink.text.String(), "\n"), "\n") {
			name := strings.TrimSuffix(line, pad)
			require.NotContains(t, name, ".", "frames are complete")
			require.NotContains(t, at, name, "once")
			at[name] = i
		}
		require.Len(t, at, n)
		for lane, frames := range sent {
			for i := range frames[1:] {
				require.Less(t, at[frames[i]], at[frames[i+1]], "order of lane %q", lane)
			}
		}
		for name, frames := range behind {
			for _, before := range frames {
				require.Less(t, at[before], at[name])
			}
		}
	})
}

func TestAnswersGoBeforeChatterAndLanesInTurn(t *testing.T) {
	sink := &gated{open: make(chan struct{})}
	o := jsonrpc.NewSendQueue(sink)
	line := strings.Repeat("x", 1000)
	for range 200 {
		o.SendLow("loud", "", []byte("loud"+line+"\n"))
	}
	o.SendLow("calm", "", []byte("calm\n"))
	o.Send([]byte("answer\n"))
	require.Greater(t, o.LaneBytes("loud"), int64(200_000))
	o.Finish()
	close(sink.open)
	require.NoError(t, o.Run())
	text := sink.text.String()
	require.Zero(t, strings.Index(text, "answer\n"))
	require.Less(t, strings.Index(text, "calm\n"), 40<<10, "after one turn of the other")
	require.Equal(t, 200, strings.Count(text, "loud"))
	require.Zero(t, o.LaneBytes("loud"))
}
