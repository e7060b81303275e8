package tui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

func TestDetailsShowHowDefinitionsWereChangedToSatisfyClients(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{at: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	reg := registry.New(registry.Options{Servers: []string{"odd"}, Now: clock.now, Repair: true})
	r := rigOver(t, reg, clock, 160, 60, map[string]string{"TERM": "xterm-256color", "LANG": "C.UTF-8", "NO_COLOR": "1"})
	r.ready("odd")
	reg.SetList("odd", registry.Tool, [][]byte{[]byte(`{"name":"bare"}`), []byte(`{"name":"fine","inputSchema":{"type":"object"}}`), []byte(`{"title":"nameless"}`)})
	reg.SetList("odd", registry.Resource, [][]byte{[]byte(`{"uri":"x:a/b","mimeType":null,"name":"b"}`)})
	r.changed(registry.Tools | registry.Resources | registry.Servers)
	r.keys("2 g")
	require.Contains(t, r.screen(), "changed to satisfy clients: inputSchema")
	r.keys("j")
	require.NotContains(t, r.screen(), "satisfy clients")
	r.keys("4 g")
	require.Contains(t, r.screen(), "changed to satisfy clients: mimeType")
	r.keys("1 g")
	for _, text := range []string{"2 changed to satisfy clients", "1 dropped", `bare inputSchema set to {"type":"object"}`, `entry 2 dropped: no "name"`} {
		require.Contains(t, r.screen(), text)
	}
}
