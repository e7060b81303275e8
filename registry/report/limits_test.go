package report_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry/report"
)

func TestLimitsOfClientsSayWhatMendsThem(t *testing.T) {
	t.Parallel()
	seen := report.ListSizes{Tools: 129, Instructions: 4000, LongName: strings.Repeat("n", 54), LongestDescribed: "x", Description: 2049}
	for client, want := range map[string][]string{
		"claude-code": {"name", "description", "instructions"}, "cursor-vscode": {"tools", "name"},
		"Visual Studio Code - Insiders": {"tools"}, "windsurf-client": {"tools"}, "my-editor": nil, "": nil,
	} {
		var got []string
		for _, b := range report.LimitsFor(client).Violations(client, seen) {
			require.Greater(t, b.Actual, b.Limit)
			require.NotEmpty(t, b.Fix)
			got = append(got, b.Kind)
		}
		require.Equal(t, want, got, client)
		require.Empty(t, report.LimitsFor(client).Violations(client, report.ListSizes{Tools: 40, LongName: strings.Repeat("n", 51)}))
	}
	for _, l := range report.KnownLimits {
		require.Contains(t, l.Source, "https://")
	}
}
