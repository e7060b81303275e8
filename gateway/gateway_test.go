package gateway

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/servers"
	"goblin/gateway/telemetry"
	"goblin/registry"
)

func TestServersComeAndGoAtRunTime(t *testing.T) {
	t.Parallel()
	reg := registry.New(registry.Options{})
	g := New(Options{Options: servers.Options{
		Config: &config.Config{Demo: true}, Registry: reg, Metrics: telemetry.NewMetrics(),
		Logger: slog.New(slog.DiscardHandler), Version: "test",
	}})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); g.Run(ctx) }()
	defer func() { stop(); <-ended }()

	notes := config.Server{
		Name: "notes", Type: config.Stdio, Command: os.Args[0], Env: map[string]string{demoEnv: "notes"},
	}
	owned := func() bool { _, err := reg.ResolveTool("notes_add_note"); return err == nil }
	with := func(servers ...config.Server) *config.Config { return &config.Config{Demo: true, Servers: servers} }
	for range 2 { // a name that was removed is free again
		require.Equal(t, servers.Change{Added: []string{"notes"}}, g.Apply(with(notes)))
		require.True(t, g.Apply(with(notes)).Empty())
		require.Eventually(t, owned, 30*time.Second, 5*time.Millisecond)
		require.Equal(t, []string{"notes"}, g.Servers.Names())

		require.Equal(t, servers.Change{Removed: []string{"notes"}}, g.Apply(with()))
		require.False(t, owned())
		require.Empty(t, g.Servers.Names())
		_, known := reg.State("notes")
		require.False(t, known)
	}
	g.Apply(with(notes))
	require.Eventually(t, owned, 30*time.Second, 5*time.Millisecond)
	changed := notes
	changed.Tools.Deny = []string{"add_*"}
	require.Equal(t, servers.Change{Changed: []string{"notes"}}, g.Apply(with(changed)))
	require.Eventually(t, func() bool { return !owned() }, 30*time.Second, 5*time.Millisecond)
	off := notes
	off.Disabled = true
	require.Equal(t, servers.Change{Changed: []string{"notes"}}, g.Apply(with(off)))
	require.Zero(t, reg.Load().Count(registry.Tool), "a disabled server's lists are removed at once")
}

func TestNamesInParamsMustBeStrings(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]string{
		`{"name":"a"}`: "",
		`{"name":7}`:   `member "name" must be a string`,
		`{}`:           `member "name" must be a string`,
		``:             `member "name" must be a string`,
	} {
		_, _, err := stringMember([]byte(params), "name")
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want, params)
	}
}
