package dialog

import (
	"bytes"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/export"
	"goblin/registry/termtext"
	"goblin/tui/keys"
	"goblin/tui/uicontext"
)

// ExportFormats returns the names of the formats of [Export].
func ExportFormats() []string {
	var all []string
	for _, f := range export.Formats() {
		all = append(all, string(f))
	}
	return all
}

var exportTexts = map[string]string{
	"har":   "As HAR, for the network tab of browsers",
	"otlp":  "As OpenTelemetry spans in JSON",
	"html":  "As a web page with the time line",
	"jsonl": "As a recording, for goblin open",
	"curl":  "As a shell script that sends them again with curl",
}

// ExportText describes a format of [Export].
func ExportText(format string) string { return exportTexts[format] }

// Export saves n traffic records on the terminal's machine. arg is a format and optionally
// a path. get is called in a command and returns false for a record that was evicted.
func Export(a *uicontext.Context, arg string, n int, get func(i int) (registry.TrafficRecord, bool)) tea.Cmd {
	name, path, _ := strings.Cut(arg, " ")
	format := export.Format(name)
	if path = strings.TrimSpace(path); path == "" {
		path = "traffic-" + a.Now().Format("20060102-150405") + format.Extension()
	}
	ctx, term, url, backend := a.Ctx, a.Term, a.Endpoint.URL, a.Backend
	a.Say("Exporting %s …", termtext.Count(n, "row"))
	return func() tea.Msg {
		var out bytes.Buffer
		open := func() (export.Source, error) {
			head, err := backend.TrafficHead()
			return export.NewRecords(head, n, get), err
		}
		sum, err := export.Write(ctx, &out, format, open, export.Options{URL: url})
		where := ""
		if err == nil {
			where, err = term.Save(ctx, path, out.Bytes())
		}
		return keys.FuncMsg(func() tea.Cmd {
			switch {
			case err != nil:
				return a.Complain("export: %v", err)
			case sum.Note != "":
				return a.Complain("Exported to %s; %s", where, sum.Note)
			}
			return a.Say("Exported %s to %s", termtext.Count(sum.Requests+sum.Notifications, "row"), where)
		})
	}
}
