package repocheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// starters are the packages that start programs. None of them takes a program or an
// address from server data.
var starters = map[string]string{
	"gateway/browser":     "the user's browser, for a login that the user began",
	"gateway/command":     "the user's editor, and Goblin itself",
	"gateway/daemon":      "Goblin itself, in the background",
	"gateway/remoteui":    "the user's pager and editor",
	"gateway/servercheck": "the command of a server, and npx for the conformance suite",
	"gateway/secrets":     "the program of a ${cmd:} reference in the config",
	"gateway/upstream":    "the command of a server in the config",
	"gateway/watcher":     "the shell, with the line of \"goblin watch --exec\"",
	"gateway/childproc":   "ps, to measure the servers' processes",
	"meta/lua":            "Goblin itself, for a script",
	"gateway/devloop":     "the build of a server in the config",
}

// TestFewPackagesStartPrograms checks that no other package starts a program, so that
// server text can't become a command there.
func TestFewPackagesStartPrograms(t *testing.T) {
	used := make(map[string]bool)
	for name, files := range parsed(t) {
		for path, f := range files {
			ast.Inspect(f, func(n ast.Node) bool {
				if !startsProgram(n) {
					return true
				}
				used[name] = true
				if starters[name] == "" {
					t.Errorf("%s starts a program; add %s to starters", path, name)
				}
				return true
			})
		}
	}
	for name := range starters {
		require.True(t, used[name], "%s starts no program; remove it from starters", name)
	}
}

// startsProgram reports whether a node creates a command or a process. Code that only
// receives an *exec.Cmd doesn't count.
func startsProgram(n ast.Node) bool {
	if made, ok := n.(*ast.CompositeLit); ok {
		return selects(made.Type, "exec", "Cmd")
	}
	return selects(n, "exec", "Command", "CommandContext") || selects(n, "os", "StartProcess") || selects(n, "syscall", "Exec", "ForkExec", "StartProcess")
}

// selects reports whether a node is one of a package's names.
func selects(n ast.Node, from string, names ...string) bool {
	s, ok := n.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, ok := s.X.(*ast.Ident)
	return ok && of.Name == from && slices.Contains(names, s.Sel.Name)
}

// configEditors are the daemon's methods that write the config.
var configEditors = []string{"AddDefinition", "RemoveServer"}

// TestOnlyUIsEditTheConfigOfADaemon checks that no client request or control operation
// edits the config: only the UI's actions call these methods.
func TestOnlyUIsEditTheConfigOfADaemon(t *testing.T) {
	found := false
	for name, files := range parsed(t) {
		for path, f := range files {
			ast.Inspect(f, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok || !slices.Contains(configEditors, s.Sel.Name) {
					return true
				}
				found = true
				if !under(name, "tui") && filepath.Base(path) != "client.go" { // the UI's actions
					t.Errorf("%s calls %s, which edits the config", path, s.Sel.Name)
				}
				return true
			})
		}
	}
	require.True(t, found, "no calls of %v; update configEditors", configEditors)
}

// parsed returns the syntax of all production files by package and path.
func parsed(t *testing.T) map[string]map[string]*ast.File {
	t.Helper()
	all := make(map[string]map[string]*ast.File)
	for _, p := range load(t) {
		if under(p.name, tests) || under(p.name, "gateway/internal") || under(p.name, "gateway/bench") {
			continue
		}
		all[p.name] = make(map[string]*ast.File)
		for _, name := range slices.Concat(p.GoFiles, p.IgnoredGoFiles) {
			path := filepath.Join(p.Dir, name)
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			all[p.name][path] = f
		}
	}
	return all
}
