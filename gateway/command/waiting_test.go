package command

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
	"goblin/gateway/daemon"
)

func TestAListReportsWhatItWaitsFor(t *testing.T) {
	g := catalog()
	g.status.Servers = append(g.status.Servers,
		daemon.Server{Name: "files", State: "connecting"}, daemon.Server{Name: "memory", State: "retrying"},
		daemon.Server{Name: "off", State: "disabled"})
	for _, args := range [][]string{{"list", "tools"}, {"read", "goblin://servers"}} {
		g.answer = gives(`{"contents":[]}`)
		errs := &signalled{wrote: make(chan struct{})}
		a := &App{App: &cli.App{Out: io.Discard, Err: errs, ErrTTY: true}, testDelay: 1}
		runApp(t, t.Context(), a, &slow{scripted: g, until: errs.wrote}, args...)
		require.Contains(t, errs.String(), "goblin: waiting for files, memory …\n")
	}
}
