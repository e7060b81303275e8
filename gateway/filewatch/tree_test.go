package filewatch_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/filewatch"
)

func TestGlobsSelectFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		patterns string
		yes, no  string
	}{
		{"", "a.go src/deep/x.ts package.json Makefile", "a.txt data.json node_modules/a.js .git/a.go .env.js x.go~"},
		{"!**/*_test.go", "a.go b/c.go", "a_test.go b/c_test.go a.txt"},
		{"auto assets/*", "a.go assets/x.txt", "x.txt"},
		{"*.py", "a.py", "src/a.py"},
		{"**/*.py", "a.py src/a.py a/b/c/d.py", "a.pyc"},
		{"src", "src/a src/b/c.txt", "a src2/a"},
		{"./src/", "src/a", "a"},
		{".", "a b/c.txt", ".hidden"},
		{"src/*", "src/a", "src/b/c"},
		{"src/**/x/*.{ts,js}", "src/x/a.ts src/p/q/x/b.js", "src/x/y/a.ts x/a.ts src/x/a.rs"},
		{"{a,b}/{c,d}", "a/c a/d/e b/d", "a/e"},
		{"dist/**", "dist/a.js dist/b/c.js", "a.js"},
		{"../shared/**/*.go", "../shared/a.go ../shared/b/c.go", "a.go ../other/a.go"},
		{"**/.env", ".env a/.env", "a/env"},
		{"**/a/**/b/**", "a/b x/a/y/b/z", "a/x b/a"},
		{"[ab]?.c", "a1.c b2.c", "c1.c a.c"},
	} {
		g, err := filewatch.ParseGlobs(strings.Fields(c.patterns)...)
		require.NoError(t, err)
		selects := func(file string) bool {
			for dir := filepath.Dir(file); dir != "."; dir = filepath.Dir(dir) {
				if dir != ".." && !g.Enter(dir) {
					return false
				}
			}
			return g.Match(file)
		}
		for _, file := range strings.Fields(c.yes) {
			require.True(t, selects(file), "%q selects %s", c.patterns, file)
		}
		for _, file := range strings.Fields(c.no) {
			require.False(t, selects(file), "%q does not select %s", c.patterns, file)
		}
	}
}

func TestWrongGlobsAreErrors(t *testing.T) {
	t.Parallel()
	for pattern, why := range map[string]string{
		"": "is empty", "!": "is empty", "a[": `needs a closing "]"`, "a{b": `"{" without "}"`, "a}": `"}" without "{"`,
		"{a,{b}}": `"{" inside`, "/etc/*": "must be relative", strings.Repeat("{a,b}", 9): "more than 64 patterns", strings.Repeat("a/", 61): "more than 60 names",
	} {
		_, err := filewatch.ParseGlobs(pattern)
		require.ErrorContains(t, err, why, pattern)
	}
}

func FuzzGlobs(f *testing.F) {
	f.Add("src/**/{a,b}*.[ch]", "src/x/a.c")
	f.Add("!**", "..")
	f.Fuzz(func(t *testing.T, pattern, file string) {
		g, err := filewatch.ParseGlobs(pattern)
		if err != nil || strings.Contains(pattern, "!") || strings.Contains(pattern, "{") || file == "" {
			return
		}
		if g.Match(file) && filepath.Dir(file) != "." && !strings.ContainsAny(file, "./~\\") {
			require.True(t, g.Enter(filepath.Dir(file)))
		}
	})
}

// changes collects what a tree reports.
type changes struct {
	mu   sync.Mutex
	more sync.Cond
	sets [][]string
}

// watch reports the changes of a folder until the test ends.
func watchTree(t *testing.T, folder string, patterns ...string) *changes {
	t.Helper()
	g, err := filewatch.ParseGlobs(patterns...)
	require.NoError(t, err)
	c := &changes{}
	c.more.L = &c.mu
	tree := filewatch.NewTree(folder, g)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		tree.Run(ctx, func(files []string) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.sets = append(c.sets, files)
			c.more.Broadcast()
		})
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return c
}

// until waits until a file was reported and returns all reported files.
func (c *changes) until(file string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !slices.Contains(slices.Concat(c.sets...), file) {
		c.more.Wait()
	}
	all := slices.Concat(c.sets...)
	c.sets = nil
	slices.Sort(all)
	return slices.Compact(all)
}

func put(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestATreeReportsChangesOfSelectedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	put(t, at("a.go"), "1")
	put(t, at("old/b.go"), "1")
	c := watchTree(t, dir)

	put(t, at("a.go"), "22")
	require.Equal(t, []string{"a.go"}, c.until("a.go"))

	// Editors write another file and rename it.
	put(t, at("a.go.tmp"), "33")
	require.NoError(t, os.Rename(at("a.go.tmp"), at("a.go")))
	require.Equal(t, []string{"a.go"}, c.until("a.go"))

	// A new folder is watched, and outputs are not.
	put(t, at("new/deep/c.go"), "1")
	require.Equal(t, []string{"new/deep/c.go"}, c.until("new/deep/c.go"))
	put(t, at("dist/c.go"), "1")
	put(t, at("node_modules/x/c.js"), "1")
	put(t, at("notes.txt"), "1")
	put(t, at("new/deep/d.go"), "1")
	require.Equal(t, []string{"new/deep/d.go"}, c.until("new/deep/d.go"))

	require.NoError(t, os.Rename(at("old"), at("moved")))
	require.Equal(t, []string{"moved/b.go", "old/b.go"}, c.until("moved/b.go"))
	require.NoError(t, os.RemoveAll(at("moved")))
	require.Equal(t, []string{"moved/b.go"}, c.until("moved/b.go"))
}

func TestATreeReportsEachFileOfABurst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := watchTree(t, dir, "**/*.txt")
	var all []string
	for i := range 300 {
		name := string(rune('a'+i%26)) + strings.Repeat("x", i/26) + ".txt"
		put(t, filepath.Join(dir, name), "1")
		all = append(all, name)
	}
	put(t, filepath.Join(dir, "zz.txt"), "last")
	all = append(all, "zz.txt")
	slices.Sort(all)
	require.Equal(t, all, c.until("zz.txt"))
}
