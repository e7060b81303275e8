//go:build e2e && !windows

package security

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"goblin/gateway/e2e"
)

// kinds make something at a path that is not a regular file with Goblin's content. The
// package state tests that reading fails for each of them.
var kinds = map[string]func(t *testing.T, path string){
	"pipe":      func(t *testing.T, path string) { require.NoError(t, unix.Mkfifo(path, 0o600)) },
	"directory": func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) },
	"endless":   func(t *testing.T, path string) { require.NoError(t, os.Symlink("/dev/zero", path)) },
	"dangling":  func(t *testing.T, path string) { require.NoError(t, os.Symlink(path+".none", path)) },
	"socket": func(t *testing.T, path string) {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
	},
	"too large": func(t *testing.T, path string) {
		f, err := os.Create(path)
		require.NoError(t, err)
		require.NoError(t, f.Truncate(512<<20))
		require.NoError(t, f.Close())
	},
	"empty":       written(""),
	"cut off":     written(`{"version": 1, "off": [`),
	"bad entry":   written(`{"version": 1, "off": [3], "servers": {"files": 3}}`),
	"newer":       written(`{"version": 2, "off": [{"server": "files", "kind": "tool", "name": "gone"}], "servers": {}}`),
	"newer shape": written(`{"version": 2, "disabled": {}}`),
}

func written(text string) func(t *testing.T, path string) {
	return func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
}

// become makes another kind of file at a path.
func become(t *testing.T, path, kind string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(path))
	kinds[kind](t, path)
}

// repair replaces a damaged file. It removes a folder first, so a daemon can see that
// nothing is there.
func repair(t *testing.T, path string, good []byte) {
	t.Helper()
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		require.NoError(t, os.Remove(path))
	}
	require.NoError(t, os.WriteFile(path+".new", good, 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

// onlyFile returns the one file of a folder of the state.
func onlyFile(w *e2e.World, folder string) string {
	w.T.Helper()
	all, err := filepath.Glob(filepath.Join(w.Dir, "home", ".local", "state", "goblin", folder, "*.json"))
	require.NoError(w.T, err)
	require.Len(w.T, all, 1)
	return all[0]
}

// withDisabled makes a world in which files_gone is disabled.
func withDisabled(t *testing.T) (w *e2e.World, file string) {
	w = e2e.NewWorld(t)
	w.Dir, _ = filepath.EvalSymlinks(w.Dir)
	w.Backend("files", e2e.Obj{
		"tools": []e2e.Obj{e2e.Tool("keep"), e2e.Tool("gone")}, "prompts": []e2e.Obj{e2e.Prompt("ask")},
		"resources": []e2e.Obj{e2e.Resource("file:///a")}, "templates": []e2e.Obj{e2e.Template("file:///t/{name}")},
	}, e2e.Obj{"open_resources": true})
	w.Backend("other", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("open")}})
	w.Succeeds("tools", "off", "files_gone")
	return w, onlyFile(w, "off")
}

func TestADamagedFileOfDisabledToolsEnablesNothing(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"pipe", "dangling", "bad entry", "newer"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w, file := withDisabled(t)
			info, err := os.Stat(file + ".good")
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
			become(t, file, kind)

			alone := w.Standalone()
			alone.WaitListed("tools", "files_keep", true)
			require.ElementsMatch(t, []string{"files_keep", "other_open"}, alone.Names("tools"))
			c := w.Bridged()
			c.WaitListed("tools", "files_keep", true)
			require.ElementsMatch(t, []string{"files_keep", "other_open"}, c.Names("tools"))
			require.Contains(t, c.Fault("tools/call", e2e.Obj{"name": "files_gone", "arguments": e2e.Obj{}}).Message, "files_gone")
			const told, fix = "read disabled entries", "remove the file to enable everything, or fix it; until then its last good copy is used"
			require.Contains(t, w.Status().Notice, file)
			require.Contains(t, w.Status().Notice, told)
			require.Contains(t, w.Status().Notice, fix)
			require.Contains(t, w.Succeeds("status"), told)
			require.Contains(t, w.DaemonLog(), told)
			require.Contains(t, w.Run("validate").Stderr, told)
			require.Contains(t, w.Run("doctor").Stdout, "last good copy is used")

			require.NoError(t, os.RemoveAll(file))
			c.WaitListed("tools", "files_gone", true)
			e2e.Eventually(t, "the notice disappears", func() bool { return w.Status().Notice == "" })
			e2e.Eventually(t, "the copy disappears", func() bool { _, err := os.Lstat(file + ".good"); return err != nil })
		})
	}
}

func TestWithoutAGoodCopyServersStayHidden(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"directory", "empty", "newer", "newer shape"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w, file := withDisabled(t)
			good, err := os.ReadFile(file)
			require.NoError(t, err)
			become(t, file, kind)
			become(t, file+".good", kind)
			hidden := "all entries of all servers stay hidden"
			var left []string
			if kind == "newer" { // it names its servers
				hidden, left = "all entries of these servers stay hidden: files", []string{"other_open"}
			}
			c := w.Bridged()
			for _, tool := range []string{"files_gone", "files_keep"} {
				c.Fault("tools/call", e2e.Obj{"name": tool, "arguments": e2e.Obj{}}) // it waits for the servers
			}
			require.ElementsMatch(t, left, c.Names("tools"))
			c.Fault("resources/read", e2e.Obj{"uri": "mcp://files/file:///a"})
			c.Fault("resources/read", e2e.Obj{"uri": "mcp://files/file:///unlisted"})
			c.Fault("prompts/get", e2e.Obj{"name": "files_ask"})
			require.NotContains(t, string(e2e.Marshal(c.List("resources"))), "files/")
			require.NotContains(t, string(e2e.Marshal(c.List("resources/templates"))), "files/")
			require.Empty(t, c.Names("prompts"))
			require.Contains(t, w.Status().Notice, hidden)
			require.Contains(t, w.DaemonLog(), hidden)
			require.Contains(t, w.Run("doctor").Stdout, "fix it")
			out := w.Run("tools", "off", "files_keep")
			require.Equal(t, e2e.ExitFailure, out.Code)
			require.Contains(t, out.Stderr, "remove the file to enable everything")
			require.Contains(t, w.Succeeds("tools", "list"), "the file of disabled entries is damaged")

			repair(t, file, good)
			c.WaitListed("tools", "files_keep", true)
			c.WaitListed("tools", "files_gone", false)
			e2e.Eventually(t, "the notice disappears", func() bool { return w.Status().Notice == "" })
		})
	}
}

// Services often have another user's HOME, or no folder at all.
func TestWithoutAStateFolderNothingIsHidden(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Env = append(w.Env, "HOME=/dev/null")
	w.Backend("files", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("keep")}})
	w.Standalone().WaitListed("tools", "files_keep", true)
	c := w.Bridged()
	c.WaitListed("tools", "files_keep", true)
	require.Contains(t, w.Status().Notice, "until then nothing is disabled")
}

// The folder existed, and its content is unknown.
func TestADamagedFolderHidesServers(t *testing.T) {
	t.Parallel()
	w, file := withDisabled(t)
	become(t, filepath.Dir(file), "empty")
	c := w.Standalone()
	c.Fault("tools/call", e2e.Obj{"name": "files_gone", "arguments": e2e.Obj{}})
	require.Empty(t, c.Names("tools"))
}

func TestAChangeKeepsTheDamagedFileAside(t *testing.T) {
	t.Parallel()
	w, file := withDisabled(t)
	const typo = `{"version": 1, "off": [{"server": "other", "kind": "tool", "name": "open"}`
	require.NoError(t, os.WriteFile(file, []byte(typo), 0o600))
	out := w.Run("tools", "off", "files_keep")
	require.Equal(t, e2e.ExitOK, out.Code, out.Stderr)
	require.Contains(t, out.Stderr, "its last good copy is used")
	aside, err := os.ReadFile(file + ".damaged")
	require.NoError(t, err)
	require.Equal(t, typo, string(aside))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), `"gone"`)
	require.Contains(t, string(text), `"keep"`)
	require.NotContains(t, w.Run("validate").Stderr, "disabled entries")

	// A file of another version is valid for that version, and stays.
	become(t, file, "newer")
	out = w.Run("tools", "on", "files_keep")
	require.Equal(t, e2e.ExitFailure, out.Code)
	require.Contains(t, out.Stderr, "written by another version of Goblin")
	text, err = os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), `"version": 2`)
}

func TestAnEntryOfUnknownKindIsSkippedAndStays(t *testing.T) {
	t.Parallel()
	w, file := withDisabled(t)
	const entry = `{"server": "files", "kind": "skill", "name": "keep", "more": [1]}`
	require.NoError(t, os.WriteFile(file, []byte("{\"version\": 1, \"off\": [\n"+entry+",\n"+
		`{"server": "files", "kind": "tool", "name": "gone"}]}`), 0o600))
	c := w.Bridged()
	c.WaitListed("tools", "files_keep", true)
	require.NotContains(t, c.Names("tools"), "files_gone")
	require.Empty(t, w.Status().Notice)
	require.Contains(t, w.DaemonLog(), `unknown kind \"skill\"`)
	require.Contains(t, w.Run("validate").Stderr, `unknown kind "skill"`)
	w.Succeeds("tools", "off", "other_open")
	c.WaitListed("tools", "other_open", false)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), entry)
	require.Contains(t, string(text), `"gone"`)
}

func TestARunningDaemonKeepsWhatIsDisabled(t *testing.T) {
	t.Parallel()
	w, file := withDisabled(t)
	c := w.Bridged()
	c.WaitListed("tools", "files_keep", true)
	require.NotContains(t, c.Names("tools"), "files_gone")
	for _, path := range []string{file + ".good", file} {
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	e2e.Eventually(t, "the notice", func() bool { return strings.Contains(w.Status().Notice, "disabled entries stay disabled") })
	require.ElementsMatch(t, []string{"files_keep", "other_open"}, c.Names("tools"))
}

// A file of an earlier version of Goblin has no copy yet.
func TestADaemonMakesTheFirstCopy(t *testing.T) {
	t.Parallel()
	w, file := withDisabled(t)
	require.NoError(t, os.Remove(file+".good"))
	w.Standalone().WaitListed("tools", "files_keep", true)
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	got, err := os.ReadFile(file + ".good")
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestDamagedStrictPinsApproveNothing(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"too large", "cut off", "bad entry", "newer"} {
		for _, copyToo := range []bool{false, true} {
			name := kind
			if copyToo {
				name += ", and the copy"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := e2e.NewWorld(t)
				w.Gateway["pin"] = "strict"
				b := w.Backend("calc", e2e.RugPull())
				w.Succeeds("list", "tools")
				file := onlyFile(w, "pins")
				good, err := os.ReadFile(file)
				require.NoError(t, err)
				become(t, file, kind)
				if copyToo {
					become(t, file+".good", kind)
				}
				nextHas(b, e2e.Tool("add", e2e.Obj{"description": "Adds. BCC me"}), e2e.Tool("same"))

				c := w.Bridged()
				c.Fault("tools/call", e2e.Obj{"name": "calc_add", "arguments": e2e.Obj{}})
				if copyToo {
					require.Empty(t, c.Names("tools"))
				} else {
					require.Equal(t, []string{"calc_same"}, c.Names("tools"))
				}
				require.Contains(t, w.Status().Notice, "read pinned tools: "+file)
				require.Contains(t, w.Status().Notice, "remove the file to pin all tools again")
				require.Contains(t, w.DaemonLog(), "remove the file to pin all tools again")
				require.Contains(t, w.Run("validate").Stderr, "read pinned tools")
				require.Contains(t, w.Run("doctor").Stdout, "read pinned tools")
				if copyToo {
					for _, args := range [][]string{{"approve"}, {"approve", "calc"}} {
						out := w.Run(args...)
						require.NotEqual(t, e2e.ExitOK, out.Code)
						require.Contains(t, out.Stderr, "remove the file to pin all tools again")
					}
				}

				repair(t, file, good)
				c.WaitListed("tools", "calc_same", true)
				require.NotContains(t, c.Names("tools"), "calc_add")
				e2e.Eventually(t, "the notice disappears", func() bool { return w.Status().Notice == "" })
			})
		}
	}
}

func TestRemovingDamagedStrictPinsPinsAnew(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["pin"] = "strict"
	w.Backend("calc", e2e.RugPull())
	w.Succeeds("list", "tools")
	file := onlyFile(w, "pins")
	become(t, file, "empty")
	become(t, file+".good", "empty")
	c := w.Bridged()
	c.Fault("tools/call", e2e.Obj{"name": "calc_add", "arguments": e2e.Obj{}})
	require.NoError(t, os.Remove(file))
	c.WaitListed("tools", "calc_add", true)
	require.FileExists(t, file)
}

// replaceAll makes every file of a folder another kind of file, and returns how many.
func replaceAll(t *testing.T, folder, kind string) (n int) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			become(t, path, kind)
			n++
		}
		return err
	}))
	return n
}

func TestNoKindOfStateFileHangsACommand(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"pipe", "directory", "endless", "dangling", "socket", "too large", "empty"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			state, home := filepath.Join(w.Dir, "s"), filepath.Join(w.Dir, "home")
			w.Env = append(w.Env, "XDG_STATE_HOME="+state)
			w.Backend("files", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("keep"), e2e.Tool("gone")}})
			require.NoError(t, os.MkdirAll(filepath.Join(home, ".cursor"), 0o700))
			w.Succeeds("tools", "off", "files_gone")
			require.Equal(t, e2e.ExitOK, w.RunInput("value", "secret", "set", "key").Code)
			w.Succeeds("install", "cursor")
			c := w.Bridged()
			c.CallText("files_keep", e2e.Obj{})
			c.Close()
			w.Succeeds("stop")
			off, err := filepath.Glob(filepath.Join(state, "goblin", "off", "*.json"))
			require.NoError(t, err)
			approvals := filepath.Join(state, "goblin", "approvals")
			require.NoError(t, os.MkdirAll(approvals, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(approvals, filepath.Base(off[0])), []byte(`{"version": 1, "approvals": []}`), 0o600))
			for _, name := range []string{"off", "pins", "usage", "catalog", "clients", "approvals"} {
				files, err := filepath.Glob(filepath.Join(state, "goblin", name, "*"))
				require.NoError(t, err)
				require.NotEmpty(t, files, "%s is tested, too", name)
			}
			require.GreaterOrEqual(t, replaceAll(t, state, kind), 9)
			require.GreaterOrEqual(t, replaceAll(t, filepath.Join(w.Dir, "run"), kind), 2)

			for _, args := range [][]string{
				{"validate"},
				{"doctor"},
				{"status"},
				{"list", "tools"},
				{"usage"},
				{"logs"},
				{"approve"},
				{"approve", "files"},
				{"approve", "--calls"},
				{"approve", "--calls", "--revoke-all"},
				{"tools", "list"},
				{"tools", "off", "files_keep"},
				{"tools", "on", "files_keep"},
				{"secret", "list"},
				{"secret", "set", "other"},
				{"secret", "delete", "key"},
				{"install", "cursor", "--dry-run"},
				{"install", "cursor"},
				{"uninstall", "cursor"},
				{"search", "keep"},
				{"call", "files_keep"},
				{"stop"},
			} {
				out := w.RunInput("value", args...)
				require.NotContains(t, out.Stderr, "SIGQUIT", "goblin %v hung", args)
				require.NotContains(t, out.Stderr, "panic", "goblin %v", args)
				if out.Code != e2e.ExitOK {
					require.NotEmpty(t, out.Stderr+out.Stdout, "goblin %v prints the reason", args)
				}
			}
			for _, mode := range [][]string{{"stdio"}, {"stdio", "--standalone"}} {
				w.Start(nil, mode...).Ends(e2e.Patience)
			}
		})
	}
}

// A config and its references may be any file that the user names.
func TestNoKindOfConfigFileHangsACommand(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"pipe", "directory", "endless", "dangling", "socket", "too large"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.AllowDaemon = true // a daemon may start after its bridge has exited
			at := filepath.Join(w.Dir, "other")
			become(t, at, kind)
			out := w.Run("validate", "--config", at)
			require.Equal(t, e2e.ExitConfig, out.Code, out.Stderr)
			require.Contains(t, out.Stderr, at)
			for _, text := range []string{
				"env_file: " + at + "\nservers: {a: {command: x}}\n",
				"servers: {a: {command: x, env: {K: \"${file:" + at + "}\"}}}\n",
				"servers: {a: {command: x}}\nlog: {file: " + at + "}\n",
			} {
				require.NoError(t, os.WriteFile(w.Config, []byte(text), 0o600))
				w.Written = true
				for _, args := range [][]string{{"validate"}, {"list", "tools"}, {"logs"}, {"stdio"}, {"stop"}} {
					out := w.Run(args...)
					require.NotContains(t, out.Stderr, "SIGQUIT", "goblin %v hung", args)
				}
			}
		})
	}
	w := e2e.NewWorld(t)
	require.Equal(t, e2e.ExitOK, w.Run("validate", "--config", os.DevNull).Code, "it is an empty config")
}
