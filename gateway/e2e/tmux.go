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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Pane is a terminal with a shell, in its own tmux server.
type Pane struct {
	board
	t      *testing.T
	dir    string // of its world
	socket string
	write  func(line string)
	blocks []block // tmux's answers, in order of the commands
	news   int     // number of tmux notifications
	used   string  // the prompt at which the last command was typed
	ended  bool
}

type block struct {
	text   string
	failed bool
}

// tmuxConf disables the status line and key delays.
const tmuxConf = `set -g status off
set -s escape-time 0
set -g default-terminal tmux-256color
set -g remain-on-exit on
`

// Pane opens a terminal. Its shell has Goblin's path in $G.
func (w *World) Pane(width, height int) *Pane {
	w.T.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		w.T.Skip("tmux is not installed; tests of the UI need it")
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

// control attaches a tmux client in control mode. A process per command and per look
// would take most of the time.
func (p *Pane) control(env []string) {
	p.t.Helper()
	cmd := exec.Command("tmux", "-L", p.socket, "-C", "attach-session", "-f", "ignore-size")
	cmd.Env = env
	in, err := cmd.StdinPipe()
	require.NoError(p.t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(p.t, err)
	require.NoError(p.t, cmd.Start())
	p.write = func(line string) { _, _ = io.WriteString(in, line) } // an end is noticed on stdout
	go func() {
		p.hear(bufio.NewReader(out))
		_ = cmd.Wait() // stopped by kill-server
		p.Update(func() { p.ended = true })
	}()
	require.True(p.t, p.Holds(Patience, func() bool { return len(p.blocks) == 1 }), "tmux to attach")
	p.blocks = nil
}

// hear reads tmux's output: blocks between %begin and %end or %error with the same
// number, and notifications that begin with %.
func (p *Pane) hear(out *bufio.Reader) {
	var number string // of the current block
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

// Screen returns the text on the terminal, without trailing spaces.
func (p *Pane) Screen() string { return p.Tmux("capture-pane", "-p") }

// Ask returns a variable of the pane, such as alternate_on.
func (p *Pane) Ask(name string) string { return p.Tmux("display-message", "-p", "#{"+name+"}") }

// Keys presses keys. It waits until a program has read each Escape: in one read with the
// next key, it is Alt.
func (p *Pane) Keys(names ...string) {
	p.t.Helper()
	for len(names) > 0 {
		n := slices.Index(names, "Escape") + 1
		escape := n > 0
		if !escape {
			n = len(names)
		}
		p.Tmux(append([]string{"send-keys"}, names[:n]...)...)
		names = names[n:]
		if escape {
			tty := p.Ask("pane_tty")
			Eventually(p.t, "a program that reads Escape", func() bool { return unread(tty) == 0 })
		}
	}
}

// TakeCopies makes the terminal take text that programs copy.
func (p *Pane) TakeCopies() {
	p.t.Helper()
	p.Tmux("set", "-s", "set-clipboard", "on")
	p.Tmux("set-buffer", "nothing") // show-buffer fails without any
}

// Copied waits until the last copied text contains a part, which may be after the UI's
// message.
func (p *Pane) Copied(part string) (text string) {
	p.t.Helper()
	p.Until("a copy of "+part, func(string) bool { text = p.Tmux("show-buffer"); return strings.Contains(text, part) })
	return text
}

func (p *Pane) Types(text string) {
	p.t.Helper()
	p.Tmux("send-keys", "-l", text)
}

// Line types a command line when the shell shows a prompt.
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

// bare matches an empty prompt at the end of the terminal's text. Prompts are numbered,
// because a used one looks empty until the command is echoed.
var bare = regexp.MustCompile(`(?:^|\n)(ready \d+>)[\n ]*$`)

// Resources opens the Resources pane once a server is up, and waits for texts in it.
func (p *Pane) Resources(texts ...string) {
	p.t.Helper()
	p.Shows("1 up")
	p.Types("4")
	p.Shows(texts...)
}

// prompt waits until the shell reads commands. Text that is typed earlier is echoed
// elsewhere or lost.
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

func (p *Pane) Hides(text string) string {
	p.t.Helper()
	return p.Until("no "+text, func(screen string) bool { return !strings.Contains(screen, text) })
}

// PressUntil presses a key until the terminal doesn't show a text. A dialog that opens
// automatically only accepts keys after a pause.
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

// lasts reports whether the terminal has a state for a moment, because a look may show an
// incomplete frame. Otherwise it waits for a change.
func (p *Pane) lasts(cond func(screen string) bool) (screen string, ok bool) {
	p.t.Helper()
	p.Mu.Lock()
	seen := p.news
	p.Mu.Unlock()
	changed := func() bool { return p.news != seen }
	if screen = p.Screen(); cond(screen) {
		return screen, !p.Holds(30*time.Millisecond, changed)
	}
	p.Holds(200*time.Millisecond, changed) // tmux doesn't report all changes
	return screen, false
}

// Goblin starts Goblin in the shell and records the terminal's settings before and after.
func (p *Pane) Goblin(args string) {
	p.t.Helper()
	p.Line(`stty -a >%s.before; sh -c 'echo $$ >%[1]s.pid; exec "$G" "$@"' sh %s; code=$?; stty -a >%[1]s.after; echo "ended with" $code`, p.socket, args)
}

// Signal sends a signal to the process started by Goblin.
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

// size matches the terminal size in the output of stty.
var size = regexp.MustCompile(`rows \d+; columns \d+;`)

// Restored waits for the exit of the process started by Goblin, and checks that the
// terminal is restored.
func (p *Pane) Restored(code int) (screen string) {
	p.t.Helper()
	p.Shows(fmt.Sprintf("\nended with %d\n", code)) // at the start of a line
	require.Equal(p.t, "0 1 0 0", p.Ask("alternate_on} #{cursor_flag} #{mouse_any_flag} #{keypad_cursor_flag"))
	settings := func(when string) string {
		text, err := os.ReadFile(filepath.Join(p.dir, p.socket+when))
		require.NoError(p.t, err)
		return size.ReplaceAllString(string(text), "") // tmux reports it asynchronously
	}
	require.Equal(p.t, settings(".before"), settings(".after"))
	p.Line("echo us''able") // the echoed command differs from its output
	return p.Shows("us''able", "\nusable")
}
