package tui

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/tui/images"
)

// recordingTerminal records what is written to it.
type recordingTerminal struct {
	mu    sync.Mutex
	wrote []string
}

func (s *recordingTerminal) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrote = append(s.wrote, string(bytes.Clone(p)))
	return len(p), nil
}

func (s *recordingTerminal) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.wrote
	s.wrote = nil
	return out
}

func TestOnlyLinesThatChangedArePainted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		terminal := &recordingTerminal{}
		out := &output{w: terminal}
		p := newPainter(out, &images.Renderer{})
		done := make(chan struct{})
		go func() { defer close(done); p.run(ctx) }()
		p.show("one\ntwo", false)
		synctest.Wait()
		require.Empty(t, terminal.take(), "the alternate buffer is not active yet")

		_, _ = out.Write([]byte(enterScreen))
		_, _ = out.Write([]byte(cursorHome + "a frame of Bubble Tea"))
		require.Equal(t, []string{enterScreen}, terminal.take())
		time.Sleep(time.Second)
		p.show("one\ntwo", true)
		synctest.Wait()
		require.Equal(t, []string{"\x1b[1;1Hone\x1b[2;1Htwo"}, terminal.take(), "at once")

		p.show("one\n2", false)
		p.show("one\nzwei", false)
		synctest.Wait()
		require.Empty(t, terminal.take(), "a frame was just written")
		time.Sleep(time.Second / maxFrameRate)
		synctest.Wait()
		require.Equal(t, []string{"\x1b[2;1Hzwei"}, terminal.take(), "only the last one is drawn")

		time.Sleep(time.Second)
		p.show("one\nzwei", false)
		synctest.Wait()
		require.Empty(t, terminal.take(), "nothing changed")
		p.show("one\nzwei", true)
		synctest.Wait()
		require.Len(t, terminal.take(), 1, "the terminal was cleared")

		time.Sleep(time.Second)
		_, _ = out.Write([]byte(leaveScreen))
		terminal.take()
		p.show("three\nfour", false)
		synctest.Wait()
		require.Empty(t, terminal.take(), "the terminal belongs to the shell")
		cancel()
		<-done
	})
}
