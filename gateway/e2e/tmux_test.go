package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pane is a terminal with a shell in it, drawn by a tmux server of its own.
type pane struct {
	t      *testing.T
	dir    string // of its world
	socket string
	env    []string
}

// tmuxConf makes a pane all terminal: no status line, no keys that wait.
const tmuxConf = `set -g status off
set -s escape-time 0
set -g default-terminal tmux-256color
set -g remain-on-exit on
`

// pane opens a terminal. The shell in it finds Goblin as $G.
func (w *world) pane(width, height int) *pane {
	w.t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		w.t.Skip("tmux is not installed; the tests of the real screen need it")
	}
	w.write()
	conf := filepath.Join(w.dir, "tmux.conf")
	require.NoError(w.t, os.WriteFile(conf, []byte(tmuxConf), 0o600))
	w.panes++
	p := &pane{t: w.t, dir: w.dir, socket: "p" + strconv.Itoa(w.panes)}
	p.env = append(w.environ(), "LC_ALL=C.UTF-8", "SHELL=/bin/sh", "PS1=ready> ", "ENV=", "G="+goblin, "TMUX_TMPDIR="+w.dir)
	p.tmux("-f", conf, "new-session", "-d", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height), "-c", w.dir, "sh")
	w.t.Cleanup(func() {
		if w.t.Failed() {
			w.t.Logf("terminal %s:\n%s", p.socket, p.screen())
		}
		p.tmux("kill-server")
	})
	p.prompt()
	return p
}

// tmux runs a command of tmux.
func (p *pane) tmux(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-L", p.socket}, args...)...)
	cmd.Env = p.env
	out, err := cmd.CombinedOutput()
	require.NoError(p.t, err, "tmux %v: %s", args, out)
	return strings.TrimRight(string(out), "\n")
}

// screen is what the terminal shows, without spaces at the ends of lines.
func (p *pane) screen() string { return p.tmux("capture-pane", "-p") }

// ask is a variable of the pane, such as alternate_on.
func (p *pane) ask(name string) string { return p.tmux("display-message", "-p", "#{"+name+"}") }

// keys presses keys by tmux's names.
func (p *pane) keys(names ...string) {
	p.t.Helper()
	p.tmux(append([]string{"send-keys"}, names...)...)
}

// types types a text.
func (p *pane) types(text string) {
	p.t.Helper()
	p.tmux("send-keys", "-l", text)
}

// line types a command line, once the shell waits for one.
func (p *pane) line(format string, args ...any) {
	p.t.Helper()
	p.prompt()
	p.types(fmt.Sprintf(format, args...))
	p.keys("Enter")
}

func (p *pane) resize(width, height int) {
	p.t.Helper()
	p.tmux("resize-window", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height))
}

// shows waits until the terminal shows all of the texts.
func (p *pane) shows(texts ...string) string {
	p.t.Helper()
	return p.until(fmt.Sprintf("%q", texts), func(screen string) bool {
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	})
}

// prompt waits until the shell waits for a command, and nobody else for keys:
// what is typed before that is echoed elsewhere, or lost.
func (p *pane) prompt() string {
	p.t.Helper()
	return p.until("a prompt", func(screen string) bool {
		return strings.HasSuffix("\n"+strings.TrimRight(screen, "\n "), "\nready>")
	})
}

// hides waits until the terminal does not show a text.
func (p *pane) hides(text string) string {
	p.t.Helper()
	return p.until("no "+text, func(screen string) bool { return !strings.Contains(screen, text) })
}

// until waits for a state of the terminal.
func (p *pane) until(what string, cond func(screen string) bool) string {
	p.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		screen := p.screen()
		if cond(screen) {
			return screen
		}
		if time.Now().After(end) {
			p.t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// goblin starts Goblin in the shell between two looks at the terminal's
// settings.
func (p *pane) goblin(args string) {
	p.t.Helper()
	p.line(`stty -a >%s.before; sh -c 'echo $$ >%[1]s.pid; exec "$G" "$@"' sh %s; code=$?; stty -a >%[1]s.after; echo "ended with" $code`, p.socket, args)
}

// signal sends a signal to what goblin started.
func (p *pane) signal(sig syscall.Signal) {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, p.socket+".pid"))
	require.NoError(p.t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(p.t, err)
	found, err := os.FindProcess(pid)
	require.NoError(p.t, err)
	require.NoError(p.t, found.Signal(sig))
}

// restored waits for the end of what goblin started and checks that the shell
// has its terminal as before.
func (p *pane) restored(code int) (screen string) {
	p.t.Helper()
	p.shows(fmt.Sprintf("\nended with %d\n", code)) // at the beginning of a line
	require.Equal(p.t, "0 1 0 0", p.ask("alternate_on} #{cursor_flag} #{mouse_any_flag} #{keypad_cursor_flag"))
	before, err := os.ReadFile(filepath.Join(p.dir, p.socket+".before"))
	require.NoError(p.t, err)
	after, err := os.ReadFile(filepath.Join(p.dir, p.socket+".after"))
	require.NoError(p.t, err)
	require.Equal(p.t, string(before), string(after))
	p.line("echo us''able") // what is typed is echoed, and shows something else
	return p.shows("us''able", "\nusable")
}
