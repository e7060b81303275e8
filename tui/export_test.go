package tui

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/tui/dialog"
)

func TestExportSavesWhatTrafficShows(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 120, 40)
	r.keys("/").typeText("github").keys("enter").runCommand("export har out.har")
	require.Contains(t, r.screen(), "Exported 1 row to /home/out.har")
	var har struct {
		Log struct {
			Pages   []struct{ Title string }
			Entries []struct {
				Request struct{ PostData struct{ Text string } }
				MCP     struct{ Server, Name string } `json:"_mcp"`
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(r.term.saved["out.har"]), &har))
	require.NotEmpty(t, har.Log.Entries)
	for _, e := range har.Log.Entries {
		require.Equal(t, "github", e.MCP.Server, "the filter of the tab counts")
	}
	require.Contains(t, har.Log.Entries[0].Request.PostData.Text, `"title":"It's"`)

	r.runCommand("export html")
	names := slices.Collect(maps.Keys(r.term.saved))
	require.Contains(t, names, "traffic-"+r.clock.now().Format("20060102-150405")+".html")
	r.runCommand("export html out.har")
	require.Contains(t, r.screen(), "export: ", "an existing file stays")
}

func TestExportNamesTheFormatsAndTheReason(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 120, 40)
	r.keys(":").typeText("export ")
	for _, format := range []string{"har", "otlp", "html", "jsonl", "curl"} {
		require.NotEmpty(t, r.line("export "+format))
	}
	r.keys("esc").runCommand("export pdf")
	require.Contains(t, r.screen(), "unknown format pdf; choose har, otlp, html, jsonl, curl")
	r.keys("esc").keys("/").typeText("nothing-matches").keys("enter").runCommand("export har")
	require.Contains(t, r.screen(), "no requests in Traffic match the filter")
	require.Empty(t, r.term.saved)
}

func TestThePaletteDescribesEachExport(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 120, 40).keys(":").typeText("export ")
	for _, format := range dialog.ExportFormats() {
		require.Contains(t, r.line("export "+format), "  As ", format)
	}
}
