//go:build unix

package remoteui

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"
)

// lateSink starts to accept keys a moment after it is enabled, and loses earlier ones.
// The moment is over when no goroutine is about to read a key.
type lateSink struct {
	takes atomic.Bool
	keys  chan string
	early chan string
}

func (s *lateSink) terminalLost(error) {}

func (s *lateSink) setDropping(on bool) {
	if on {
		s.takes.Store(false)
		return
	}
	select {
	case key := <-s.early:
		s.keys <- "lost: " + key
	case <-time.After(time.Second): // passes in the bubble only if no key can arrive
	}
	s.takes.Store(true)
}

func (s *lateSink) input(p []byte) {
	if s.takes.Load() {
		s.keys <- string(p)
	} else {
		s.early <- string(p)
	}
}

func TestAKeyTypedBeforeTheTerminalIsTakenIsNotLost(t *testing.T) {
	t.Parallel()
	typist, tty, err := pty.Open()
	require.NoError(t, err)
	defer typist.Close()
	defer tty.Close()
	_, err = term.MakeRaw(int(tty.Fd()))
	require.NoError(t, err)
	_, err = typist.WriteString("W")
	require.NoError(t, err)
	sink := &lateSink{}
	c, err := openConsole(tty, tty, false, sink) // signals come from outside the bubble
	require.NoError(t, err)
	defer c.close()
	synctest.Test(t, func(t *testing.T) {
		sink.keys, sink.early = make(chan string, 1), make(chan string, 1)
		require.NoError(t, c.read())
		defer c.stop()
		require.Equal(t, "W", <-sink.keys)
	})
}
