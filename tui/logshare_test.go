package tui

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/pane"
)

// A server that says much leaves the rows of others in the tab.
func TestAServerDisplacesItsOwnRowsOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, 120, 40, "files", "github").keys("5 ] ]")
	for i := range 10 {
		r.reg.Logs().Append(registry.LogRecord{Server: "files", Source: registry.SourceStderr, Text: fmt.Sprint("quiet ", i)})
	}
	for range 3 {
		for i := range pane.MostLogs {
			r.reg.Logs().Append(registry.LogRecord{Server: "github", Source: registry.SourceStderr, Text: fmt.Sprint("loud ", i)})
		}
		r.changed(registry.Logs)
	}
	rows := map[string]int{}
	for _, row := range r.app.Logs().Logs[pane.TabStderr].Held {
		rows[row.Server]++
	}
	require.Equal(t, 10, rows["files"])
	require.Equal(t, pane.MostLogs-10, rows["github"])
}
