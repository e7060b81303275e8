//go:build unix

package remoteui_test

import (
	"context"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"

	"goblin/gateway/remoteui"
)

func TestARelayThatEndedLeavesTheTerminalToTheNext(t *testing.T) {
	outer, tty, err := pty.Open()
	require.NoError(t, err)
	defer tty.Close()
	found, err := term.GetState(int(tty.Fd()))
	require.NoError(t, err)
	defer remoteui.WritesWithoutDeadline()()
	a, b := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := remoteui.Relay(ctx, b, remoteui.Terminal{In: tty, Out: tty, Getenv: func(string) string { return "" }})
		ended <- err
	}()
	daemon, err := remoteui.Accept(a, a)
	if err != nil {
		t.Fatal(err, <-ended)
	}
	defer daemon.Close()
	giveUp(t, daemon)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	now, err := term.GetState(int(tty.Fd()))
	require.NoError(t, err)
	require.True(t, equal(now, found), "restored although it accepts no output")

	_, err = term.MakeRaw(int(tty.Fd())) // as the next relay does
	require.NoError(t, err)
	raw, err := term.GetState(int(tty.Fd()))
	require.NoError(t, err)
	watchTerminal(t, outer) // reads the remaining input
	stacks := make([]byte, 1<<20)
	for strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "(*console)") {
		<-time.After(5 * time.Millisecond)
	}
	now, err = term.GetState(int(tty.Fd()))
	require.NoError(t, err)
	require.True(t, equal(now, raw), "a late end has no effect")
}
