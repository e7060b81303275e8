//go:build e2e && !windows

package security

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// bound returns a program and arguments that run Goblin bound by file modes. Root loses the
// capabilities that override them.
func bound(t *testing.T, args ...string) (string, []string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return e2e.Goblin, args
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip("root reads all files without setpriv")
	}
	return setpriv, append([]string{"--bounding-set=-dac_override,-dac_read_search", e2e.Goblin}, args...)
}

// runBound runs a command of Goblin as [bound] does, and returns all it prints.
func runBound(w *e2e.World, args ...string) (code int, text string) {
	var stdout bytes.Buffer
	path, args := bound(w.T, args...)
	p := w.Execute(path, func(cmd *exec.Cmd) { cmd.Stdout = &stdout }, args...)
	code = p.Ends(e2e.Patience)
	return code, stdout.String() + p.Stderr.String()
}

// lock removes all rights to paths from their owner. It returns a function that restores
// them, which also runs at the end of the test.
func lock(t *testing.T, paths ...string) (unlock func()) {
	t.Helper()
	modes := make([]fs.FileMode, len(paths))
	for i, path := range paths {
		info, err := os.Stat(path)
		require.NoError(t, err)
		modes[i] = info.Mode().Perm()
		require.NoError(t, os.Chmod(path, 0))
	}
	unlock = func() {
		for i, path := range paths {
			_ = os.Chmod(path, modes[i])
		}
	}
	t.Cleanup(unlock)
	return unlock
}

// places return the unreadable part of the state, by the path of a file.
var places = map[string]func(file string) []string{
	"file":         func(file string) []string { return []string{file, file + ".good"} },
	"folder":       func(file string) []string { return []string{filepath.Dir(file)} },
	"state folder": func(file string) []string { return []string{filepath.Dir(filepath.Dir(file))} },
	"outer folder": func(file string) []string { return []string{filepath.Dir(filepath.Dir(filepath.Dir(file)))} },
}

func TestAnUnreadableFileOfDisabledToolsEnablesNothing(t *testing.T) {
	t.Parallel()
	for name, of := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, file := withDisabled(t)
			unlock := lock(t, of(file)...)
			for _, args := range [][]string{{"stdio", "--standalone"}, {"stdio"}} {
				w.AllowDaemon = w.AllowDaemon || len(args) == 1
				path, args := bound(t, args...)
				c := w.PipeTo(path, args...)
				c.Init()
				for _, tool := range []string{"files_gone", "files_keep"} {
					message := c.Fault("tools/call", e2e.Obj{"name": tool, "arguments": e2e.Obj{}}).Message
					require.Contains(t, message, "the file of disabled entries is damaged; run goblin doctor")
				}
				require.Empty(t, c.Names("tools"))
				if !w.AllowDaemon {
					c.Close()
					continue
				}
				const told = "permission denied; remove the file to enable everything, or give this user access to it"
				require.Contains(t, w.Status().Notice, told)
				code, list := runBound(w, "list", "tools")
				require.Equal(t, e2e.ExitOK, code, list)
				require.Contains(t, list, told)

				unlock()
				c.WaitListed("tools", "files_keep", true)
				require.NotContains(t, c.Names("tools"), "files_gone")
				e2e.Eventually(t, "the notice of disabled tools disappears", func() bool {
					return !strings.Contains(w.Status().Notice, "read disabled entries")
				})
			}
		})
	}
}

// For example, a file that another user wrote while the daemon runs.
func TestADamagedFileThatAppearsHidesServersOfARunningDaemon(t *testing.T) {
	t.Parallel()
	w, file := withDisabled(t)
	require.NoError(t, os.Remove(file))
	c := w.Bridged()
	c.WaitListed("tools", "files_gone", true)
	become(t, file, "cut off")
	c.WaitListed("tools", "files_gone", false)
	require.Empty(t, c.Names("tools"))
	require.NoError(t, os.Remove(file))
	c.WaitListed("tools", "files_gone", true)
}

func TestUnreadableStrictPinsApproveNothing(t *testing.T) {
	t.Parallel()
	for name, of := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Gateway["pin"] = "strict"
			w.Backend("calc", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("add")}})
			w.Succeeds("list", "tools")
			lock(t, of(onlyFile(w, "pins"))...)
			code, call := runBound(w, "call", "calc_add")
			require.NotEqual(t, e2e.ExitOK, code)
			require.NotContains(t, call, "calc:add")
		})
	}
}

// Changing the owner of a file doesn't change its modification time.
func TestTheNoticeOfUnreadablePinsGoesWithTheRepair(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.AllowDaemon = true
	w.Gateway["pin"] = "strict"
	w.Backend("calc", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("add")}})
	w.Succeeds("list", "tools")
	unlock := lock(t, onlyFile(w, "pins"))
	path, args := bound(t, "stdio")
	c := w.PipeTo(path, args...)
	c.Init()
	c.WaitListed("tools", "calc_add", true)
	require.Contains(t, w.Status().Notice, "its last good copy is used")
	unlock()
	e2e.Eventually(t, "the notice disappears", func() bool { return w.Status().Notice == "" })
}

func TestTheNoticeOfUncheckedToolsAsksForARestart(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("calc", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("add")}})
	w.Succeeds("list", "tools")
	file := onlyFile(w, "pins")
	become(t, file, "empty")
	become(t, file+".good", "empty")
	w.Bridged().WaitListed("tools", "calc_add", true)
	require.Contains(t, w.Status().Notice, "changed tools are not detected until the file is repaired and Goblin restarted: read pinned tools")
}

// A disk that is not mounted leaves a dangling link.
func TestALinkInPlaceOfAFolderHidesServers(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"folder", "state folder", "outer folder"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, file := withDisabled(t)
			become(t, places[name](file)[0], "dangling")
			c := w.Standalone()
			c.Fault("tools/call", e2e.Obj{"name": "files_gone", "arguments": e2e.Obj{}})
			require.Empty(t, c.Names("tools"))
		})
	}
}
