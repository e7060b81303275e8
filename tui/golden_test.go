package tui

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/pane"
	"goblin/tui/uicontext"
	"goblin/tui/usage"
)

var update = flag.Bool("update", false, "update the golden files")

// golden compares a frame with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	got = strings.TrimSuffix(got, "\n") + "\n"
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "create it with: go test ./tui -run Golden -update")
	require.Equal(t, string(want), got, "%s differs; accept it with: go test ./tui -run Golden -update", name)
}

// goldenSection returns the frame below a heading with its size, without notices and
// measured times.
func (r *testUI) goldenSection() string {
	r.t.Helper()
	r.app.Flash = uicontext.Flash{}
	r.clearSearchTimes()
	return fmt.Sprintf("== %dx%d\n%s\n", r.app.W, r.app.H, r.screen())
}

// TestGoldenScreens compares frames at three sizes without colours and at one with
// colours. Run it with -update, and check each changed file before the commit.
func TestGoldenScreens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, keys string }{
		{"home", "9"},
		{"servers", "1"},
		{"servers-add", "1 a w e a"},
		{"servers-add-form", "1 a w e a enter"},
		{"tools", "2"},
		{"tools-form", "2 c"},
		{"prompts", "3"},
		{"resources", "4"},
		{"resources-filter", "4 / config space server:files enter"},
		{"resources-read", "4 / config enter enter"},
		{"resources-full-width-by-size", "4 F O O O O O O"},
		{"templates", "4 t"},
		{"logs-events", "5"},
		{"logs-traffic", "5 ]"},
		{"logs-exchange", "5 ] k k enter"},
		{"logs-timing", "5 ] k k enter ] ]"},
		{"logs-log", "5 enter ]"},
		{"logs-copy-menu", "5 ] k k Y j j"},
		{"usage", "6"},
		{"usage-clients", "6 ] j enter"},
		{"saved", "7 j j j j"},
		{"saved-run", "7 j j j j j j j R enter"},
		{"saved-save", "2 j j j c O s l o ctrl+w"},
		{"help", "?"},
		{"palette", ": t h e m e"},
		{"facet", "f"},
		{"subscriptions", "w"},
		{"clients", "0"},
		{"marked", "4 j space space"},
		{"past", "2 j j c ctrl+s H"},
		{"resource-history", "4 / config enter enter H"},
		{"path", "4 / config enter enter | p o r t s"},
		{"empty", "/ zzzzz"},
		{"confirm", "q"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var frames string
			for _, size := range [][2]int{{80, 24}, {120, 40}, {160, 45}} {
				frames += newExampleUI(t, size[0], size[1], plainEnv).keys(c.keys).goldenSection()
			}
			r := newExampleUI(t, 120, 40, colourEnv).keys(c.keys)
			r.goldenSection() // as above
			golden(t, c.name, frames+"== 120x40 with colours\n"+r.app.View())
		})
	}
	for name, keys := range map[string]string{"recording": "5 ] k k", "recording-tools": "2 enter"} {
		t.Run(name, func(t *testing.T) {
			var frames string
			for _, size := range [][2]int{{80, 24}, {120, 40}, {160, 45}} {
				frames += newExampleUI(t, size[0], size[1], plainEnv, ofRecording).keys(keys).goldenSection()
			}
			r := newExampleUI(t, 120, 40, colourEnv, ofRecording).keys(keys)
			r.goldenSection()
			golden(t, name, frames+"== 120x40 with colours\n"+r.app.View())
		})
	}
	t.Run("ascii", func(t *testing.T) {
		s := newExampleUI(t, 80, 24, asciiEnv).keys("4").screen()
		for _, c := range s {
			require.True(t, c < 0x80 || c >= 0x3000, "ASCII terminals get ASCII, except for names of servers: %q", c)
		}
		golden(t, "resources-80x24-ascii", s)
	})
	for _, theme := range []string{"dark", "light"} {
		t.Run(theme, func(t *testing.T) {
			r := newExampleUI(t, 120, 40, colourEnv)
			r.app.themeName = theme
			r.app.SetTheme()
			r.keys("4")
			r.screen()
			golden(t, "resources-120x40-"+theme, r.app.View())
		})
	}
}

// clearSearchTimes removes the measured search times from the frame.
func (r *testUI) clearSearchTimes() {
	for _, p := range r.app.Panes {
		switch p := p.(type) {
		case *pane.Servers:
			p.Table.LastSearch = 0
		case *pane.Tools:
			p.All.Table.LastSearch = 0
		case *pane.Prompts:
			p.All.Table.LastSearch = 0
		case *pane.Resources:
			p.All.Table.LastSearch, p.Templates.Table.LastSearch = 0, 0
		case *usage.Pane:
			for _, t := range p.Tables {
				t.LastSearch = 0
			}
		case *pane.Logs:
			p.Logs[pane.TabEvents].Table.LastSearch, p.Logs[pane.TabStderr].Table.LastSearch, p.Logs[pane.TabGoblin].Table.LastSearch, p.Traffic.Table.LastSearch = 0, 0, 0, 0
		}
	}
}

// sgr matches the only escape sequences of a frame: they switch styles.
var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

// FuzzFrames checks that every frame has exactly the size of the terminal, for all sizes
// and all input.
func FuzzFrames(f *testing.F) {
	f.Add(uint8(80), uint8(24), "4jjenter/conf")
	f.Add(uint8(40), uint8(10), "1234512345???")
	f.Add(uint8(250), uint8(60), "2c:q")
	f.Add(uint8(111), uint8(18), "5]]/err:yes")
	f.Add(uint8(39), uint8(9), "q")
	f.Add(uint8(120), uint8(30), "9\t\tj/x\x1b!!\t\t9")
	f.Add(uint8(90), uint8(30), "2jjc\n\t\n\x1bH\x1b|a[\x1b\\\\}}{ s ")
	f.Fuzz(func(t *testing.T, w, h uint8, keys string) {
		if w == 0 || h == 0 || len(keys) > 40 {
			return
		}
		r := newExampleUI(t, int(w), int(h), plainEnv)
		r.screen()
		for _, c := range keys {
			switch c {
			case '\n':
				r.keys("enter")
			case '\t':
				r.keys("tab")
			case 0x1b:
				r.keys("esc")
			default:
				r.typeText(string(c))
			}
			rest := sgr.ReplaceAllString(r.app.View(), "")
			require.False(t, strings.ContainsFunc(rest, func(c rune) bool {
				return c != '\n' && (unicode.IsControl(c) || c == '\u202e' || c == '\u200b')
			}), "%q", rest)
			r.screen()
			if r.app.quitting {
				return
			}
		}
	})
}

func TestGoldenScreenOfAServerWhoseListsAreRemembered(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.setState("github", registry.ServerState{
		State: registry.StateConnecting, Transport: "stdio", Listed: true, Stale: true, CachedAt: r.clock.now().UTC(),
	})
	r.keys("1 / g i t h u b enter")
	golden(t, "servers-remembered-120x40", r.screen())
	require.NotContains(t, r.keys("esc 2").line("github_search"), "stale", "a call must wait for the server")
}

func TestGoldenScreenOfServersThatSleepOrAreKeptFromIt(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.setState("github", registry.ServerState{State: registry.StateSleeping, Transport: "stdio", Listed: true})
	r.setState("files", registry.ServerState{State: registry.StateReady, Transport: "stdio", Listed: true, KeepAwakeReason: "2 subscriptions"})
	r.keys("1 / s e r v e r : f i l e s enter")
	golden(t, "servers-held-120x40", r.screen())
	r.keys("esc / g i t h u b enter")
	golden(t, "servers-sleeping-120x40", r.screen())
	r.keys("enter")
	require.Contains(t, r.backend.acts, "wake github")
	require.Contains(t, r.refresh(registry.Servers).tick(time.Second).screen(), "● 2 up  ○ 1 idle  ! 1 down")
}

func TestGoldenScreensOfServersThatAreRebuilt(t *testing.T) {
	t.Parallel()
	var frames string
	show := func(w, h int, env map[string]string, b registry.Build) *testUI {
		r := newExampleUI(t, w, h, env)
		b.Number, b.Command, b.Watched, b.Since, b.Files = 3, "npm run build", 14, r.clock.now().UTC().Add(-3*time.Second), "src/index.ts and 1 other file"
		r.app.Reg.SetBuild("files", &b)
		return r.refresh(registry.Servers).keys("1 / s e r v e r : f i l e s enter")
	}
	failed := registry.Build{Phase: registry.BuildFailed, Error: "exit status 2", Took: 1300 * time.Millisecond, Output: "src/index.ts(3,7): error TS2304:\n  Cannot find name 'x'.\x1b[2J\n"}
	restarted := registry.Build{
		Phase: registry.BuildRestarted, Took: 2100 * time.Millisecond, Warning: "each build or start changes gen.ts; such changes are ignored now",
		Changes: []registry.ListChange{
			{Kind: registry.Tool, Op: registry.OpAdded, Name: "refund"},
			{Kind: registry.Tool, Op: registry.OpChanged, Name: "search", What: []string{`argument "limit" is now required`}},
		},
		Checks: []registry.BuildCheck{{Name: "saved/one.yaml", OK: true}, {Name: "saved/two.yaml", Text: `line 4: $.isError is true, not false`}},
	}
	for _, size := range [][2]int{{80, 24}, {120, 40}, {160, 45}} {
		frames += show(size[0], size[1], plainEnv, failed).goldenSection() + show(size[0], size[1], plainEnv, restarted).goldenSection()
	}
	r := show(120, 40, colourEnv, failed)
	r.goldenSection()
	golden(t, "servers-rebuilt", frames+"== 120x40 with colours\n"+r.app.View())
}

func TestBuildsAreAnnounced(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	set := func(b registry.Build) *testUI {
		r.app.Reg.SetBuild("files", &b)
		return r.refresh(registry.Servers)
	}
	set(registry.Build{Phase: registry.BuildWatching})
	require.Empty(t, r.app.Flash.Text)
	set(registry.Build{Number: 1, Phase: registry.BuildRunning})
	require.Empty(t, r.app.Flash.Text)
	set(registry.Build{Number: 1, Phase: registry.BuildFailed, Error: "exit status 2"})
	require.Equal(t, "build of files failed: exit status 2", r.app.Flash.Text)
	require.True(t, r.app.Flash.Bad)
	set(registry.Build{Number: 2, Phase: registry.BuildRestarted, Changes: []registry.ListChange{{Kind: registry.Tool, Op: registry.OpRemoved, Name: "read"}}})
	require.Equal(t, "restarted files: -1; - tool read", r.app.Flash.Text)
	require.False(t, r.app.Flash.Bad)
	r.app.Flash.Text = ""
	require.Empty(t, r.refresh(registry.Servers).app.Flash.Text, "once")
	set(registry.Build{Number: 3, Phase: registry.BuildNotStarted, Error: "exited"})
	require.Equal(t, "files did not start: exited", r.app.Flash.Text)
}

const nestedTool = `{"name":"order","description":"Orders fruit","inputSchema":{"type":"object","$defs":{"address":{"type":"object","properties":{"street":{"type":"string"},"zip":{"type":"string","pattern":"^[0-9]{5}$"}},"required":["street"]}},
"properties":{"name":{"type":"string","default":"Bob"},"when":{"type":"string","format":"date"},"home":{"$ref":"#/$defs/address"},
"items":{"type":"array","items":{"type":"object","properties":{"sku":{"type":"string","enum":["apple","pear"]},"n":{"type":"integer","minimum":1,"default":2}},"required":["sku"]}},
"pay":{"oneOf":[{"title":"Card","type":"object","properties":{"number":{"type":"string"}},"required":["number"]},{"title":"Cash","type":"object","properties":{"coins":{"type":"integer"}}}]},
"any":{}},"required":["when","home"]}}`

// TestGoldenNestedForms compares forms with objects, lists of objects, and alternatives.
func TestGoldenNestedForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, keys string }{
		{"tool-nested", "2"}, // the detail outlines the form
		{"form-nested", "2 c"},
		{"form-nested-filled", "2 c 2026-13-40 tab Elm tab tab space space ctrl+n space tab tab space"},
		{"form-nested-raw", "2 c 2026-01-31 tab Elm tab tab tab tab {bad ctrl+e"},
	} {
		var frames string
		for _, size := range [][2]int{{80, 24}, {120, 40}} {
			r := newTestUI(t, size[0], size[1], "shop")
			r.setReady("shop").setList("shop", registry.Tool, nestedTool)
			r.keys(c.keys)
			if c.name == "form-nested-raw" { // the schema beside it scrolls
				r.screen()
				r.keys("pgdown")
			}
			frames += r.goldenSection()
		}
		golden(t, c.name, frames)
	}
}
