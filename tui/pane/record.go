package pane

import (
	"encoding/json"
	"strings"

	"goblin/registry"
	"goblin/registry/recording"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

const runningText = recording.RunningText

func isNotification(r *registry.TrafficRecord) bool { return recording.IsNotification(r) }

// IsFailure reports whether a request failed.
func IsFailure(r *registry.TrafficRecord) bool { return recording.IsFailure(r) }

func statusText(r *registry.TrafficRecord) string { return recording.StatusText(r) }

// markedStatusText returns the status with "!" for a failure and "*" for rules.
func markedStatusText(r *registry.TrafficRecord) string {
	rules := ""
	if len(r.Events) > 0 {
		rules = "*"
	}
	switch {
	case r.Status == registry.StatusInFlight:
		return "~ " + runningText // as wide as the spinner
	case IsFailure(r):
		return "!" + statusText(r) + rules
	}
	return statusText(r) + rules
}

func nameAtServer(r *registry.TrafficRecord) string {
	if own, ok := strings.CutPrefix(r.Name, "mcp://"+r.Server+"/"); ok && r.Server != "" {
		return own
	}
	return r.Name
}

func recordSize(r *registry.TrafficRecord) int64 { return recording.Size(r) }

// callArguments returns the arguments of a recorded call of a tool or prompt, or false if
// they were truncated.
func callArguments(r *registry.TrafficRecord) (args json.RawMessage, ok bool) {
	var p struct {
		Arguments json.RawMessage `json:"arguments"`
	}
	if len(r.Request) == 0 || json.Unmarshal(r.Request, &p) != nil {
		return nil, false
	}
	return p.Arguments, true
}

func logTailBlocks(lk *theme.Theme, tail []*logRow) []viewer.Section {
	if len(tail) == 0 {
		return nil
	}
	var b strings.Builder
	for i, r := range tail {
		if i > 0 {
			b.WriteByte('\n')
		}
		last := r.Time
		if r.times > 1 {
			last = r.last
		}
		b.WriteString(last.Format("15:04:05") + " ")
		if r.Source == registry.SourceMessage {
			b.WriteString(strings.ToLower(r.Level.String()) + " ")
		}
		b.WriteString(uicontext.CutText(strings.TrimRight(uicontext.SanitizeLine(r.Text), " "), 2000))
		if r.times > 1 {
			b.WriteString("  " + lk.Own("× ") + uicontext.FormatInt(r.times))
		}
	}
	return []viewer.Section{{Title: "Last lines of stderr and messages", Kind: viewer.Text, Text: b.String()}}
}
