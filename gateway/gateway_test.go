package gateway

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/metrics"
	"goblin/registry"
)

func TestServersComeAndGoAtRunTime(t *testing.T) {
	t.Parallel()
	reg := registry.New(registry.Options{})
	g := New(Options{
		Config: &config.Config{Demo: true}, Registry: reg, Metrics: metrics.New(),
		Logger: slog.New(slog.DiscardHandler), Version: "test",
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); g.Run(ctx) }()
	defer func() { stop(); <-ended }()

	notes := config.Server{
		Name: "notes", Type: config.Stdio, Command: os.Args[0], Env: map[string]string{demoEnv: "notes"},
	}
	owned := func() bool { _, err := reg.ResolveTool("notes_add_note"); return err == nil }
	for range 2 { // a name that was removed is free again
		require.NoError(t, g.AddServer(notes))
		require.ErrorContains(t, g.AddServer(notes), "there is one of that name")
		require.Eventually(t, owned, 30*time.Second, 5*time.Millisecond)
		require.Equal(t, []string{"notes"}, g.ServerNames())

		require.NoError(t, g.RemoveServer("notes"))
		require.False(t, owned())
		require.Empty(t, g.ServerNames())
		_, known := reg.State("notes")
		require.False(t, known)
	}
	require.ErrorContains(t, g.RemoveServer("notes"), "there is none of that name")
}
