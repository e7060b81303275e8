//go:build unix

package remoteui_test

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"goblin/gateway/e2e"
	"goblin/gateway/remoteui"
)

// job is a relay that runs as a job of a shell on a terminal.
type job struct {
	*emulator
	daemon *remoteui.Conn
	pid    int
}

// runJob starts a shell that runs the relay. After each stop and the next line of input,
// the shell continues it in the foreground.
func runJob(t *testing.T, env ...string) *job {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	socket := filepath.Join(e2e.ShortDir(t), "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	defer l.Close()
	sh := exec.Command("sh", "-mc", `"$0"; for i in 1 2 3; do echo "shell has it"; read x; echo "shell read $x"; fg >/dev/null 2>&1; done`, self)
	sh.Env = append(os.Environ(), append([]string{asRelay + "=" + socket, "TERM=tmux"}, env...)...)
	outer, err := pty.Start(sh)
	require.NoError(t, err)
	j := &job{emulator: watchTerminal(t, outer)}
	t.Cleanup(func() {
		_ = unix.Kill(j.pid, unix.SIGKILL)
		_ = sh.Process.Kill()
		_ = sh.Wait()
	})
	c, err := l.Accept()
	require.NoError(t, err)
	pid := make([]byte, 8)
	_, err = io.ReadFull(c, pid)
	require.NoError(t, err)
	j.pid, err = strconv.Atoi(string(pid))
	require.NoError(t, err)
	j.daemon, err = remoteui.Accept(c, c)
	require.NoError(t, err)
	t.Cleanup(func() { j.daemon.Close() })
	return j
}

func (j *job) write(text string) {
	j.t.Helper()
	_, err := j.daemon.Write([]byte(text))
	require.NoError(j.t, err)
	j.expect(text)
}

func (j *job) keys(want string) {
	j.t.Helper()
	buf := make([]byte, len(want))
	_, err := io.ReadFull(j.daemon, buf)
	require.NoError(j.t, err)
	require.Equal(j.t, want, string(buf))
}

func TestStoppedScreenComesBack(t *testing.T) {
	t.Parallel()
	j := runJob(t)
	j.write("\x1b[?1049h\x1b[?25lscreen")
	for range 2 {
		require.NoError(t, unix.Kill(j.pid, unix.SIGTSTP))
		j.expect("\x1b[?25h\x1b[?1049l")
		j.expect("shell has it\r\n")
		wrote := make(chan error)
		go func() { // dropped or delayed, if the daemon knows of the stop or not
			_, err := j.daemon.Write(make([]byte, 1<<20))
			wrote <- err
		}()
		j.key("line\n")
		j.expect("line\r\n") // the shell's terminal echoes
		j.expect("\x1b[?1049h\x1b[?25l")
		require.NoError(t, <-wrote)
		<-j.daemon.Resized()
		j.key("k\x03")
		j.keys("k\x03")
		j.write("painted again")
	}
	require.NoError(t, j.daemon.Exit("told to"))
	j.expect("\x1b[?1049l")
	j.expect(`reason="told to" error=<nil>`)
}

func TestScreenComesBackAfterAStopThatCannotBeCaught(t *testing.T) {
	t.Parallel()
	j := runJob(t)
	j.write("\x1b[?1049hscreen")
	require.NoError(t, unix.Kill(j.pid, unix.SIGSTOP))
	j.expect("shell has it")
	j.key("\n")
	j.expect("\x1b[?1049h")
	<-j.daemon.Resized()
	j.key("k")
	j.keys("k")
}

func TestKeysThatNobodyReadsDoNotKeepAStopWaiting(t *testing.T) {
	t.Parallel()
	j := runJob(t, "TERM=xterm") // keys are searched for a reply
	j.write("\x1b[?1049hscreen")
	for {
		require.NoError(t, j.outr.SetWriteDeadline(time.Now().Add(300*time.Millisecond)))
		if _, err := j.outr.WriteString(strings.Repeat("\x1b]1", 200)); err != nil {
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			break
		}
	}
	require.NoError(t, j.outr.SetWriteDeadline(time.Time{}))
	require.NoError(t, unix.Kill(j.pid, unix.SIGTSTP))
	j.expect("shell has it")
}

func TestProgramsNeedOnlyAShell(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	for _, name := range []string{"sh", "cat"} {
		path, err := exec.LookPath(name)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(path, filepath.Join(bin, name)))
	}
	j := runJob(t, "PATH="+bin, "PAGER=cat")
	j.write("\x1b[?1049hscreen")
	require.NoError(t, j.daemon.Open(t.Context(), remoteui.Pager, "x", []byte("content")))
	j.expect("content")
	j.key("k") // for the foreground job
	j.keys("k")
}

func TestSizeFollowsTheTerminal(t *testing.T) {
	j := runJob(t)
	j.write("screen")
	j.resize(132, 43)
	for w, h := j.daemon.Size(); w != 132 || h != 43; w, h = j.daemon.Size() {
		<-j.daemon.Resized()
	}
}

func TestKeysOfSignalsAreForTheProgramInFront(t *testing.T) {
	t.Parallel()
	for name, prefix := range map[string]string{"a program": "", "a shell's command": "A=1 "} {
		t.Run(name, func(t *testing.T) { keysOfSignals(t, prefix) })
	}
}

func keysOfSignals(t *testing.T, prefix string) {
	dir := t.TempDir()
	pager, reads := filepath.Join(dir, "pager"), filepath.Join(dir, "reads")
	// Three races are possible. A program that reads a line may receive the shell's
	// input. A read that begins at that time misses the interrupt. A shell that starts a
	// program is not stopped.
	e2e.WriteProgram(t, pager, `#!/bin/sh
trap 'echo interrupted' INT
cat "$1"
until [ -e "$READS" ]; do :; done
read line
echo "read $line"
`)
	j := runJob(t, "PAGER="+prefix+pager, "READS="+reads)
	j.write("\x1b[?1049hscreen")
	opened := make(chan error)
	go func() { opened <- j.daemon.Open(t.Context(), remoteui.Pager, "x", []byte("content\n")) }()
	j.expect("\x1b[?1049l")
	j.expect("content\r\n")
	j.key("\x03")
	j.expect("interrupted\r\n")
	j.key("\x1a")
	j.expect("shell has it")
	j.key("on\n")
	j.expect("shell read on")
	require.NoError(t, os.WriteFile(reads, nil, 0o600))
	j.key("end\n")
	j.expect("read end")
	j.expect("\x1b[?1049h")
	require.NoError(t, <-opened)
	j.key("k\x03")
	j.keys("k\x03")
	require.NoError(t, unix.Kill(j.pid, unix.SIGTSTP)) // still caught
	j.expect("\x1b[?1049l")
	j.expect("shell has it")
	j.key("\n")
	j.expect("\x1b[?1049h")
	require.NoError(t, unix.Kill(j.pid, unix.SIGTERM))
	j.expect("\x1b[?1049l")
	j.expect("error=context canceled")
}
