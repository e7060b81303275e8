package screens

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// What is opened, saved and copied goes where the terminal is.
func TestTheScreenOpensSavesAndCopies(t *testing.T) {
	t.Parallel()
	w := e2e.DemoWorld(t)
	pager := filepath.Join(w.Dir, "pager")
	require.NoError(t, os.WriteFile(pager, []byte("#!/bin/sh\ncp \"$1\" '"+w.Dir+"/opened'\n"), 0o700))
	p := w.Pane(120, 40)
	p.Tmux("set", "-s", "set-clipboard", "on")
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
	p.Shows("type  text/plain")
	p.Types("W")
	p.Shows("Save ")
	p.Keys("Enter")
	p.Shows("Saved ")
	saved, err := os.ReadFile(filepath.Join(w.Dir, "moon"))
	require.NoError(t, err)
	require.Contains(t, string(saved), "days old")
	p.Types("y")
	p.Shows("Copied the name")
	e2e.Eventually(t, "the clipboard", func() bool { return p.Tmux("show-buffer") == "mcp://clock/clock://moon" })

	p.Types(":clear all")
	p.Keys("Enter")
	p.Shows("Forgot 1 kept result")
	p.Hides("type  text/plain")
	p.Types("q")
	p.Restored(e2e.ExitOK)
}

func TestTheScreenRunsAsksAndCancels(t *testing.T) {
	t.Parallel()
	p := demo(e2e.DemoWorld(t), 120, 40)
	p.Types("2/countdown")
	p.Keys("Enter")
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
	p.Types("c")
	p.Shows("Call notes_remove_note")
	p.Types("nothing-like-this")
	p.Keys("C-s")
	p.Shows("may destroy something", "nothing-like-this")
	p.Types("y")
	p.Shows("notes_remove_note answered")

	p.Types("5]")
	p.Shows("[Traffic", "notes_remove_note", "!tool", "!-32603")
	p.Types("G")
	p.Keys("Enter")
	p.Shows("Request", "Response", "nothing-like-this")
	p.Types("q")
	p.Keys("Escape")
	p.Hides("Response]")
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

func TestTheScreenAnswersWhatNoClientCanBeAsked(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("shop", e2e.Asking("elicitation/create", e2e.Obj{
		"message": "Which size?", "requestedSchema": e2e.Obj{"type": "object", "properties": e2e.Obj{"size": e2e.Obj{"type": "string"}}, "required": []string{"size"}},
	}))
	c := w.Bridged() // declares nothing
	one, two := w.Pane(120, 35), w.Pane(120, 35)
	for _, p := range []*e2e.Pane{one, two} {
		p.Goblin("")
		p.Shows("goblin", "clients 1")
	}
	w.WaitScreens(2)
	call := c.Begin("tools/call", e2e.Obj{"name": "shop_ask"})
	two.Shows("Which size?")
	one.Shows("Which size?", `Server "shop" asks in a call of "shop_ask" by client "e2e", which cannot be asked.`)
	time.Sleep(500 * time.Millisecond) // until then keys are meant for what it covers
	one.Types("large")
	one.Keys("C-s")
	require.Contains(t, e2e.Str(c.End(call).Result, "content", 0, "text"), `"size":"large"`)
	two.Hides("Which size?")

	// A question of no call at all.
	go b.Do(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Form}))
	two.Shows("who?", `Server "shop" asks outside of any call, so no client can be asked.`)
	one.Shows("who?")
	time.Sleep(500 * time.Millisecond)
	two.Keys("Escape")
	require.Equal(t, "cancel", e2e.Str(b.WaitEvents("reply", "elicitation/create", 2).Msg, "action"))
	one.Hides("who?")
	for _, p := range []*e2e.Pane{one, two} {
		p.Types("q")
		p.Restored(e2e.ExitOK)
	}
}
