package jsonrpc_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// answer returns a result whose text contains its ID.
func answer(id, size int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"%s"}]}}`, id, strings.Repeat(fmt.Sprintf("%d é ", id), size/5+1))
}

// A Reader checks frames while they arrive, with the same result as Parse.
func TestReaderParsesLargeFramesAsAny(t *testing.T) {
	t.Parallel()
	good := answer(7, 300<<10)
	frames := map[string]string{
		"whole": good, "cut": good[:len(good)-1], "twice": good + good, "invalid at the end": good[:len(good)-3] + "x" + good[len(good)-3:],
		"not UTF-8": strings.Replace(good, "7 é 7", "7 \xff 7", 1), "cut rune": good[:150<<10] + "\xc3" + `"}]}}`,
		"batch": "[" + good + "]", "breaks": strings.ReplaceAll(good, `:{"`, ":\r{\""), "member twice": good[:len(good)-1] + `,"id":8}`,
		"number": `{"jsonrpc":"2.0","id":7,"result":[` + strings.Repeat("1", 200<<10) + `]}`,
		"tokens": `{"jsonrpc":"2.0","id":7,"result":{"a":[` + strings.Repeat(`{"b":[true,null,-1.5e3,"\ud83d\ude00"]},`, 5000) + `{}]}}`,
		"larger": answer(7, 3<<20), "larger and cut": answer(7, 3<<20)[:2<<20],
		"small": `{"jsonrpc":"2.0","id":7,"result":{}}`,
	}
	for name, frame := range frames {
		for reads, pieces := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader,
		} {
			t.Run(name+" by "+reads, func(t *testing.T) {
				t.Parallel()
				r := jsonrpc.NewReader(pieces(strings.NewReader("{}\n"+frame+" \n"+good+"\n")), 1<<30).CheckWhileReading(0)
				_, err := r.Read()
				require.NoError(t, err)
				for _, text := range []string{frame, good} {
					got, err := r.Read()
					require.NoError(t, err)
					require.Equal(t, text, string(got))
					want, wantErr := jsonrpc.Parse([]byte(text))
					m, err := r.Parse(got)
					require.Equal(t, wantErr, err)
					require.Equal(t, string(want.ID), string(m.ID))
					require.Equal(t, string(want.Result), string(m.Result))
					if err == nil {
						m.OneLine()
						require.False(t, bytes.ContainsAny(m.Result, "\r\n"))
						require.Equal(t, string(rawjson.Get(m.Result, "content")), string(m.Shape.Get(m.Result, "content")))
					}
				}
			})
		}
	}
}

func TestReaderGivesTheEndOfALargeFrameAndWhatFollows(t *testing.T) {
	t.Parallel()
	big := answer(1, 100<<10)
	r := jsonrpc.NewReader(strings.NewReader(big+"\n{}\n"+big), 1<<20).CheckWhileReading(0)
	for _, want := range []string{big, "{}", big} {
		got, err := r.Read()
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	_, err := r.Read()
	require.ErrorIs(t, err, io.EOF)
}

// Large frames of all sizes pass unchanged, in parts, to a slow reader. Their memory is
// reused at once.
func TestMemoryOfLargeFramesIsUsedAgainOnlyWhenTheyAreWritten(t *testing.T) {
	t.Parallel()
	fromServer, server, err := os.Pipe()
	require.NoError(t, err)
	client, toClient, err := os.Pipe()
	require.NoError(t, err)
	defer client.Close()
	const frames = 75
	size := func(id int) int { return 1 + id*7919%(300<<10) }
	go func() {
		defer server.Close()
		for id := range frames {
			if _, err := io.WriteString(server, answer(id, size(id))+"\n"); err != nil {
				return
			}
		}
	}()
	out := jsonrpc.NewStream(toClient)
	written := make(chan error, 1)
	go func() { written <- out.Run(); toClient.Close() }()
	passed := make(chan error, 1)
	go func() {
		in := jsonrpc.NewReader(fromServer, 1<<30).CheckWhileReading(0)
		for {
			frame, err := in.Read()
			if errors.Is(err, io.EOF) {
				err = nil
				out.Finish()
			}
			if err != nil || frame == nil {
				passed <- err
				return
			}
			m, err := in.Parse(frame)
			if err != nil {
				passed <- err
				return
			}
			for out.UnsentBytes() > 3<<20 {
				time.Sleep(time.Millisecond)
			}
			send := out.SendParts
			if len(frame)%2 == 0 {
				send = out.SendPartsBuffered
			}
			send(jsonrpc.ResultParts(m.ID, rawjson.SpliceParts(m.Result)), m.Buffer)
			m.Buffer.Release()
		}
	}()
	r := bufio.NewReaderSize(client, 32<<10)
	for id := range frames {
		if rand.N(4) == 0 {
			time.Sleep(time.Millisecond)
		}
		got, err := r.ReadString('\n')
		require.NoError(t, err)
		want := answer(id, size(id)) + "\n"
		require.True(t, want == got, "frame %d of %d bytes, got %d", id, len(want), len(got))
	}
	require.NoError(t, <-passed)
	require.NoError(t, <-written)
	require.Zero(t, out.UnsentBytes())
}

// whole is a sink that needs complete frames.
type whole struct{ frames []string }

func (w *whole) WriteFrames(frames [][]byte) error {
	for _, f := range frames {
		w.frames = append(w.frames, string(f))
	}
	return nil
}

func TestFramesInPartsAreWholeWhereThatMatters(t *testing.T) {
	t.Parallel()
	sink := &whole{}
	o := jsonrpc.NewSendQueue(sink)
	big := strings.Repeat("x", 100<<10)
	o.Send([]byte("a\n"))
	o.SendParts([][]byte{[]byte("b"), []byte(big), []byte("\n")}, nil)
	o.SendPartsBuffered([][]byte{[]byte("c"), []byte("\n")}, nil)
	o.Finish()
	require.NoError(t, o.Run())
	require.Equal(t, []string{"a\n", "b" + big + "\n", "c\n"}, sink.frames)
}

// A client that stops within a large frame differs from one that reads slowly.
func TestSendQueueCountsWhatIsLeftOfAFrame(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	o := jsonrpc.NewStream(w)
	done := make(chan error, 1)
	go func() { done <- o.Run() }()
	const size = 4 << 20
	o.SendParts([][]byte{[]byte("<"), make([]byte, size), []byte("\n")}, nil)
	_, err = io.CopyN(io.Discard, r, size/2)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return o.UnsentBytes() < size*3/4 }, 30*time.Second, time.Millisecond)
	require.Greater(t, o.UnsentBytes(), int64(size/4))
	_, err = io.CopyN(io.Discard, r, size/2+2)
	require.NoError(t, err)
	o.Finish()
	require.NoError(t, <-done)
	require.Zero(t, o.UnsentBytes())
}
