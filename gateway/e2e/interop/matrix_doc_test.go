//go:build interop

package interop

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every two of client, server and front meet in a run, except for the client that knows
// only one transport.
func TestInteropMatrixRunsArePairwise(t *testing.T) {
	met := map[string]bool{}
	for _, r := range matrixRuns() {
		for _, pair := range [][2]string{
			{r.client.String(), r.server.kind},
			{r.client.String(), r.server.sdk},
			{r.client.String(), r.front},
			{r.client.revision, r.server.String()},
			{r.server.String(), r.front},
		} {
			met[pair[0]+" with "+pair[1]] = true
		}
	}
	needs := func(a, b string) { require.Contains(t, met, a+" with "+b) }
	for _, front := range []string{"stdio", "HTTP"} {
		for _, s := range matrixServers {
			needs(s.String(), front)
		}
		for _, c := range matrixClients {
			if c.way == "" || c.way == front {
				needs(c.String(), front)
			}
		}
	}
	for _, c := range matrixClients {
		for _, sdk := range []string{ts1, ts2, goes} {
			needs(c.String(), sdk)
		}
		for _, kind := range matrixKinds {
			needs(c.String(), kind)
		}
		for _, s := range matrixServers {
			needs(c.revision, s.String())
		}
	}
}

// matrixTable has a table per revision: features down, kinds of servers across.
func matrixTable(runs []matrixRun, failed map[string]bool) string {
	var b strings.Builder
	for _, revision := range []string{"2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"} {
		fmt.Fprintf(&b, "## Client %s\n\n| | %s |\n|---%s|\n", revision, strings.Join(matrixKinds, " | "), strings.Repeat("|---", len(matrixKinds)))
		for _, s := range matrixSteps {
			fmt.Fprintf(&b, "| %s |", s.step)
			for _, kind := range matrixKinds {
				fmt.Fprintf(&b, " %s |", matrixMark(runs, failed, revision, kind, s.step))
			}
			b.WriteString("\n")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func matrixMark(runs []matrixRun, failed map[string]bool, revision, kind, step string) string {
	if failed[cell(revision, kind, step)] {
		return "**fails**"
	}
	var notes []string
	passes := false
	for _, r := range runs {
		if r.client.revision != revision || r.server.kind != kind {
			continue
		}
		if n := exceptionOf(r, step); n < 0 {
			passes = true
		} else if note := fmt.Sprintf("[%d]", n+1); !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	slices.Sort(notes)
	if passes {
		notes = slices.Insert(notes, 0, "yes")
	}
	return strings.Join(notes, " ")
}

const matrixIntro = `<!-- Written by TestInteropMatrixOfRevisionsAndBackends; see CONTRIBUTING.md. -->
# Clients and servers of different revisions

Results of clients and servers of different revisions through Goblin, with the
official SDKs on both ends. "yes" means the expected result: the one that programs
get without Goblin if they understand each other. *Legacy* servers speak the
revisions up to 2025-11-25, *modern* ones only 2026-07-28, *dual* ones both.
A number in brackets refers to a note below the tables.

`

func matrixDocument(runs []matrixRun, table string) string {
	var b strings.Builder
	b.WriteString(matrixIntro + table)
	if len(matrixExceptions) > 0 {
		b.WriteString("## Notes\n\n")
	}
	for i, e := range matrixExceptions {
		fmt.Fprintf(&b, "%d. %s: %s. The answer: `%s`\n", i+1, e.step, e.why, e.answer)
	}
	b.WriteString("\n## Runs\n\nEach run does all steps in one session.\n\n| client | to Goblin over | server |\n|---|---|---|\n")
	for _, r := range runs {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.client, r.front, r.server)
	}
	return b.String()
}
