package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFaultsAreShownByTestsThatExist reads FAULTS.md: every row names tests,
// and all of these are there.
func TestFaultsAreShownByTestsThatExist(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	files, err := filepath.Glob("../../*/*_test.go")
	require.NoError(t, err)
	for _, pattern := range []string{"../*/*_test.go", "../*/*/*_test.go", "../../*_test.go"} {
		more, err := filepath.Glob(pattern)
		require.NoError(t, err)
		files = append(files, more...)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		code.Write(text)
	}
	table, err := os.ReadFile("../FAULTS.md")
	require.NoError(t, err)
	name := regexp.MustCompile("`(Test[A-Za-z0-9_]+)(/([A-Za-z0-9_]+))?`")
	for line := range strings.Lines(string(table)) {
		if !regexp.MustCompile(`^\| [A-Z][0-9]{2}`).MatchString(line) {
			continue
		}
		tests := name.FindAllStringSubmatch(line, -1)
		require.NotEmpty(t, tests, line)
		for _, test := range tests {
			require.Contains(t, code.String(), "func "+test[1]+"(", line)
			require.Contains(t, code.String(), test[3], line)
		}
	}
	for n := range 46 {
		require.Contains(t, string(table), fmt.Sprintf("| B%02d |", n+1))
	}
}
