// Package build shows builds and restarts of servers whose files are watched.
//
// It draws what [registry.Build] holds. [News] belongs to one UI; the rest has no state.
package build

import (
	"fmt"
	"strings"
	"time"

	"goblin/registry"
	"goblin/registry/termtext"
	"goblin/tui/theme"
	"goblin/tui/viewer"
)

// Label describes a build in one cell, such as "restarted 3 s ago: +1 ~2". b may be nil.
func Label(lk *theme.Theme, b *registry.Build, now time.Time) (string, theme.Style) {
	if b == nil {
		return "", ""
	}
	switch b.Phase {
	case registry.BuildRunning, registry.BuildRestarting:
		return fmt.Sprintf("%s %s", b.Phase, elapsed(b, now)), lk.Warn
	case registry.BuildFailed, registry.BuildNotStarted:
		return string(b.Phase), lk.Bad
	case registry.BuildRestarted:
		ago := fmt.Sprintf("%s ago: %s", elapsed(b, now), b.Summary())
		if n := b.FailedChecks(); n > 0 {
			return fmt.Sprintf("%d failed %s", n, ago), lk.Bad
		}
		return "restarted " + ago, lk.Good
	}
	return string(b.Phase), lk.Dim
}

func elapsed(b *registry.Build, now time.Time) string {
	return termtext.Age(max(0, now.Sub(b.Since)))
}

// Version changes whenever [Sections] does.
func Version(b *registry.Build) string {
	if b == nil {
		return ""
	}
	return fmt.Sprintf(" build %d %s %d %s %d", b.Number, b.Phase, len(b.Checks), b.Warning, b.Watched)
}

// Sections returns the part of a server's detail about its last build. b may be nil.
func Sections(lk *theme.Theme, b *registry.Build) []viewer.Section {
	if b == nil {
		return nil
	}
	style := theme.Style("")
	if b.Failed() {
		style = lk.Bad
	}
	state := string(b.Phase)
	if !b.Since.IsZero() {
		state += " at " + b.Since.Format("15:04:05")
	}
	facts := []viewer.Field{
		{Label: "build", Value: state, Style: style},
		{Label: "error", Value: b.Error, Style: lk.Bad},
		{Label: "changed", Value: b.Files},
		{Label: "command", Value: b.Command},
		{Label: "watching", Value: termtext.Count(b.Watched, "file")},
		{Label: "warning", Value: b.Warning, Style: lk.Warn},
	}
	if b.Took > 0 {
		facts = append(facts, viewer.Field{Label: "took", Value: termtext.Duration(b.Took)})
	}
	all := []viewer.Section{{Title: "Last build", Kind: viewer.Fields, Fields: facts}}
	if b.Phase == registry.BuildRestarted {
		all = append(all, viewer.Section{Title: "Differences from the build before", Kind: viewer.Text, Text: differences(b)})
	}
	if len(b.Checks) > 0 {
		all = append(all, viewer.Section{Title: "Saved calls", Kind: viewer.Fields, Fields: checks(lk, b)})
	}
	if output := strings.TrimSpace(b.Output); output != "" {
		all = append(all, viewer.Section{Title: "Output of the build", Kind: viewer.Text, Text: output})
	}
	return all
}

func differences(b *registry.Build) string {
	if len(b.Changes) == 0 {
		return b.Summary()
	}
	lines := make([]string, len(b.Changes))
	for i := range b.Changes {
		lines[i] = termtext.Line(b.Changes[i].Line())
	}
	return strings.Join(lines, "\n")
}

func checks(lk *theme.Theme, b *registry.Build) []viewer.Field {
	all := make([]viewer.Field, len(b.Checks))
	for i, c := range b.Checks {
		all[i] = viewer.Field{Label: "passed", Value: c.Name}
		if !c.OK {
			all[i] = viewer.Field{Label: "failed", Value: c.Name + ": " + c.Text, Style: lk.Bad}
		}
	}
	return all
}

// News finds builds that a UI has not announced yet.
type News map[string]announced

type announced struct {
	number, checks int
	phase          registry.BuildPhase
}

// Next returns a message about the last finished build, or "". bad is set for failures.
func (n News) Next(states []registry.ServerState) (text string, bad bool) {
	for i := range states {
		s := &states[i]
		b := s.Build
		if b == nil {
			delete(n, s.Name)
			continue
		}
		before, known := n[s.Name]
		now := announced{b.Number, len(b.Checks), b.Phase}
		n[s.Name] = now
		if before == now || !known && b.Phase == registry.BuildWatching {
			continue
		}
		switch b.Phase {
		case registry.BuildFailed:
			text, bad = fmt.Sprintf("build of %s failed: %s", s.Name, b.Error), true
		case registry.BuildNotStarted:
			text, bad = fmt.Sprintf("%s did not start: %s", s.Name, b.Error), true
		case registry.BuildRestarted:
			text, bad = fmt.Sprintf("restarted %s: %s", s.Name, b.Summary()), b.FailedChecks() > 0
			if len(b.Changes) > 0 {
				text += "; " + b.Changes[0].Line()
			}
			if bad {
				text += fmt.Sprintf("; %s failed", termtext.Count(b.FailedChecks(), "saved call"))
			}
		}
	}
	return text, bad
}
