//go:build e2e || faults || soak || interop || conformance || agents

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Pane is a terminal with a shell in it, drawn by a tmux server of its own.
type Pane struct {
	board
	t      *testing.T
	dir    string // of its world
	socket string
	write  func(line string)
	blocks []block // answers to commands that were written, in that order
	news   int     // how often tmux told that something has changed
	used   string  // the last prompt that a command was typed at
	ended  bool
}

// block is tmux's answer to a command.
type block struct {
	text   string
	failed bool
}

// tmuxConf makes a pane all terminal: no status line, no keys that wait.
const tmuxConf = `set -g status off
set -s escape-time 0
set -g default-terminal tmux-256color
set -g remain-on-exit on
`

// Pane opens a terminal. The shell in it finds Goblin as $G.
func (w *World) Pane(width, height int) *Pane {
	w.T.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		w.T.Skip("tmux is not installed; the tests of the real screen need it")
	}
	w.Write()
	conf := filepath.Join(w.Dir, "tmux.conf")
	require.NoError(w.T, os.WriteFile(conf, []byte(tmuxConf), 0o600))
	w.panes++
	p := &Pane{t: w.T, dir: w.Dir, socket: "p" + strconv.Itoa(w.panes)}
	env := append(w.Environ(), "LC_ALL=C.UTF-8", "SHELL=/bin/sh", "PS1=ready $((prompts=prompts+1))> ", "ENV=", "G="+Goblin, "TMUX_TMPDIR="+w.Dir)
	start := exec.Command("tmux", "-L", p.socket, "-f", conf, "new-session", "-d", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height), "-c", w.Dir, "sh")
	start.Env = env
	out, err := start.CombinedOutput()
	require.NoError(w.T, err, "%s", out)
	p.control(env)
	w.T.Cleanup(func() {
		if w.T.Failed() {
			w.T.Logf("terminal %s:\n%s", p.socket, p.Screen())
		}
		p.write("kill-server\n")
		p.Holds(Patience, func() bool { return p.ended })
	})
	p.prompt()
	return p
}

// control attaches a client of tmux that is told of all that happens, and takes
// commands: a process for each of them, and for each look, would cost more than
// all else.
func (p *Pane) control(env []string) {
	p.t.Helper()
	cmd := exec.Command("tmux", "-L", p.socket, "-C", "attach-session", "-f", "ignore-size")
	cmd.Env = env
	in, err := cmd.StdinPipe()
	require.NoError(p.t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(p.t, err)
	require.NoError(p.t, cmd.Start())
	p.write = func(line string) { _, _ = io.WriteString(in, line) } // its end is seen on stdout
	go func() {
		p.hear(bufio.NewReader(out))
		_ = cmd.Wait() // it was told to end
		p.Update(func() { p.ended = true })
	}()
	require.True(p.t, p.Holds(Patience, func() bool { return len(p.blocks) == 1 }), "tmux to attach")
	p.blocks = nil
}

// hear reads what tmux tells: blocks between %begin and %end, or %error, of the same
// number, and news that begin with %.
func (p *Pane) hear(out *bufio.Reader) {
	var number string // of the block that has begun
	var text strings.Builder
	for {
		line, err := out.ReadString('\n')
		if err != nil {
			return
		}
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch {
		case number == "" && kind == "%begin":
			number = rest
			text.Reset()
		case number == "":
			p.Update(func() { p.news++ })
		case rest == number && (kind == "%end" || kind == "%error"):
			number = ""
			p.Update(func() { p.blocks = append(p.blocks, block{text.String(), kind == "%error"}) })
		default:
			text.WriteString(line)
		}
	}
}

// Tmux runs a command of tmux.
func (p *Pane) Tmux(args ...string) string {
	p.t.Helper()
	var line strings.Builder
	for _, arg := range args {
		line.WriteString("'" + strings.ReplaceAll(arg, "'", `'\''`) + "' ")
	}
	var got block
	p.write(line.String() + "\n")
	require.True(p.t, p.Holds(Patience, func() bool {
		if len(p.blocks) > 0 {
			got, p.blocks = p.blocks[0], p.blocks[1:]
			return true
		}
		return p.ended
	}), "tmux %v", args)
	require.False(p.t, got.failed, "tmux %v: %s", args, got.text)
	return strings.TrimRight(got.text, "\n")
}

// Screen returns the text on the terminal, without spaces at the ends of lines.
func (p *Pane) Screen() string { return p.Tmux("capture-pane", "-p") }

// Ask is a variable of the pane, such as alternate_on.
func (p *Pane) Ask(name string) string { return p.Tmux("display-message", "-p", "#{"+name+"}") }

// Keys presses keys by tmux's names.
func (p *Pane) Keys(names ...string) {
	p.t.Helper()
	p.Tmux(append([]string{"send-keys"}, names...)...)
}

// Types types a text.
func (p *Pane) Types(text string) {
	p.t.Helper()
	p.Tmux("send-keys", "-l", text)
}

// Line types a command line, once the shell waits for one.
func (p *Pane) Line(format string, args ...any) {
	p.t.Helper()
	p.used = p.prompt()
	p.Types(fmt.Sprintf(format, args...))
	p.Keys("Enter")
}

func (p *Pane) Resize(width, height int) {
	p.t.Helper()
	p.Tmux("resize-window", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height))
}

// Shows waits until the terminal shows all of the texts.
func (p *Pane) Shows(texts ...string) string {
	p.t.Helper()
	return p.Until(fmt.Sprintf("%q", texts), func(screen string) bool {
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	})
}

// bare is a prompt with nothing behind it at the end of a screen. Each has a number: one
// that a command was typed at shows until what was typed is echoed.
var bare = regexp.MustCompile(`(?:^|\n)(ready \d+>)[\n ]*$`)

// Resources opens the Resources pane once a server is up, and waits for texts in it.
func (p *Pane) Resources(texts ...string) {
	p.t.Helper()
	p.Shows("1 up")
	p.Types("4")
	p.Shows(texts...)
}

// prompt waits until the shell waits for a command, and nobody else for keys:
// what is typed before that is echoed elsewhere, or lost.
func (p *Pane) prompt() (which string) {
	p.t.Helper()
	p.Until("a prompt", func(screen string) bool {
		found := bare.FindStringSubmatch(screen)
		if found == nil || found[1] == p.used {
			return false
		}
		which = found[1]
		return true
	})
	return which
}

// Hides waits until the terminal does not show a text.
func (p *Pane) Hides(text string) string {
	p.t.Helper()
	return p.Until("no "+text, func(screen string) bool { return !strings.Contains(screen, text) })
}

// PressUntil presses a key until the terminal does not show a text any more: what opens
// by itself takes keys after a moment without any.
func (p *Pane) PressUntil(key, text string) {
	p.t.Helper()
	for end := time.Now().Add(Patience); time.Now().Before(end); {
		p.Keys(key)
		for next := time.Now().Add(time.Second); time.Now().Before(next); {
			if _, ok := p.lasts(func(screen string) bool { return !strings.Contains(screen, text) }); ok {
				return
			}
		}
	}
	p.t.Fatalf("%s does not close %q", key, text)
}

// Until waits for a state of the terminal.
func (p *Pane) Until(what string, cond func(screen string) bool) string {
	p.t.Helper()
	for end := time.Now().Add(Patience); time.Now().Before(end); {
		if screen, ok := p.lasts(cond); ok {
			return screen
		}
	}
	p.t.Fatalf("waited %v for %s", Patience, what)
	return ""
}

// lasts reports whether the terminal has a state, for a moment: a look may come in
// the middle of a picture. If it has not, it waits for news of the terminal.
func (p *Pane) lasts(cond func(screen string) bool) (screen string, ok bool) {
	p.t.Helper()
	p.Mu.Lock()
	seen := p.news
	p.Mu.Unlock()
	changed := func() bool { return p.news != seen }
	if screen = p.Screen(); cond(screen) {
		return screen, !p.Holds(30*time.Millisecond, changed)
	}
	p.Holds(200*time.Millisecond, changed) // not all changes are told
	return screen, false
}

// Goblin starts Goblin in the shell between two looks at the terminal's
// settings.
func (p *Pane) Goblin(args string) {
	p.t.Helper()
	p.Line(`stty -a >%s.before; sh -c 'echo $$ >%[1]s.pid; exec "$G" "$@"' sh %s; code=$?; stty -a >%[1]s.after; echo "ended with" $code`, p.socket, args)
}

// Signal sends a signal to what goblin started.
func (p *Pane) Signal(sig syscall.Signal) {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, p.socket+".pid"))
	require.NoError(p.t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(p.t, err)
	found, err := os.FindProcess(pid)
	require.NoError(p.t, err)
	require.NoError(p.t, found.Signal(sig))
}

// size is that of a terminal, in what stty prints.
var size = regexp.MustCompile(`rows \d+; columns \d+;`)

// Restored waits for the end of what goblin started and checks that the shell
// has its terminal as before.
func (p *Pane) Restored(code int) (screen string) {
	p.t.Helper()
	p.Shows(fmt.Sprintf("\nended with %d\n", code)) // at the beginning of a line
	require.Equal(p.t, "0 1 0 0", p.Ask("alternate_on} #{cursor_flag} #{mouse_any_flag} #{keypad_cursor_flag"))
	settings := func(when string) string {
		text, err := os.ReadFile(filepath.Join(p.dir, p.socket+when))
		require.NoError(p.t, err)
		return size.ReplaceAllString(string(text), "") // tmux tells it in its own time
	}
	require.Equal(p.t, settings(".before"), settings(".after"))
	p.Line("echo us''able") // what is typed is echoed, and shows something else
	return p.Shows("us''able", "\nusable")
}
