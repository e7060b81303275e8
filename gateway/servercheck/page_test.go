package servercheck_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/servercheck"
)

func TestThePageListsAllRules(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../CHECKS.md")
	require.NoError(t, err)
	rows := make(map[string]bool)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| `") {
			rows[strings.TrimSpace(line)] = true
		}
	}
	for _, r := range servercheck.Rules() {
		row := fmt.Sprintf("| `%s` | %s | %s | %s | %s |", r.ID, r.Level, r.Short, r.Why, r.Fix)
		require.True(t, rows[row], "missing in CHECKS.md:\n%s", row)
		delete(rows, row)
	}
	require.Empty(t, rows, "rows without a rule")
}
