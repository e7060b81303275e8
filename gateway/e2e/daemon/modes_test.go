//go:build e2e

package daemon

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// place returns an environment in which a command finds no config and no daemon.
func place(t *testing.T) []string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("signals and sockets are tested on Unix")
	}
	dir := e2e.ShortDir(t)
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "XDG_RUNTIME_DIR=" + dir, "TMPDIR=" + dir}
}

func start(t *testing.T, env []string, args ...string) (cmd *exec.Cmd, in io.WriteCloser, out, errs *bufio.Reader) {
	t.Helper()
	cmd = exec.Command(e2e.Goblin, args...)
	cmd.Env = env
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	timer := time.AfterFunc(e2e.Patience, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		timer.Stop()
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd, in, bufio.NewReader(stdout), bufio.NewReader(stderr)
}

func shell(t *testing.T, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), e2e.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, e2e.Goblin, args...)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = env, &out, &errs, 10*time.Second
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n"

// greet initializes a session on the streams of a command.
func greet(t *testing.T, in io.Writer, out *bufio.Reader) {
	t.Helper()
	_, err := io.WriteString(in, hello)
	require.NoError(t, err)
	line, err := out.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, `"serverInfo"`)
}

func TestServeTellsItsAddressAndEndsWell(t *testing.T) {
	file := filepath.Join(t.TempDir(), "goblin.yaml")
	require.NoError(t, os.WriteFile(file, []byte("servers: {off: {command: x, disabled: true}}\n"), 0o600))
	cmd, _, out, errs := start(t, place(t), "serve", "--listen", "127.0.0.1:0", "--config", file)
	line, err := errs.ReadString('\n')
	require.NoError(t, err)
	url := regexp.MustCompile(`^goblin: serving (http://127\.0\.0\.1:\d+)/mcp \(pid \d+\); press Ctrl-C to stop\n$`).FindStringSubmatch(line)
	require.NotNil(t, url, line)
	resp, err := http.Get(url[1] + "/healthz")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	http.DefaultClient.CloseIdleConnections()

	_, said, code := shell(t, place(t), "serve", "--config", file, "--listen", strings.TrimPrefix(url[1], "http://"))
	require.Equal(t, e2e.ExitFailure, code)
	require.Contains(t, said, "choose another address with --listen")

	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	rest, err := io.ReadAll(out)
	require.NoError(t, err)
	require.Empty(t, rest, "nothing goes to stdout")
	_, err = io.ReadAll(errs)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
}

func TestASecondSignalEndsAtOnce(t *testing.T) {
	// A server that doesn't exit by itself delays the first one. It has started another
	// process, as npx does.
	dir := t.TempDir()
	file, second := filepath.Join(dir, "goblin.yaml"), filepath.Join(dir, "pid")
	script := "trap '' TERM; (while :; do sleep 1; done) & echo $! >" + second + "; while :; do sleep 1; done"
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "servers:\n  deaf: {command: sh, args: [-c, %q]}\n", script), 0o600))
	cmd, in, out, _ := start(t, place(t), "stdio", "--standalone", "--config", file)
	greet(t, in, out)
	pid := ""
	e2e.Eventually(t, "the second process", func() bool {
		text, _ := os.ReadFile(second)
		pid = strings.TrimSpace(string(text))
		return pid != ""
	})
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for again := time.NewTicker(20 * time.Millisecond); ; { // two at the same moment count once
		select {
		case <-ended:
			again.Stop()
			require.Contains(t, []int{e2e.ExitOK, e2e.ExitFailure}, cmd.ProcessState.ExitCode())
			e2e.Eventually(t, "the end of what the server started", func() bool {
				line, _ := os.ReadFile("/proc/" + pid + "/cmdline") // empty for zombies
				return len(line) == 0
			})
			return
		case <-again.C:
			_ = cmd.Process.Signal(os.Interrupt)
		}
	}
}

func TestAReaderThatLeavesIsNoFailure(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	file := filepath.Join(t.TempDir(), "goblin.yaml")
	require.NoError(t, os.WriteFile(file, []byte("servers: {off: {command: x, disabled: true}}\n"), 0o600))
	cmd := exec.Command(e2e.Goblin, "list", "servers", "--config", file)
	var errs bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = place(t), w, &errs
	require.NoError(t, cmd.Run(), errs.String())
	require.NoError(t, w.Close())
	require.Empty(t, errs.String())
}
