//go:build e2e || faults

package faults

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rows are the faults and threats that FAULTS.md has to tell of: so many of
// each letter, from 01 on.
var rows = map[string]int{"B": 46, "C": 20, "H": 21, "P": 18}

var (
	rowID    = regexp.MustCompile(`\b([BCHP])(\d\d)(?:\s*(?:to|-|–)\s*[BCHP]?(\d\d))?\b`)
	quoted   = regexp.MustCompile("`((?:Test|Fuzz)[^`]+)`")
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
)

// TestFaultsTableIsComplete keeps FAULTS.md to what there is: each row names
// tests that exist, or says who has to look for himself.
func TestFaultsTableIsComplete(t *testing.T) {
	table, err := os.ReadFile("../../FAULTS.md")
	require.NoError(t, err)
	tests, sources := everyTest(t)
	shown := map[string]bool{}
	for line := range strings.Lines(string(table)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "|") || len(cells) < 3 {
			continue
		}
		exist(t, line, tests, sources)
		names := quoted.FindAllStringSubmatch(cells[len(cells)-1], -1)
		for _, id := range ids(cells[0]) {
			require.True(t, len(names) > 0 || strings.Contains(line, "by reading"), "%s names no test", id)
			shown[id] = true
		}
	}
	for letter, n := range rows {
		for i := 1; i <= n; i++ {
			id := fmt.Sprintf("%s%02d", letter, i)
			require.True(t, shown[id], "FAULTS.md does not tell of %s", id)
		}
	}
}

// exist fails for each test that a document names and nobody wrote.
func exist(t *testing.T, document string, tests map[string]bool, sources string) {
	t.Helper()
	for _, name := range quoted.FindAllStringSubmatch(document, -1) {
		top, sub, found := strings.Cut(name[1], "/")
		require.True(t, tests[top], "%s does not exist", top)
		if found {
			require.True(t, strings.Contains(sources, `"`+sub+`"`) || strings.Contains(sources, `"`+strings.ReplaceAll(sub, "_", " ")+`"`), "%s has no %q", top, sub)
		}
	}
}

// TestPromisesNameTheirTests keeps SECURITY.md to what is shown: each promise names
// tests that exist, or says what has to be read.
func TestPromisesNameTheirTests(t *testing.T) {
	text, err := os.ReadFile("../../../SECURITY.md")
	require.NoError(t, err)
	tests, sources := everyTest(t)
	exist(t, string(text), tests, sources)
	promised, promises := false, 0
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "| promise "):
			promised = true
		case !strings.HasPrefix(line, "|"):
			promised = false
		case promised && !strings.HasPrefix(line, "|---"):
			promises++
			require.True(t, quoted.MatchString(line) || strings.Contains(line, "by reading"), "no test shows: %s", line)
		}
	}
	require.Greater(t, promises, 20)
}

// ids are the rows that a cell names, with those in between.
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

// everyTest finds the tests of all packages and platforms.
func everyTest(t *testing.T) (names map[string]bool, sources string) {
	t.Helper()
	names = map[string]bool{}
	var all strings.Builder
	require.NoError(t, filepath.WalkDir("../../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range testFunc.FindAllSubmatch(text, -1) {
			names[string(m[1])] = true
		}
		all.Write(text)
		return err
	}))
	return names, all.String()
}
