package pane

import (
	"slices"
	"strings"

	"goblin/registry"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

// maxShownChanges is the number of past changes in the detail of an entry.
const maxShownChanges = 5

// changeBlocks returns the last changes of an entry by its server, the newest first.
func changeBlocks(reg *registry.Registry, e *registry.Entry) []viewer.Section {
	var fields []viewer.Field
	for _, c := range slices.Backward(reg.ListChanges().Window(0, -1)) {
		if c.Op != registry.OpChanged || c.Server != e.Server || c.Kind != e.Kind || c.Name != e.Name {
			continue
		}
		what := uicontext.SanitizeLine(strings.Join(c.What, "; "))
		fields = append(fields, viewer.Field{Label: c.Time.Format("2006-01-02 15:04"), Value: what})
		if len(fields) == maxShownChanges {
			break
		}
	}
	if fields == nil {
		return nil
	}
	return []viewer.Section{{Title: "Changes by the server", Kind: viewer.Fields, Fields: fields}}
}
