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

func TestSharesOfPlaces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		places int
		needs  []int
		share  int
	}{
		{10, []int{20}, 10},
		{10, []int{20, 20}, 5},
		{10, []int{2, 20}, 8},
		{10, []int{1, 2, 20, 30}, 3},
	} {
		require.Equal(t, c.share, pane.ShareOf(c.places, c.needs), "%+v", c)
	}
}
