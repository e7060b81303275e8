package servercheck

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"goblin/registry/report"
	"goblin/registry/termtext"
)

// Finding is a defect of the server.
type Finding struct {
	Rule    string `json:"rule"`
	Level   string `json:"level"`
	Subject string `json:"subject"`
	Text    string `json:"text"`
	Why     string `json:"why"`
	Fix     string `json:"fix"`
}

// Tool holds the size of a tool and its name for clients of Goblin.
type Tool struct {
	Name   string `json:"name"`
	Listed string `json:"listed,omitempty"` // "" if Goblin does not list it
	report.Definitions
}

// Result is the outcome of a check.
type Result struct {
	Server    string `json:"serverId"`
	Transport string `json:"transport"`
	Name      string `json:"name,omitempty"` // that the server gives itself, with its version
	Protocol  string `json:"protocolVersion,omitempty"`
	// InitializeMs is the time from the start until the answer to initialize, ListMs that
	// of each list.
	InitializeMs float64            `json:"initializeMs,omitempty"`
	ListMs       map[string]float64 `json:"listMs,omitempty"`
	Entries      map[string]int     `json:"entries"` // by kind
	Tools        []Tool             `json:"tools"`
	Definitions  report.Definitions `json:"definitions"` // of all tools
	Errors       int                `json:"errors"`
	Warnings     int                `json:"warnings"`
	Notes        int                `json:"notes"`
	Findings     []Finding          `json:"findings"`
	Conformance  *Conformance       `json:"conformance,omitempty"`
	// Diagnosis explains why the server could not be checked, otherwise nil.
	Diagnosis *report.Diagnosis `json:"diagnosis,omitempty"`
}

// levels is the order of levels in outputs.
var levels = []string{report.LevelError, report.LevelWarning, report.LevelNote}

func (r *Result) finish() {
	order := make(map[string]int, len(rules))
	for i := range rules {
		order[rules[i].ID] = i
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(slices.Index(levels, a.Level)-slices.Index(levels, b.Level), order[a.Rule]-order[b.Rule])
	})
	for _, f := range r.Findings {
		switch f.Level {
		case report.LevelError:
			r.Errors++
		case report.LevelWarning:
			r.Warnings++
		default:
			r.Notes++
		}
	}
}

// Text returns the findings by level, one per line, and a summary. The effect and the fix
// follow the last finding of a rule.
func (r *Result) Text() string {
	var out strings.Builder
	level := ""
	for i, f := range r.Findings {
		if f.Level != level {
			level = f.Level
			fmt.Fprintf(&out, "%s\n", map[string]string{report.LevelError: "Errors: clients refuse or break", report.LevelWarning: "Warnings", report.LevelNote: "Notes"}[level])
		}
		fmt.Fprintf(&out, "  %s  %s: %s\n", f.Rule, f.Subject, f.Text)
		if i+1 == len(r.Findings) || r.Findings[i+1].Rule != f.Rule || r.Findings[i+1].Level != level {
			fmt.Fprintf(&out, "    %s; fix: %s\n", f.Why, f.Fix)
		}
	}
	if c := r.Conformance; c != nil {
		fmt.Fprintf(&out, "Conformance\n  %s\n", c.Text())
	}
	fmt.Fprintf(&out, "%s: %s, %s, %s", r.Server, termtext.Count(r.Errors, "error"), termtext.Count(r.Warnings, "warning"), termtext.Count(r.Notes, "note"))
	if r.Name != "" {
		fmt.Fprintf(&out, "; %s", r.Name)
	}
	fmt.Fprintf(&out, "; %s, %s tokens", termtext.Count(r.Entries["tool"], "tool"), termtext.FormatCount(r.Definitions.Tokens))
	if r.InitializeMs > 0 {
		fmt.Fprintf(&out, "; ready after %s", termtext.Millis(r.InitializeMs))
	}
	out.WriteByte('\n')
	return out.String()
}

// SARIF returns the findings for the file and line that define the server. file may be
// "".
func (r *Result) SARIF(version, file string, line int) []byte {
	described := make([]report.Rule, len(rules))
	for i, rule := range rules {
		described[i] = report.Rule{ID: rule.ID, Level: rule.Level, Short: rule.Short, Help: fmt.Sprintf("Why: %s. Fix: %s.", rule.Why, rule.Fix)}
	}
	findings := make([]report.Finding, len(r.Findings))
	for i, f := range r.Findings {
		findings[i] = report.Finding{
			Rule: f.Rule, Level: f.Level, Subject: r.Server + "/" + f.Subject, File: file, Line: line,
			Text: fmt.Sprintf("%s: %s: %s. Why: %s. Fix: %s.", r.Server, f.Subject, f.Text, f.Why, f.Fix),
		}
	}
	return report.SARIF(version, findings, described...)
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
