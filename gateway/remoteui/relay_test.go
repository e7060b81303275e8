//go:build unix

package remoteui_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"goblin/gateway/e2e"
	"goblin/gateway/remoteui"
)

// emulator is the outer side of a terminal.
type emulator struct {
	t    *testing.T
	outr *os.File

	mu   sync.Mutex
	more sync.Cond
	seen []byte
	over bool
}

func watchTerminal(t *testing.T, outer *os.File) *emulator {
	outer = interruptible(t, outer)
	e := &emulator{t: t, outr: outer}
	e.more.L = &e.mu
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buf := make([]byte, 4096)
		for {
			n, err := outer.Read(buf)
			e.mu.Lock()
			e.seen = append(e.seen, buf[:n]...)
			e.over = err != nil
			e.more.Broadcast()
			e.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { outer.Close(); <-ended })
	return e
}

// interruptible replaces a file by one whose Close stops its Read. pty calls Fd, which
// makes a file block until the other side closes.
func interruptible(t *testing.T, f *os.File) *os.File {
	fd, err := unix.Dup(int(f.Fd()))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	unix.CloseOnExec(fd)
	require.NoError(t, unix.SetNonblock(fd, true))
	return os.NewFile(uintptr(fd), "outer side")
}

func (e *emulator) resize(w, h uint16) {
	e.t.Helper()
	raw, err := e.outr.SyscallConn()
	require.NoError(e.t, err)
	require.NoError(e.t, raw.Control(func(fd uintptr) {
		err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: w, Row: h})
	}))
	require.NoError(e.t, err)
}

// expect waits for a text and reads everything up to its end.
func (e *emulator) expect(text string) (before string) {
	e.t.Helper()
	stuck := time.AfterFunc(30*time.Second, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.over = true
		e.more.Broadcast()
	})
	defer stuck.Stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		if i := bytes.Index(e.seen, []byte(text)); i >= 0 {
			before = string(e.seen[:i])
			e.seen = e.seen[i+len(text):]
			return before
		}
		if e.over {
			e.t.Fatalf("%q is missing; got %q", text, e.seen)
		}
		e.more.Wait()
	}
}

func (e *emulator) key(text string) {
	e.t.Helper()
	_, err := e.outr.WriteString(text)
	require.NoError(e.t, err)
}

// shown is a UI on its own terminal.
type shown struct {
	*emulator
	daemon *remoteui.Conn
	tty    *os.File
	found  *term.State
	cancel context.CancelFunc
	cut    func() // closes the connection
	ended  chan struct{}
	reason string
	err    error
}

func show(t *testing.T, env map[string]string) *shown {
	t.Helper()
	outer, tty, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.Setsize(outer, &pty.Winsize{Cols: 100, Rows: 30}))
	found, err := term.GetState(int(tty.Fd()))
	require.NoError(t, err)
	a, b := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	s := &shown{emulator: watchTerminal(t, outer), tty: tty, found: found, cancel: cancel, ended: make(chan struct{})}
	s.cut = func() { a.Close() }
	if env == nil {
		env = map[string]string{"TERM": "tmux-256color"}
	}
	go func() {
		defer close(s.ended)
		s.reason, s.err = remoteui.Relay(ctx, b, remoteui.Terminal{In: tty, Out: tty, Getenv: func(k string) string { return env[k] }, Theme: "dark", ASCII: true})
	}()
	s.daemon, err = remoteui.Accept(a, a)
	require.NoError(t, err)
	t.Cleanup(func() {
		cancel()
		<-s.ended
		s.daemon.Close()
		tty.Close()
	})
	return s
}

// write writes a text and waits until the terminal shows it.
func (s *shown) write(text string) {
	s.t.Helper()
	_, err := s.daemon.Write([]byte(text))
	require.NoError(s.t, err)
	s.expect(text)
}

func (s *shown) keys(n int) string {
	s.t.Helper()
	buf := make([]byte, n)
	_, err := io.ReadFull(s.daemon, buf)
	require.NoError(s.t, err)
	return string(buf)
}

func (s *shown) isRaw() bool {
	s.t.Helper()
	now, err := term.GetState(int(s.tty.Fd()))
	require.NoError(s.t, err)
	return !equal(now, s.found)
}

func equal(a, b *term.State) bool { return *a == *b }

func TestScreenIsShownAndTyped(t *testing.T) {
	s := show(t, map[string]string{"TERM": "tmux", "LANG": "C.UTF-8", "HOME": "/x", "COLORFGBG": "0;15"})
	w, h := s.daemon.Size()
	require.Equal(t, []int{100, 30}, []int{w, h})
	require.Equal(t, []string{"COLORFGBG=0;15", "LANG=C.UTF-8", "TERM=tmux"}, s.daemon.Env())
	require.Equal(t, "dark", s.daemon.Theme())
	require.True(t, s.daemon.ASCII())
	dark, known := s.daemon.Dark()
	require.Equal(t, []bool{false, true}, []bool{dark, known})
	s.write("\x1b[?1049hhello")
	require.True(t, s.isRaw())
	s.key("\x03\x1a\x1b")
	require.Equal(t, "\x03\x1a\x1b", s.keys(3), "keys of signals are keys")
	s.key("ä\r")
	require.Equal(t, "ä\r", s.keys(3))
}

func TestTerminalIsGivenBack(t *testing.T) {
	for name, c := range map[string]struct {
		end    func(s *shown)
		reason string
		err    error
	}{
		"the daemon ends it":         {func(s *shown) { s.daemon.Exit("the daemon was stopped") }, "the daemon was stopped", nil},
		"a plain quit":               {func(s *shown) { s.daemon.Exit("") }, "", nil},
		"the daemon dies":            {func(s *shown) { s.cut() }, "", remoteui.ErrConnectionLost},
		"the context ends":           {func(s *shown) { s.cancel() }, "", context.Canceled},
		"the daemon talks gibberish": {func(s *shown) { s.daemon.Close() }, "", remoteui.ErrConnectionLost},
	} {
		t.Run(name, func(t *testing.T) {
			s := show(t, nil)
			s.write("\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?1002;1006h\x1b[?1004h\x1b[31mred")
			require.True(t, s.isRaw())
			c.end(s)
			<-s.ended
			require.Equal(t, c.reason, s.reason)
			require.ErrorIs(t, s.err, c.err)
			require.Equal(t, "\x1b[m\x1b[?1002l\x1b[?1006l\x1b[?2004l\x1b[?1004l\x1b[?25h", s.expect("\x1b[?1049l"))
			require.False(t, s.isRaw())
			<-s.daemon.Done()
		})
	}
}

func TestWhatWasTypedAtTheEndIsNotLeftToTheShell(t *testing.T) {
	s := show(t, nil)
	s.write("x")
	s.cancel()
	s.key("\x1b[<35;10;10M")
	<-s.ended
	s.expect("\x1b[m")
	s.key("\n") // a cooked terminal returns complete lines
	buf := make([]byte, 100)
	n, err := s.tty.Read(buf)
	require.NoError(t, err)
	require.Equal(t, "\n", string(buf[:n]))
}

func TestTerminalThatGoesAwayEndsTheRelay(t *testing.T) {
	s := show(t, nil)
	s.write("x")
	s.outr.Close()
	<-s.ended
	require.ErrorIs(t, s.err, remoteui.ErrTerminalLost)
	<-s.daemon.Done()
}

func TestTerminalThatGoesAwayWhileAProgramHasItEndsTheRelay(t *testing.T) {
	t.Parallel()
	s := show(t, map[string]string{"TERM": "tmux", "PAGER": `trap "" HUP; echo paging; sleep 1000; echo`})
	s.write("screen")
	opened := make(chan error, 1)
	go func() { opened <- s.daemon.Open(t.Context(), remoteui.Pager, "x", nil) }()
	s.expect("paging")
	s.outr.Close()
	<-s.ended
	require.ErrorIs(t, s.err, remoteui.ErrTerminalLost)
	<-s.daemon.Done()
	require.ErrorIs(t, <-opened, remoteui.ErrDisconnected)
}

func TestRelayNeedsATerminal(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	a, b := net.Pipe()
	defer a.Close()
	_, err = remoteui.Relay(t.Context(), b, remoteui.Terminal{In: r, Out: w})
	require.ErrorContains(t, err, "not a terminal")
}

// giveUp writes to a relay whose terminal has no reader, until the daemon gives up.
func giveUp(t *testing.T, daemon *remoteui.Conn) {
	t.Helper()
	flood := bytes.Repeat([]byte("flood "), 200_000) // more than a terminal buffers
	_, err := daemon.Write(flood)
	require.NoError(t, err, "the relay has it and waits for its terminal")
	daemon.SetWriteLimit(50 * time.Millisecond)
	_, err = daemon.Write(flood)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

func TestTerminalThatDoesNotReadEndsOnlyItsScreen(t *testing.T) {
	t.Parallel()
	outer, tty, err := pty.Open()
	require.NoError(t, err)
	defer outer.Close()
	defer tty.Close()
	found, err := term.GetState(int(tty.Fd()))
	require.NoError(t, err)
	a, b := net.Pipe()
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, err := remoteui.Relay(ctx, b, remoteui.Terminal{In: tty, Out: tty, Getenv: func(string) string { return "" }})
		ended <- err
	}()
	daemon, err := remoteui.Accept(a, a)
	require.NoError(t, err)
	defer daemon.Close()
	other := show(t, nil)
	other.write("before")
	giveUp(t, daemon)
	other.write("meanwhile")
	cancel() // the relay waits for its terminal
	require.ErrorIs(t, <-ended, context.Canceled)
	now, err := term.GetState(int(tty.Fd()))
	require.NoError(t, err)
	require.True(t, equal(now, found))
	other.write("after")
	other.key("k")
	require.Equal(t, "k", other.keys(1))
}

func TestBackgroundAnswerIsNotTyped(t *testing.T) {
	for name, c := range map[string]struct {
		pieces []string
		keys   string
		dark   bool
	}{
		"alone":            {[]string{"\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\", "k"}, "k", true},
		"glued to keys":    {[]string{"j\x1b]11;rgb:ffff/ffff/ffff\ak"}, "jk", false},
		"byte by byte":     {strings.Split("\x1b]11;rgb:00/00/00\x1b\\", ""), "", true},
		"between two keys": {[]string{"j", "\x1b]11;rgb:f/", "f/f\x1b", "\\k"}, "jk", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := show(t, map[string]string{"TERM": "xterm-256color"})
			s.expect("\x1b]11;?\x1b\\")
			s.key("a") // keys do not wait for the reply
			require.Equal(t, "a", s.keys(1))
			for _, p := range c.pieces {
				s.key(p)
			}
			<-s.daemon.Backgrounds()
			dark, known := s.daemon.Dark()
			require.Equal(t, []bool{c.dark, true}, []bool{dark, known})
			s.key("!")
			got := ""
			for !strings.HasSuffix(got, "!") {
				got += s.keys(1)
			}
			// If bytes arrive one by one, ESC may be alone. It is a key then.
			require.Equal(t, c.keys+"!", strings.TrimPrefix(got, "\x1b"))
		})
	}
}

func TestWhatTheTerminalHasForImagesReachesTheDaemon(t *testing.T) {
	s := show(t, map[string]string{"TERM": "xterm-kitty", "KITTY_WINDOW_ID": "1"})
	s.expect("\x1b]11;?\x1b\\\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[16t\x1b[c")
	s.key("j\x1b_Gi=31;OK\x1b\\\x1b[6;20;10t\x1b[?62;")
	s.key("4cq")
	require.Equal(t, "j", s.keys(1))
	require.Equal(t, "q", s.keys(1), "replies are not keys")
	<-s.daemon.Resized()
	kitty, sixel, w, h := s.daemon.Graphics()
	require.Equal(t, []any{true, true, 10, 20}, []any{kitty, sixel, w, h})

	s = show(t, map[string]string{"TERM": "xterm-256color"})
	require.Empty(t, s.expect("\x1b]11;?\x1b\\\x1b[16t\x1b[c"), "kitty's protocol is requested only where it is possible")
	s.key("\x1b[6;9999;1t\x1b[?1;4c!")
	require.Equal(t, "!", s.keys(1))
	<-s.daemon.Resized()
	kitty, sixel, w, h = s.daemon.Graphics()
	require.Equal(t, []any{false, true, 0, 0}, []any{kitty, sixel, w, h}, "an invalid cell size")

	s = show(t, map[string]string{"TERM": "tmux-256color", "TMUX": "/tmp/x"})
	s.key("k")
	require.Equal(t, "k", s.keys(1))
	_, err := s.daemon.Write([]byte("shown"))
	require.NoError(t, err)
	require.NotContains(t, s.expect("shown"), "\x1b[c", "tmux gets no request")
}

func TestKeysThatOnlyBeginLikeAnAnswerArrive(t *testing.T) {
	s := show(t, map[string]string{"TERM": "xterm"})
	s.expect("\x1b]11;?\x1b\\")
	s.key("\x1b")
	require.Equal(t, "\x1b", s.keys(1))
	s.key("\x1b]1")
	require.Equal(t, "\x1b]1", s.keys(3))
}

func TestProgramsRunOnTheTerminal(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("OUT", dir)
	t.Setenv("TMPDIR", dir)
	script := filepath.Join(dir, "fake editor")
	e2e.WriteProgram(t, script, `#!/bin/sh
echo "args $# $1 $(basename "$2")"
cat "$2"
ls -ld "$(dirname "$2")" | cut -c1-10
ls -l "$2" | cut -c1-10
stty -echo
read line
echo "read $line"
exit "${line#exit }"
`)
	s := show(t, map[string]string{"TERM": "tmux", "EDITOR": "'" + script + "' --wait", "PAGER": "false"})
	s.write("\x1b[?1049h\x1b[?25lscreen")
	opened := make(chan error)
	go func() {
		opened <- s.daemon.Open(t.Context(), remoteui.Editor, "files/notes 1.md", []byte("some content\n"))
	}()
	require.Equal(t, "\x1b[m\x1b[?25h", s.expect("\x1b[?1049l"))
	s.expect("args 2 --wait notes_1.md\r\nsome content\r\ndrwx------\r\n-rw-------\r\n")
	s.daemon.Write([]byte("\x1b[?1002hnot shown")) // dropped, except its modes
	s.resize(90, 20)
	s.key("exit 0\n")
	s.expect("read exit 0")
	require.NotContains(t, s.expect("\x1b[?1049h\x1b[?1002h\x1b[?25l"), "not shown")
	require.NoError(t, <-opened)
	<-s.daemon.Resized()
	w, h := s.daemon.Size()
	require.Equal(t, []int{90, 20}, []int{w, h})
	require.True(t, s.isRaw())
	s.key("k")
	require.Equal(t, "k", s.keys(1))
	s.write("again")

	require.ErrorContains(t, s.daemon.Open(t.Context(), remoteui.Pager, "x", nil), "false: exit status 1")
	left, err := filepath.Glob(filepath.Join(dir, "goblin-*"))
	require.NoError(t, err)
	require.Empty(t, left, "files of programs are removed")
	s.daemon.Exit("")
	<-s.ended
	require.NoError(t, s.err)
	require.False(t, s.isRaw(), "regardless of the program's changes to the terminal")
}

func TestScreenThatEndsTakesItsProgramAlong(t *testing.T) {
	s := show(t, map[string]string{"TERM": "tmux", "PAGER": `stty -echo -icanon; echo paging; sleep 1000; echo`})
	s.write("screen")
	opened := make(chan error)
	go func() { opened <- s.daemon.Open(t.Context(), remoteui.Pager, "x", nil) }()
	s.expect("paging")
	s.cut()
	require.ErrorIs(t, <-opened, remoteui.ErrDisconnected)
	<-s.ended
	require.ErrorIs(t, s.err, remoteui.ErrConnectionLost)
	require.False(t, s.isRaw())
}

func TestWhatAProgramThatWasEndedLeftOnIsSwitchedOff(t *testing.T) {
	const left = "\x1b[?1049h\x1b[?25l\x1b[?1002h\x1b[?2004h\x1b[2;5r\x1b(0paging"
	dir := t.TempDir()
	pager := filepath.Join(dir, "pager")
	for name, end := range map[string]string{"a signal": "kill -KILL $$", "the screen's end": "sleep 1000", "a signal within a shell": "kill -KILL $$"} {
		t.Run(name, func(t *testing.T) {
			e2e.WriteProgram(t, pager, "#!/bin/sh\nprintf '"+strings.ReplaceAll(left, "\x1b", "\\033")+"'\n"+end+"\n")
			command := pager
			if strings.Contains(name, "shell") {
				command = "A=1 " + pager
			}
			s := show(t, map[string]string{"TERM": "tmux", "PAGER": command})
			s.write("\x1b[?1049hscreen")
			opened := make(chan error, 1)
			go func() { opened <- s.daemon.Open(t.Context(), remoteui.Pager, "x", nil) }()
			s.expect("paging")
			if end == "sleep 1000" {
				s.cancel()
			}
			off := s.expect("\x1b[?1049l")
			for _, want := range []string{"\x1b[m", "\x1b[?1002l", "\x1b[?2004l", "\x1b[?25h", "\x1b[r", "\x1b(B"} {
				require.Contains(t, off, want)
			}
			require.Error(t, <-opened)
		})
	}
}

// halfway is a context that is cancelled after the first check.
type halfway struct {
	context.Context
	looks int
}

func (h *halfway) Err() error {
	h.looks++
	if h.looks > 1 {
		return context.Canceled
	}
	return nil
}

func TestContentThatWasGivenUpIsNotPartOfTheNext(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"some": "fresh", "none": ""} {
		t.Run(name, func(t *testing.T) {
			s := show(t, nil)
			_, err := s.daemon.Save(&halfway{Context: t.Context()}, filepath.Join(dir, "stale"), bytes.Repeat([]byte("stale"), 1<<17))
			require.ErrorIs(t, err, context.Canceled)
			where, err := s.daemon.Save(t.Context(), filepath.Join(dir, name), []byte(content))
			require.NoError(t, err)
			got, err := os.ReadFile(where)
			require.NoError(t, err)
			require.True(t, string(got) == content, "%d bytes", len(got))
		})
	}
}

func TestFilesAreSavedWhereTheRelayIs(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", filepath.Join(dir, "home"))
	require.NoError(t, os.Mkdir("home", 0o700))
	s := show(t, nil)
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // several pieces
	where, err := s.daemon.Save(t.Context(), "blob.bin", big)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "blob.bin"), where)
	got, err := os.ReadFile("blob.bin")
	require.NoError(t, err)
	require.True(t, bytes.Equal(big, got))
	where, err = s.daemon.Save(t.Context(), "~/in.txt", []byte("x"))
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "home", "in.txt"), where)

	_, err = s.daemon.Save(t.Context(), "blob.bin", []byte("other"))
	require.ErrorContains(t, err, "already exists")
	got, err = os.ReadFile("blob.bin")
	require.NoError(t, err)
	require.Len(t, got, len(big), "nothing is overwritten")
	_, err = s.daemon.Save(t.Context(), "no/such/folder", nil)
	require.ErrorContains(t, err, "no such file")
	_, err = s.daemon.Save(t.Context(), "", nil)
	require.ErrorContains(t, err, "no file name")
}

func TestTwoScreensAreApart(t *testing.T) {
	a, b := show(t, nil), show(t, nil)
	a.write("\x1b[?1049hfor a")
	b.write("\x1b[?1002hfor b")
	a.key("1")
	b.key("2")
	require.Equal(t, "1", a.keys(1))
	require.Equal(t, "2", b.keys(1))
	a.cut()
	<-a.ended
	a.expect("\x1b[?1049l")
	b.write("still here")
	b.key("3")
	require.Equal(t, "3", b.keys(1))
	b.daemon.Exit("")
	<-b.ended
	require.NoError(t, b.err)
	b.expect("\x1b[m\x1b[?1002l")
}

func TestScreensThatEndAbruptlyLeaveNothing(t *testing.T) {
	attach := func(i int) {
		outer, tty, err := pty.Open()
		require.NoError(t, err)
		defer outer.Close()
		defer tty.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		a, b := net.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			remoteui.Relay(ctx, b, remoteui.Terminal{In: tty, Out: tty, Getenv: func(string) string { return "" }})
		}()
		daemon, err := remoteui.Accept(a, a)
		require.NoError(t, err)
		_, err = daemon.Write([]byte("\x1b[?1049hx"))
		require.NoError(t, err)
		switch i % 4 {
		case 0:
			a.Close()
		case 1:
			b.Close()
		case 2:
			cancel()
		case 3:
			outer.Close()
		}
		<-ended
		<-daemon.Done()
		daemon.Close()
	}
	attach(2) // opens shared descriptors
	before := descriptors(t)
	for i := range 50 {
		attach(i)
	}
	require.Equal(t, before, descriptors(t)) // goroutines: TestMain
}

func descriptors(t *testing.T) int {
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		if list, err := os.ReadDir(dir); err == nil {
			return len(list)
		}
	}
	t.Skip("cannot count descriptors on this system")
	return 0
}
