//go:build e2e || faults

package faults

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rows are the faults and threats in FAULTS.md: the number of rows per letter, from 01
// on.
var rows = map[string]int{"B": 46, "C": 20, "H": 21, "P": 18}

var (
	rowID  = regexp.MustCompile(`\b([BCHP])(\d\d)(?:\s*(?:to|-|–)\s*[BCHP]?(\d\d))?\b`)
	quoted = regexp.MustCompile("`((?:Test|Fuzz)[^`]+)`")
)

// TestFaultsTableIsComplete checks that FAULTS.md has all rows, each with a test or a
// reference. TestDocumentsNameTestsThatExist checks the names.
func TestFaultsTableIsComplete(t *testing.T) {
	table, err := os.ReadFile("../../FAULTS.md")
	require.NoError(t, err)
	shown := map[string]bool{}
	for line := range strings.Lines(string(table)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "|") || len(cells) < 3 {
			continue
		}
		names := quoted.FindAllStringSubmatch(cells[len(cells)-1], -1)
		for _, id := range ids(cells[0]) {
			require.True(t, len(names) > 0 || strings.Contains(line, "by reading"), "%s names no test", id)
			shown[id] = true
		}
	}
	for letter, n := range rows {
		for i := 1; i <= n; i++ {
			id := fmt.Sprintf("%s%02d", letter, i)
			require.True(t, shown[id], "FAULTS.md does not contain %s", id)
		}
	}
}

// ids returns the rows that a cell names, including ranges.
func ids(cell string) (found []string) {
	for _, m := range rowID.FindAllStringSubmatch(cell, -1) {
		from, _ := strconv.Atoi(m[2]) // it is two digits
		to := from
		if m[3] != "" {
			to, _ = strconv.Atoi(m[3])
		}
		for i := from; i <= to; i++ {
			found = append(found, fmt.Sprintf("%s%02d", m[1], i))
		}
	}
	return found
}
