//go:build e2e

package ui

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestAScreenSaysThatItsDaemonWasStopped(t *testing.T) {
	t.Parallel()
	for name, detached := range map[string]bool{"its own": false, "another's": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Backend("shop", e2e.Filesystem())
			p := w.Pane(100, 30)
			if detached {
				c := w.Bridged()
				p.Goblin("")
				p.Shows("clients 1")
				c.Close()
				c.Prog.Ends(e2e.Patience)
				p.Shows("clients 0")
			} else {
				p.Goblin("")
				p.Resources("logs/app.log")
			}
			w.Succeeds("stop")
			require.Contains(t, p.Restored(e2e.ExitOK), "goblin: the daemon was stopped")
		})
	}
}

// The file may be invalid YAML, a folder, or missing.
func TestAnInvalidConfigIsRepairedInAUIOfTheRunningDaemon(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	config, valid := filepath.Join(w.Dir, "mine.yaml"), filepath.Join(w.Dir, "valid")
	text := fmt.Sprintf("servers:\n  books: {command: \"%s\", args: [demo-server, library]}\n", e2e.Goblin)
	for _, name := range []string{config, valid} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	editor := filepath.Join(w.Dir, "vi")
	e2e.WriteProgram(t, editor, "#!/bin/sh\ncp '"+valid+"' \"$2\"\n")
	w.Written, w.Config = true, config
	c := w.Bridged()
	daemon := w.Status().PID

	require.NoError(t, os.Remove(config))
	require.NoError(t, os.Mkdir(config, 0o700))
	noticed := func(text string) { // otherwise only an alert shows it later
		e2e.Eventually(t, "the daemon to notice", func() bool { return strings.Contains(w.DaemonLog(), text) })
	}
	noticed("is a directory")
	p := w.Pane(100, 30)
	p.Line("export VISUAL= EDITOR='%s'", editor)
	p.Goblin("")
	p.Shows("Config not reloaded", "is a directory")
	p.Keys("Escape")
	p.Types("q")
	p.Restored(e2e.ExitOK)

	require.NoError(t, os.Remove(config))
	require.NoError(t, os.WriteFile(config, []byte("servers:\n  books: {comand: x}\n"), 0o600))
	noticed("comand")
	p = w.Pane(100, 30)
	p.Line("export VISUAL= EDITOR='%s'", editor)
	p.Goblin("")
	showsMatch(p, `> mine\.yaml +\d+ .*unknown key "comand"`)
	p.Keys("Enter")
	p.Until("the UI without the list", func(screen string) bool { // the editor hides it, too
		return strings.Contains(screen, "1 up") && !strings.Contains(screen, "config invalid")
	})
	p.Types("q")
	p.Restored(e2e.ExitOK)
	require.Equal(t, daemon, w.Status().PID)

	require.NoError(t, os.WriteFile(config, []byte("servers:\n  books: {comand: x}\n"), 0o600))
	c.Close()
	w.Succeeds("stop")
	p = w.Pane(100, 30)
	p.Goblin("")
	require.Contains(t, p.Restored(e2e.ExitConfig), "goblin: edit the config with \"goblin edit")
}

func TestARelayThatDiesCostsItsScreenOnly(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("shop", e2e.Filesystem())
	c := w.Bridged()
	daemon := w.Status().PID

	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		p := w.Pane(100, 30)
		p.Goblin("")
		p.Resources("logs/app.log")
		p.Signal(sig)
		w.WaitUIs(0)
		if sig != syscall.SIGKILL { // no process can react to SIGKILL
			p.Restored(e2e.ExitOK)
		}
	}
	require.Equal(t, "shop:stat:{}", c.CallText("shop_stat", e2e.Obj{}))
	require.Equal(t, daemon, w.Status().PID)
}

func TestADaemonEndsWithItsTerminalWhileAPagerHasThat(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("shop", e2e.Filesystem())
	pager := filepath.Join(w.Dir, "pager")
	e2e.WriteProgram(t, pager, "#!/bin/sh\ntrap '' HUP\necho paging\nsleep 1000\n")
	p := w.Pane(100, 30)
	p.Line("export PAGER='%s'", pager)
	p.Goblin("")
	p.Resources("logs/app.log")
	daemon, err := os.FindProcess(w.Status().PID)
	require.NoError(t, err)
	p.Types("e")
	p.Shows("paging")
	p.Tmux("kill-session")
	e2e.Eventually(t, "the daemon's end", func() bool { return daemon.Signal(syscall.Signal(0)) != nil })
}

func TestAScreenThatJoinsAForgottenDaemonSaysSo(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("shop", e2e.Filesystem())
	first := w.Pane(100, 30)
	first.Line("trap '' HUP") // as nohup does it
	first.Goblin("2>errs")
	first.Resources("logs/app.log")
	c := w.Bridged() // so that the daemon outlives its terminal
	tty := first.Ask("pane_tty")
	require.Contains(t, w.Succeeds("status"), " from "+tty+"\n")
	first.Tmux("kill-session")
	w.WaitUIs(0)

	next := w.Pane(100, 30)
	next.Goblin("")
	require.NotContains(t, next.Shows("1 up", "clients 1"), "connected to the daemon", "it is used")
	c.Close()
	next.Shows("clients 0", "connected to the daemon (pid "+strconv.Itoa(w.Status().PID)+", running since", "from "+tty+" (closed)")
	require.Contains(t, w.Succeeds("status"), " from "+tty+" (closed)\n")
	require.Contains(t, w.Succeeds("status", "--json"), `"terminal": "`+tty+`"`)
	next.Types("q")
	next.Restored(e2e.ExitOK)
	w.Succeeds("stop")
}

func TestADumpGivesTheTerminalBackFirst(t *testing.T) {
	t.Parallel()
	for name, detached := range map[string]bool{"its own daemon": false, "another's": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Backend("shop", e2e.Filesystem())
			if detached {
				w.Bridged()
			}
			p := w.Pane(100, 30)
			p.Goblin("2>errs")
			p.Resources("logs/app.log")
			p.Signal(syscall.SIGQUIT)
			p.Restored(e2e.ExitUsage) // the number that Go uses
			errs, err := os.ReadFile(filepath.Join(w.Dir, "errs"))
			require.NoError(t, err)
			require.Contains(t, string(errs), "SIGQUIT: quit")
			require.Contains(t, string(errs), "goroutine 1 ")
		})
	}
}

func TestTheShellGoesOnWhereItWasWhenAScreenEnds(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("shop", e2e.Filesystem())
	daemon, guest := w.Pane(80, 24), w.Pane(80, 24)
	for _, p := range []*e2e.Pane{daemon, guest} { // the daemon's own UI, and one through a relay
		p.Line("seq 1 15")
		p.Shows("\n15\n")
		p.Goblin("")
		p.Resources("logs/app.log")
	}
	for _, p := range []*e2e.Pane{guest, daemon} {
		p.Types("q")
		require.Regexp(t, `\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n(.|\n)*\nended with 0\n`, p.Restored(e2e.ExitOK))
	}
}

func TestSIGHUPMakesADaemonWithAScreenReadItsConfig(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Log = e2e.Obj{"level": "debug", "file": "log"}
	b := w.Backend("shop", e2e.Filesystem())
	p := w.Pane(120, 35)
	p.Goblin("")
	p.Resources("logs/app.log")
	daemon := w.Status().PID
	w.Edit(func() { w.Gateway["page_size"] = 7 })
	p.Shows("edited settings take effect at the next start")
	log := func() int {
		text, err := os.ReadFile(filepath.Join(w.Dir, "log"))
		require.NoError(t, err)
		return strings.Count(string(text), "config reloaded")
	}
	before := log()
	process, err := os.FindProcess(daemon)
	require.NoError(t, err)
	require.NoError(t, process.Signal(syscall.SIGHUP))
	e2e.Eventually(t, "the config is read", func() bool { return log() > before })
	require.Equal(t, daemon, w.Status().PID)
	require.Equal(t, 1, b.Starts())
	p.Types("q")
	p.Restored(e2e.ExitOK)
}

func TestASignalEndsADaemonAndGivesTheTerminalBack(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("shop", e2e.Filesystem())
	p := w.Pane(100, 30)
	p.Goblin("")
	p.Resources("logs/app.log")
	p.Signal(syscall.SIGTERM)
	p.Restored(e2e.ExitOK)
	b.WaitGone()
}

func TestQuitGivesTheTerminalBack(t *testing.T) {
	t.Parallel()
	for _, args := range e2e.Variants(1,
		"", // a healthy terminal
		"--theme light --ascii",
		"; echo ne''xt 1; read x; TERM=dumb $G; echo ne''xt 2; read x; env -u TERM $G", // the first of three
	) {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			b := w.Backend("shop", e2e.Filesystem())
			p := w.Pane(100, 30)
			p.Goblin(args)
			for i := range strings.Count(args, "$G") + 1 {
				if i > 0 {
					p.Shows(fmt.Sprint("next ", i))
					p.Keys("Enter")
				}
				p.Resources("logs/app.log")
				if strings.Contains(args, "ascii") {
					require.NotContains(t, p.Screen(), "─")
				}
				p.Types("q")
				p.Hides("logs/app.log")
			}
			p.Restored(e2e.ExitOK)
			b.WaitGone()
		})
	}
}
