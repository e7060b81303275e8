package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What is opened, saved and copied goes where the terminal is.
func TestTheScreenOpensSavesAndCopies(t *testing.T) {
	t.Parallel()
	w := demoWorld(t)
	pager := filepath.Join(w.dir, "pager")
	require.NoError(t, os.WriteFile(pager, []byte("#!/bin/sh\ncp \"$1\" '"+w.dir+"/opened'\n"), 0o700))
	p := w.pane(120, 40)
	p.tmux("set", "-s", "set-clipboard", "on")
	p.line("export PAGER='%s'", pager)
	p.goblin("")
	p.shows("3 up", "clock://now")
	p.types("/clock://moon")
	p.keys("Enter", "Enter")
	p.shows("1 of", "type  text/plain")

	p.types("e")
	eventually(t, "the pager", func() bool {
		text, _ := os.ReadFile(filepath.Join(w.dir, "opened"))
		return contains(string(text), "days old")
	})
	p.shows("type  text/plain")
	p.types("W")
	p.shows("Save ")
	p.keys("Enter")
	p.shows("Saved ")
	saved, err := os.ReadFile(filepath.Join(w.dir, "moon"))
	require.NoError(t, err)
	require.Contains(t, string(saved), "days old")
	p.types("y")
	p.shows("Copied the name")
	eventually(t, "the clipboard", func() bool { return p.tmux("show-buffer") == "mcp://clock/clock://moon" })

	p.types(":clear all")
	p.keys("Enter")
	p.shows("Forgot 1 kept result")
	p.hides("type  text/plain")
	p.types("q")
	p.restored(exitOK)
}

func TestTheScreenRunsAsksAndCancels(t *testing.T) {
	t.Parallel()
	p := demoWorld(t).demo(120, 40)
	p.types("2/countdown")
	p.keys("Enter")
	p.types("c")
	p.shows("Call clock_countdown")
	p.keys("C-e")
	p.shows("_meta")
	p.keys("C-e")
	p.types("60")
	p.keys("C-s")
	p.shows("running 1", "X cancels")
	p.types("X")
	p.shows("clock_countdown: cancelled")

	p.types("/")
	p.keys("Escape")
	p.types("/remove_note")
	p.keys("Enter")
	p.types("c")
	p.shows("Call notes_remove_note")
	p.types("nothing-like-this")
	p.keys("C-s")
	p.shows("may destroy something", "nothing-like-this")
	p.types("y")
	p.shows("notes_remove_note answered")

	p.types("5]")
	p.shows("[Traffic", "notes_remove_note", "!tool", "!-32603")
	p.types("G")
	p.keys("Enter")
	p.shows("Request", "Response", "nothing-like-this")
	p.types("q")
	p.keys("Escape")
	p.hides("Response]")
}

func TestTheScreenRestartsAndSwitchesServers(t *testing.T) {
	t.Parallel()
	w := demoWorld(t)
	p := w.demo(120, 40)
	p.types("1/clock")
	p.keys("Enter")
	p.shows("1 of 3")
	p.types("x")
	p.shows("disabled", "2 up")
	p.types("x")
	p.shows("3 up")
	p.types("r")
	p.shows("3 up", "ready")
	p.types("4sw")
	p.shows("Subscriptions")
	p.keys("Escape")
	p.types("q")
	p.restored(exitOK)
}

func TestTheScreenAnswersWhatNoClientCanBeAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("shop", asking("elicitation/create", obj{
		"message": "Which size?", "requestedSchema": obj{"type": "object", "properties": obj{"size": obj{"type": "string"}}, "required": []string{"size"}},
	}))
	c := w.bridged() // declares nothing
	one, two := w.pane(120, 35), w.pane(120, 35)
	for _, p := range []*pane{one, two} {
		p.goblin("")
		p.shows("goblin", "clients 1")
	}
	w.waitScreens(2)
	call := c.begin("tools/call", obj{"name": "shop_ask"})
	two.shows("Which size?")
	one.shows("Which size?", `Server "shop" asks in a call of "shop_ask" by client "e2e", which cannot be asked.`)
	time.Sleep(500 * time.Millisecond) // until then keys are meant for what it covers
	one.types("large")
	one.keys("C-s")
	require.Contains(t, str(c.end(call).Result, "content", 0, "text"), `"size":"large"`)
	two.hides("Which size?")

	// A question of no call at all.
	go b.do(do("request", obj{"method": "elicitation/create", "params": form}))
	two.shows("who?", `Server "shop" asks outside of any call, so no client can be asked.`)
	one.shows("who?")
	time.Sleep(500 * time.Millisecond)
	two.keys("Escape")
	require.Equal(t, "cancel", str(b.waitEvents("reply", "elicitation/create", 2).Msg, "action"))
	one.hides("who?")
	for _, p := range []*pane{one, two} {
		p.types("q")
		p.restored(exitOK)
	}
}
