package repocheck

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	codeSpan     = regexp.MustCompile("`([^`]+)`(:?)")
	folderName   = regexp.MustCompile(`^[a-z][a-z0-9_/]*$`)
	testName     = regexp.MustCompile(`^((?:Test|Fuzz)\w+)(?:/(.+))?$`)
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
)

// testSources contains the tests of all packages and platforms.
type testSources struct {
	folders map[string][]string // package folders by test name
	text    string
}

// TestDocumentsNameTestsThatExist checks each test that SECURITY.md and FAULTS.md
// mention, also its package if that precedes it.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	sources := readTests(t)
	for _, path := range []string{"SECURITY.md", "gateway/FAULTS.md"} {
		text, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		named := 0
		for i, line := range strings.Split(string(text), "\n") {
			n, mistakes := sources.check(line)
			named += n
			for _, mistake := range mistakes {
				t.Errorf("%s:%d: %s", path, i+1, mistake)
			}
		}
		require.Greater(t, named, 50, "%s mentions few tests; write them as `TestName`", path)
	}
}

// TestWrongNamesOfTestsAreFound checks that the check can fail.
func TestWrongNamesOfTestsAreFound(t *testing.T) {
	sources := testSources{folders: map[string][]string{"TestA": {"gateway/a"}, "FuzzB": {"gateway/b"}}, text: `{"a row": 1}`}
	for line, mistakes := range map[string][]string{
		"| x | `TestA` `FuzzB` `TestA/a row`, `TestA/a_row` |": nil,
		"| x | `gateway/a`: `TestA`, `gateway/b`: `FuzzB` |":   nil,
		"| `gateway/b`: x | `TestA` |":                         nil, // a package applies to its cell
		"see `TestC`":                                          {"TestC does not exist"},
		"| x | `gateway/b`: `FuzzB` `TestA` |":                 {"TestA is not in gateway/b"},
		"`TestA/another row`":                                  {`TestA has no "another row"`},
	} {
		_, found := sources.check(line)
		require.Equal(t, mistakes, found, line)
	}
}

// TestPromisesNameTests checks that each row of a table of promises names a test or code
// to read.
func TestPromisesNameTests(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	require.NoError(t, err)
	inTable, promises := false, 0
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "| promise "):
			inTable = true
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case inTable && !strings.HasPrefix(line, "|---"):
			promises++
			if n, _ := (testSources{}).check(line); n == 0 && !strings.Contains(line, "by reading") {
				t.Errorf("row without a test: %s", line)
			}
		}
	}
	require.Greater(t, promises, 20)
}

// check counts the tests in a line of a document, and returns the mistakes in their
// names.
func (s testSources) check(line string) (named int, mistakes []string) {
	for cell := range strings.SplitSeq(line, "|") {
		folder := ""
		for _, span := range codeSpan.FindAllStringSubmatch(cell, -1) {
			if span[2] != "" && folderName.MatchString(span[1]) {
				folder = span[1]
			}
			test := testName.FindStringSubmatch(span[1])
			if test == nil {
				continue
			}
			named++
			name, row := test[1], test[2]
			switch folders := s.folders[name]; {
			case len(folders) == 0:
				mistakes = append(mistakes, name+" does not exist")
			case folder != "" && !slices.Contains(folders, folder):
				mistakes = append(mistakes, fmt.Sprintf("%s is not in %s", name, folder))
			case row != "" && !s.hasRow(row):
				mistakes = append(mistakes, fmt.Sprintf("%s has no %q", name, row))
			}
		}
	}
	return named, mistakes
}

// hasRow reports whether a test has a row with a name, which `go test` prints with
// underscores.
func (s testSources) hasRow(row string) bool {
	return strings.Contains(s.text, `"`+row+`"`) || strings.Contains(s.text, `"`+strings.ReplaceAll(row, "_", " ")+`"`)
}

func readTests(t *testing.T) testSources {
	t.Helper()
	sources := testSources{folders: make(map[string][]string)}
	var all strings.Builder
	require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, test := range testFunction.FindAllSubmatch(text, -1) {
			name := string(test[1])
			sources.folders[name] = append(sources.folders[name], filepath.ToSlash(folder))
		}
		all.Write(text)
		return nil
	}))
	sources.text = all.String()
	return sources
}
