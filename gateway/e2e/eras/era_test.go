//go:build e2e

package eras

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// One process serves the clients of both revisions, unless the config wants two.
func TestServerRunsInTheEraThatTheConfigWants(t *testing.T) {
	t.Parallel()
	type row struct {
		name, speaks, kind, era string
		first                   string // the first request to the server
		legacy, modern          string // the era in which calls of each client arrive
		processes               int
		protocol, fails         string
	}
	rows := e2e.Variants(5,
		row{"auto", "dual", "stdio", "", "server/discover", "legacy", "legacy", 1, e2e.Revision, ""},
		row{"both", "dual", "stdio", "both", "server/discover", "legacy", "modern", 2, e2e.Revision, ""},
		row{"legacy", "dual", "stdio", "legacy", "initialize", "legacy", "legacy", 1, e2e.Revision, ""},
		row{"modernweb", "dual", "http", "modern", "server/discover", "modern", "modern", 1, e2e.ModernRevision, ""},
		row{"notlegacy", "modern", "stdio", "legacy", "initialize", "", "", 0, "", "era: auto"},
		row{"modern", "dual", "stdio", "modern", "server/discover", "modern", "modern", 1, e2e.ModernRevision, ""},
		row{"autoweb", "dual", "http", "auto", "server/discover", "legacy", "modern", 1, e2e.Revision, ""},
		row{"legacyweb", "dual", "http", "legacy", "initialize", "legacy", "legacy", 1, e2e.Revision, ""},
		row{"notmodern", "", "stdio", "modern", "server/discover", "", "", 0, "", "era: auto"},
	)
	w := e2e.NewWorld(t)
	backends := map[string]*e2e.Backend{}
	for _, row := range rows {
		conf := e2e.Obj{}
		if row.era != "" {
			conf["era"] = row.era
		}
		script := e2e.Obj{"era": row.speaks, "tools": []e2e.Obj{e2e.Tool("t")}}
		if row.kind == "http" {
			backends[row.name] = w.Remote(row.name, "/mcp", script, conf)
		} else {
			backends[row.name] = w.Backend(row.name, script, conf)
		}
	}
	legacy, modern := w.Pair("socket")
	legacy.Names("tools") // all have listed, or failed
	servers := json.RawMessage(legacy.ReadText("goblin://servers"))
	for i, row := range rows {
		b := backends[row.name]
		require.Equal(t, row.first, b.Received("")[0].Method, row.name)
		if row.fails != "" {
			require.Contains(t, e2e.Str(servers, "servers", i, "lastError"), row.fails, row.name)
			continue
		}
		require.Equal(t, row.protocol, e2e.Str(servers, "servers", i, "protocolVersion"), row.name)
		for _, c := range []struct {
			client *e2e.Client
			era    string
		}{{legacy, row.legacy}, {modern, row.modern}} {
			c.client.CallText(row.name+"_t", e2e.Obj{})
			calls := b.Received("tools/call")
			spoken := "legacy"
			if e2e.ProtocolMeta(calls[len(calls)-1], "protocolVersion") != "" {
				spoken = "modern"
			}
			require.Equal(t, c.era, spoken, row.name)
		}
		require.Len(t, b.Live(), row.processes, row.name)
	}
}
