//go:build e2e

package catalog

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// slow is a server that answers initialize at once at its first start. Later it waits
// until the test releases it.
func slow(more ...e2e.Obj) e2e.Obj {
	return e2e.Merge(e2e.Obj{
		"instructions": "be patient with it",
		"tools":        []e2e.Obj{e2e.Tool("tell")},
		"prompts":      []e2e.Obj{e2e.Prompt("p")},
		"resources":    []e2e.Obj{e2e.Resource("x:1")},
		"on": e2e.Obj{
			"initialize":      e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go", "after": 1})),
			"tools/call tell": e2e.Actions(e2e.Do("progress", e2e.Obj{"n": 1}), e2e.Do("text", e2e.Obj{"text": "told"})),
		},
	}, more)
}

// remembered starts and stops a daemon that lists once. It returns the file with the
// server's cached lists.
func remembered(t *testing.T, w *e2e.World, server, tool string) (file string) {
	t.Helper()
	c := w.Standalone()
	require.Equal(t, []string{tool}, c.Names("tools"))
	c.Close()
	c.Prog.Ends(e2e.Patience)
	return onlyFile(t, w, server)
}

// onlyFile returns the only file of a server in the catalog.
func onlyFile(t *testing.T, w *e2e.World, server string) string {
	t.Helper()
	files := catalogOf(w, server)
	require.Len(t, files, 1)
	return files[0]
}

func catalogOf(w *e2e.World, server string) []string {
	files, _ := filepath.Glob(filepath.Join(w.Dir, "home", ".local", "state", "goblin", "catalog", server+"-*"))
	return files
}

func TestWhatAServerListedIsThereBeforeItHasStarted(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("slow", slow())
	info, err := os.Stat(remembered(t, w, "slow", "slow_tell"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	c := w.Pipe("stdio", "--standalone")
	require.Contains(t, string(c.Init()), "be patient with it")
	require.Equal(t, []string{"slow_tell"}, c.Names("tools"))
	require.Contains(t, c.ReadText("goblin://servers"), `"remembered":`)
	id := c.Begin("tools/call", e2e.Obj{"name": "slow_tell", "_meta": e2e.Obj{"progressToken": "mine"}})
	p := b.WaitStarts(2)
	waiting := c.WaitNote("notifications/progress", nil)
	require.Equal(t, "mine", e2e.Str(waiting.Params, "progressToken"))
	require.Equal(t, `Server "slow" is starting`, e2e.Str(waiting.Params, "message"))
	b.DoAt(p, e2e.Do("release", e2e.Obj{"name": "go"}))
	require.Equal(t, "told", e2e.Str(c.End(id).Result, "content", 0, "text"))
	last := float64(-1)
	for _, note := range c.NotesOf("notifications/progress") {
		var now float64
		require.NoError(t, json.Unmarshal(e2e.At(note.Params, "progress"), &now))
		require.Greater(t, now, last, "progress rises")
		last = now
	}
	require.Equal(t, 1.0, last, "the last one is the server's own")
	e2e.Eventually(t, "the lists are the server's own", func() bool {
		return !strings.Contains(c.ReadText("goblin://servers"), `"remembered":`)
	})
	c.Settle()
	for _, list := range []string{"tools", "prompts", "resources"} {
		require.Empty(t, c.NotesOf("notifications/"+list+"/list_changed"), "nothing differs")
	}
}

func TestAServerThatCannotStartKeepsWhatIsRememberedAndSaysWhy(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("broken", slow(e2e.Obj{"on": e2e.Obj{
		"initialize": e2e.Actions(e2e.Do("crash", e2e.Obj{"text": "the disk is gone", "code": 3, "after": 1})),
	}}))
	remembered(t, w, "broken", "broken_tell")
	c := w.Standalone()
	failed := c.Fails(e2e.Obj{"name": "broken_tell"})
	require.Equal(t, "CONNECTION_ERROR", failed.Kind())
	require.Contains(t, failed.Message, "the disk is gone")
	b.WaitStarts(3) // it is tried again
	require.Equal(t, []string{"broken_tell"}, c.Names("tools"))
}

func TestAnEditOfWhatDecidesWhichServerItIsMakesItsListsVoid(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		remote bool
		edit   func(conf e2e.Obj)
		keeps  bool
	}{
		"args": {edit: func(c e2e.Obj) { c["args"] = append(c["args"].([]string), "-more") }},
		"env":  {edit: func(c e2e.Obj) { c["env"] = e2e.Obj{"TOKEN": "other"} }},
		"command": {edit: func(c e2e.Obj) {
			c["command"] = "/usr/bin/env"
			c["args"] = append([]string{e2e.TestServer}, c["args"].([]string)...)
		}},
		"url":     {remote: true, edit: func(c e2e.Obj) { c["url"] = c["url"].(string) + "?other" }},
		"headers": {remote: true, edit: func(c e2e.Obj) { c["headers"] = e2e.Obj{"X-Who": "other"} }},
		"tools":   {edit: func(c e2e.Obj) { c["tools"] = e2e.Obj{"deny": []string{"nothing"}} }},
		"timeout": {edit: func(c e2e.Obj) { c["timeout"] = "77s" }, keeps: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			var b *e2e.Backend
			if row.remote {
				b = w.Remote("slow", "/mcp", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("tell")}})
			} else {
				b = w.Backend("slow", slow())
			}
			remembered(t, w, "slow", "slow_tell")
			if row.remote { // it no longer answers
				b.Do(e2e.Do("on", e2e.Obj{"key": "initialize", "actions": e2e.Actions(e2e.Do("hang"))}))
			}
			w.Edit(func() {
				row.edit(b.Conf)
				w.Gateway["startup_wait"] = "1s" // no list arrives within that time
			})
			c := w.Standalone()
			if row.keeps {
				require.Equal(t, []string{"slow_tell"}, c.Names("tools"))
				return
			}
			require.Empty(t, c.Names("tools"))
			require.Empty(t, catalogOf(w, "slow"))
		})
	}
}

func TestClientsHearOfListsThatDifferFromWhatWasRemembered(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("slow", slow())
	remembered(t, w, "slow", "slow_tell")
	c := w.Standalone()
	require.Equal(t, []string{"slow_tell"}, c.Names("tools"))
	p := b.WaitStarts(2)
	b.DoAt(p, e2e.Do("add", e2e.Obj{"kind": "tools", "entry": e2e.Tool("more")}))
	b.DoAt(p, e2e.Do("release", e2e.Obj{"name": "go"}))
	c.WaitNote("notifications/tools/list_changed", nil)
	require.Equal(t, []string{"slow_more", "slow_tell"}, e2e.Sorted(c.Names("tools")))
	for _, list := range []string{"prompts", "resources"} {
		require.Empty(t, c.NotesOf("notifications/"+list+"/list_changed"), "no client has seen others")
	}
}

func TestPinnedToolsAreWithheldAlsoWhenTheyAreRemembered(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("slow", slow())
	remembered(t, w, "slow", "slow_tell")
	c := w.Standalone() // caches an unapproved tool
	p := b.WaitStarts(2)
	b.DoAt(p, e2e.Do("add", e2e.Obj{"kind": "tools", "entry": e2e.Tool("more")}))
	b.DoAt(p, e2e.Do("release", e2e.Obj{"name": "go"}))
	c.WaitListed("tools", "slow_more", true)
	c.Close()
	c.Prog.Ends(e2e.Patience)
	w.Edit(func() { w.Gateway["pin"] = "strict" })
	c = w.Standalone()
	require.Equal(t, []string{"slow_tell"}, c.Names("tools"))
}

func TestDamagedFilesAreThrownAwayAndNothingElseStops(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, file string){
		"cut off": func(t *testing.T, file string) { require.NoError(t, os.Truncate(file, 300)) },
		"200 MB":  func(t *testing.T, file string) { require.NoError(t, os.Truncate(file, 200<<20)) },
		"foreign": func(t *testing.T, file string) { require.NoError(t, os.WriteFile(file, []byte("\x00hello"), 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Backend("one", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("tell")}})
			file := remembered(t, w, "one", "one_tell")
			damage(t, file)
			c := w.Standalone()
			require.Equal(t, []string{"one_tell"}, c.Names("tools"))
			c.Close()
			c.Prog.Ends(e2e.Patience)
			require.Contains(t, c.Prog.Stderr.String(), "cached lists discarded")
			info, err := os.Stat(onlyFile(t, w, "one"))
			require.NoError(t, err)
			require.Less(t, info.Size(), int64(4096), "it was written again")
		})
	}
}

func TestAFolderThatCannotBeWrittenStopsNothing(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	for _, name := range []string{"one", "two"} {
		w.Backend(name, e2e.Obj{"tools": []e2e.Obj{e2e.Tool("tell")}})
	}
	state := filepath.Join(w.Dir, "home", ".local", "state", "goblin")
	require.NoError(t, os.MkdirAll(state, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(state, "catalog"), nil, 0o600))
	c := w.Standalone()
	require.Len(t, c.Names("tools"), 2)
	c.Close()
	c.Prog.Ends(e2e.Patience)
	require.Equal(t, 1, strings.Count(c.Prog.Stderr.String(), "lists not cached"), c.Prog.Stderr.String())
}

func TestTwoDaemonsOfOneConfigLeaveAWholeFile(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("one", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("tell")}})
	first, second := w.Standalone(), w.Standalone()
	b.WaitStarts(2)
	for n := range 20 {
		b.Add("tools", e2e.Tool("more"+string(rune('a'+n))))
	}
	for _, c := range []*e2e.Client{first, second} {
		c.Names("tools")
		c.Close()
		c.Prog.Ends(e2e.Patience)
	}
	c := w.Standalone()
	require.NotEmpty(t, c.Names("tools"))
	c.Close()
	c.Prog.Ends(e2e.Patience)
	require.NotContains(t, c.Prog.Stderr.String(), "thrown away")
	onlyFile(t, w, "one")
}

func TestNothingIsRememberedWhereThatIsOff(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["remember"] = "off"
	w.Backend("one", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("tell")}})
	c := w.Standalone()
	require.Equal(t, []string{"one_tell"}, c.Names("tools"))
	c.Close()
	c.Prog.Ends(e2e.Patience)
	require.Empty(t, catalogOf(w, "one"))
}

func TestStatelessClientsWaitForARememberedServer(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("slow", slow())
	remembered(t, w, "slow", "slow_tell")
	c := w.Pipe("stdio", "--standalone").Stateless()
	id := c.Begin("tools/call", e2e.Obj{"name": "slow_tell"})
	b.DoAt(b.WaitStarts(2), e2e.Do("release", e2e.Obj{"name": "go"}))
	require.Equal(t, "told", e2e.Str(c.End(id).Result, "content", 0, "text"))
}

func TestEveryUseWaitsForARememberedServer(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("slow", slow(e2e.Obj{
		"resources": []e2e.Obj{e2e.Resource("x:1")}, "subscribe": true, "reads": e2e.Obj{"x:1": "text"},
		"capabilities": e2e.Obj{"tools": e2e.Obj{}, "prompts": e2e.Obj{}, "resources": e2e.Obj{"subscribe": true}, "completions": e2e.Obj{}},
	}))
	remembered(t, w, "slow", "slow_tell")
	c := w.Standalone()
	var uses []string
	for _, use := range []struct {
		method string
		params e2e.Obj
	}{
		{"resources/subscribe", e2e.Obj{"uri": e2e.In("slow", "x:1")}},
		{"resources/read", e2e.Obj{"uri": e2e.In("slow", "x:1")}},
		{"prompts/get", e2e.Obj{"name": "slow/p"}},
		{"completion/complete", e2e.Obj{"ref": e2e.Obj{"type": "ref/prompt", "name": "slow/p"}, "argument": e2e.Obj{"name": "a", "value": ""}}},
	} {
		uses = append(uses, c.Begin(use.method, use.params))
	}
	b.DoAt(b.WaitStarts(2), e2e.Do("release", e2e.Obj{"name": "go"}))
	for _, id := range uses {
		require.Nil(t, c.End(id).Error)
	}
	require.Equal(t, 2, b.Starts())
}

func TestCommandsTellWhatIsRemembered(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("slow", slow())
	remembered(t, w, "slow", "slow_tell")
	w.Bridged()
	require.Regexp(t, `(?m)^slow +\S+, cached lists `, w.Succeeds("status"))
	require.Contains(t, w.Succeeds("list", "tools", "--server", "slow", "--json"), `"remembered":`)
}

func TestAServerThatAnEditTurnsOnIsListedAsItIsRemembered(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("slow", slow())
	remembered(t, w, "slow", "slow_tell")
	w.Edit(func() { b.Conf["disabled"] = true })
	c := w.Standalone()
	require.Empty(t, c.Names("tools"))
	w.Edit(func() { delete(b.Conf, "disabled") })
	c.WaitListed("tools", "slow_tell", true) // its process hangs
	b.WaitStarts(2)
}

func TestAFullDiskStopsNothing(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	state := filepath.Join(w.Dir, "state")
	require.NoError(t, os.Mkdir(state, 0o700))
	if out, err := exec.Command("unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", state).CombinedOutput(); err != nil {
		t.Skipf("no file system of a small size can be mounted here: %v %s", err, out)
	}
	w.Gateway["pin"] = "off"
	w.Env = append(w.Env, "XDG_STATE_HOME="+state)
	w.Backend("calc", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("add", e2e.Obj{"description": strings.Repeat("x", 20_000)})}})
	w.Write()
	script := `mount -t tmpfs -o size=12k none "$1" && echo "$3" | "$2" stdio --standalone; find "$1" -type f`
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	cmd := exec.Command("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", state, e2e.Goblin, hello)
	cmd.Env, cmd.Dir = w.Environ(), w.Dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "calc_add")
	require.Equal(t, 1, strings.Count(string(out), "no space left on device"), "%s", out)
	require.NotContains(t, string(out), ".catalog", "no part of the file that did not fit is left")
}

// The durations are only logged (-v), because a busy machine could exceed any limit.
func TestTheFirstWholeListOfTwentySlowServersStartsNone(t *testing.T) {
	t.Parallel()
	const servers = 20
	w := e2e.NewWorld(t)
	w.Gateway["start"] = "auto"
	all := make([]*e2e.Backend, servers)
	for n := range all {
		all[n] = w.Backend(fmt.Sprintf("slow%d", n), e2e.Obj{
			"tools": []e2e.Obj{e2e.Tool("tell")},
			"on":    e2e.Obj{"initialize": e2e.Actions(e2e.Do("delay", e2e.Obj{"ms": 2000}))},
		})
	}
	for _, how := range []string{"without", "with"} {
		start := time.Now()
		c := w.Pipe("stdio", "--standalone")
		c.Init()
		greeted := time.Since(start)
		require.Len(t, c.Names("tools"), servers)
		t.Logf("%s the remembered catalog: initialize after %v, the first whole list after %v", how, greeted, time.Since(start))
		c.Close()
		c.Prog.Ends(e2e.Patience)
	}
	for _, b := range all {
		require.Equal(t, 1, b.Starts())
	}
}
