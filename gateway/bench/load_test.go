//go:build e2e

package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryPartOfALoadIsReported(t *testing.T) {
	progs, err := builtPrograms()
	require.NoError(t, err)
	tests := []struct {
		name string
		run  func(*load) error
		rows []string
	}{
		{"beside a server that clients call directly", func(l *load) error { return l.all("") }, []string{
			"100 B, 1 in flight, the least server", "1 MB, 64 in flight, the least server", "a server of an SDK", "from start to ready", "update", "1 MiB answers",
		}},
		{"against another binary", func(l *load) error { return l.against(progs.goblin, "") }, []string{
			"100 B, 1 in flight", "1 MB, 64 in flight", "bridge to a daemon", "Streamable HTTP", "first page", "memory", "from start to ready", "subscribers",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var said bytes.Buffer
			l := &load{ctx: t.Context(), dir: t.TempDir(), progs: progs, scale: 0.001, lives: 1, out: report{to: &said}}
			require.NoError(t, tt.run(l), "%s", &said)
			for _, row := range tt.rows {
				require.Contains(t, said.String(), row)
			}
		})
	}
}

func TestOtherGatewaysThatCannotBeFetchedAreSkipped(t *testing.T) {
	progs, err := builtPrograms()
	require.NoError(t, err)
	t.Setenv("PATH", "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	var said bytes.Buffer
	l := &load{ctx: t.Context(), dir: t.TempDir(), progs: progs, scale: 0.01, lives: 1, out: report{to: &said}}
	require.NoError(t, l.peers(), "%s", &said)
	for _, row := range []string{"mcp-proxy 6.7.19 is skipped", "supergateway 4.0.0 is skipped", "| direct | ", "| `goblin serve` | "} {
		require.Contains(t, said.String(), row)
	}
}
