//go:build e2e

package ui

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestTheScreenOfTheDemoFindsResources(t *testing.T) {
	t.Parallel()
	p := demo(e2e.DemoWorld(t), 100, 30)
	p.Shows("library://")
	p.Types("/server:clock")
	p.Hides("library://")
	p.Shows("clock://moon", "clock://zones")
	p.Keys("Enter", "Escape")
	p.Types("/mime:svg")
	p.Hides("clock://moon")
	p.Shows("image/svg+xml", "bookplates")
	p.Keys("Enter", "Escape")
	p.Shows("Resources 2012 ")
	p.Types("/mime:json now")
	screen := p.Until("one resource", func(screen string) bool { return strings.Contains(screen, "Resources 1/") })
	require.Contains(t, screen, "clock://now.json")
}

func TestTheScreenWatchesAResource(t *testing.T) {
	t.Parallel()
	p := demo(e2e.DemoWorld(t), 100, 30)
	p.Types("/now.json")
	p.Keys("Enter")
	p.Shows("Resources 1/")
	p.Types("s")
	p.Shows("●  clock", "Δ") // active, and then it ticks
	p.Types("s")
	p.Hides("●  clock")
}

func TestTheScreenFollowsTheSizeOfItsTerminal(t *testing.T) {
	t.Parallel()
	p := demo(e2e.DemoWorld(t), 80, 24)
	for _, size := range [][2]int{{120, 40}, {250, 60}, {30, 8}, {60, 16}, {80, 24}} {
		p.Resize(size[0], size[1])
		if size[0] < 40 {
			p.Shows(fmt.Sprintf("goblin needs 40x10, has %dx%d", size[0], size[1]))
			continue
		}
		p.Until("a frame of the full size", func(screen string) bool {
			lines := strings.Split(strings.TrimRight(screen, "\n"), "\n")
			return len(lines) == size[1] && strings.Contains(lines[0], "goblin") &&
				strings.Contains(lines[size[1]-1], "enter open") && strings.Contains(screen, "clock://")
		})
	}
}

func TestTheScreenRunsAsksAndCancels(t *testing.T) {
	t.Parallel()
	p := demo(e2e.DemoWorld(t), 120, 40)
	p.Types("2/countdown")
	p.Keys("Enter")
	p.Shows("c calls it.")
	p.Types("c")
	p.Shows("Call clock_countdown")
	p.Keys("C-e")
	p.Shows("_meta")
	p.Keys("C-e")
	p.Types("60")
	p.Keys("C-s")
	p.Shows("running 1", "X cancels")
	p.Types("X")
	p.Shows("clock_countdown: cancelled")

	p.Types("/")
	p.Keys("Escape")
	p.Types("/remove_note")
	p.Keys("Enter")
	p.Shows("c calls it.")
	p.Types("c")
	p.Shows("Call notes_remove_note")
	p.Types("nothing-like-this")
	p.Keys("C-s")
	p.Shows("may delete or overwrite data", "nothing-like-this")
	p.Types("y")
	p.Shows("notes_remove_note: ")

	p.Types("5]")
	p.Shows("[Traffic", "notes_remove_note", "!tool", "cancel")
	p.Types("G")
	p.Keys("Enter")
	p.Shows("[Answer] Request", "nothing-like-this", "3 of 3")
	p.Keys("Escape")
	p.Hides("3 of 3")
}

func TestTheScreenRestartsAndSwitchesServers(t *testing.T) {
	t.Parallel()
	w := e2e.DemoWorld(t)
	p := demo(w, 120, 40)
	p.Types("1/clock")
	p.Keys("Enter")
	p.Shows("1 of 3")
	p.Types("x")
	p.Shows("disabled", "2 up")
	p.Types("x")
	p.Shows("3 up")
	p.Types("r")
	p.Shows("3 up", "ready")
	p.Types("4sw")
	p.Shows("Subscriptions")
	p.Keys("Escape")
	p.Types("q")
	p.Restored(e2e.ExitOK)
}

// Opening, saving and copying happen on the terminal's machine.
func TestTheScreenOpensSavesAndCopies(t *testing.T) {
	t.Parallel()
	w := e2e.DemoWorld(t)
	pager := filepath.Join(w.Dir, "pager")
	e2e.WriteProgram(t, pager, "#!/bin/sh\ncp \"$1\" '"+w.Dir+"/opened'\necho paging\nread line\n")
	p := w.Pane(120, 40)
	p.TakeCopies()
	p.Line("export PAGER='%s'", pager)
	p.Goblin("")
	p.Shows("3 up", "clock://now")
	p.Types("/clock://moon")
	p.Keys("Enter", "Enter")
	p.Shows("1 of", "type  text/plain")

	p.Types("e")
	e2e.Eventually(t, "the pager", func() bool {
		text, _ := os.ReadFile(filepath.Join(w.Dir, "opened"))
		return e2e.Contains(string(text), "days old")
	})
	p.Shows("paging")
	p.Keys("Enter")
	p.Shows("type  text/plain")
	p.Types("W")
	p.Shows("Save ")
	p.Keys("Enter")
	p.Shows("Saved /")
	saved, err := os.ReadFile(filepath.Join(w.Dir, "moon"))
	require.NoError(t, err)
	require.Contains(t, string(saved), "days old")
	p.Types("y")
	p.Shows("Copied the name")
	require.Equal(t, "mcp://clock/clock://moon", p.Copied("mcp://"))

	p.Types(":clear all")
	p.Keys("Enter")
	p.Shows("Removed 1 cached result")
	p.Hides("type  text/plain")
	p.Types("q")
	p.Restored(e2e.ExitOK)
}

// The terminal reports the mouse as in SGR 1006.
func TestTheScreenFollowsTheMouse(t *testing.T) {
	t.Parallel()
	p := demo(e2e.DemoWorld(t), 100, 30)
	p.Types("2")
	screen := p.Until("the tools", func(screen string) bool { return strings.Contains(screen, "clock_time_in") })
	before, _, _ := strings.Cut(screen, "clock_time_in")
	mouse := func(button, x, y int) { p.Types(fmt.Sprintf("\x1b[<%d;%d;%dM", button, x, y)) }
	mouse(2, 10, 1+strings.Count(before, "\n"))
	p.Shows("─ clock_time_in ─", "Call, get or expand")
	p.Keys("Escape")
	p.Hides("Call, get or expand")
	up := 1 + len([]rune(strings.Split(screen, " up")[0]))
	mouse(0, up, 1)
	p.Shows("/ state:ready")
	p.Resize(160, 40)
	border := func(screen string) int {
		return len([]rune(strings.Split(strings.Split(screen, "\n")[2], "╮╭")[0]))
	}
	from := border(p.Shows("╮╭"))
	mouse(0, from+1, 10)
	mouse(32, from-20, 10)
	p.Until("a smaller list", func(screen string) bool { return border(screen) < from-15 })
}
