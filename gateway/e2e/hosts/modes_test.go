package hosts

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// place is an environment in which a command finds no config and no host.
func place(t *testing.T) []string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("signals and sockets are tested on Unix")
	}
	dir, err := os.MkdirTemp("", "gm") // short: paths of sockets are limited
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
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

func TestWrongCommandLinesAreOneLineAndCode2(t *testing.T) {
	env := place(t)
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"lst"}, `there is no command "lst"; did you mean "list"? See "goblin --help"`},
		{[]string{"serch", "x"}, `there is no command "serch"; did you mean "search" or "serve"? See "goblin --help"`},
		{[]string{"xyzzy"}, `there is no command "xyzzy"; see "goblin --help"`},
		{[]string{"servers.json"}, `there is no command "servers.json"; a config is named by --config servers.json; see`},
		{[]string{"--bogus"}, "unknown flag: --bogus"},
		{[]string{"stdio", "now"}, "goblin: stdio takes no arguments"},
		{[]string{"serve", "--listen", "nowhere"}, "must be host:port"},
		{[]string{"completion", "tcsh"}, "say for which shell"},
		{[]string{"completion", "bash", "x"}, `goblin: completion bash takes no arguments, but got "x"`},
		{[]string{"help", "list", "tools"}, `list has no command "tools"; see "goblin list --help"`},
		{[]string{"status", "--config", ""}, "goblin: --config must not be empty"},
		{[]string{"--theme", "pink"}, `goblin: --theme must be one of auto, dark, light, none, not "pink"`},
		{[]string{"--tui-tty", "/dev/null"}, "/dev/null is not a terminal"},
		{[]string{"demo-server", "nobody"}, "name one demo server of [clock library notes]"},
	}
	for _, tt := range tests {
		out, errs, code := shell(t, env, tt.args...)
		require.Equal(t, e2e.ExitUsage, code, tt.args)
		require.Contains(t, errs, tt.want)
		require.Equal(t, 1, strings.Count(errs, "\n"), errs)
		require.Empty(t, out)
	}
}

func TestHelpShowsFlagsWhereTheyDoSomething(t *testing.T) {
	env := place(t)
	for _, tt := range []struct{ args, shows, hides string }{
		{"--help", "--config --theme --ascii --tui", ""},
		{"status --help", "--config --json", "--theme --ascii"},
		{"stdio --help", "--config --standalone", "--theme --ascii"},
		{"version --help", "--json", "--config --theme --ascii"},
		{"completion bash --help", "", "--config --theme --ascii"},
	} {
		text, _, code := shell(t, env, strings.Fields(tt.args)...)
		require.Zero(t, code)
		for flag := range strings.FieldsSeq(tt.shows) {
			require.Contains(t, text, flag, tt.args)
		}
		for flag := range strings.FieldsSeq(tt.hides) {
			require.NotContains(t, text, flag, tt.args)
		}
	}
	for _, args := range []string{"--config none.yaml version", "version --theme dark", "--ascii version"} {
		_, _, code := shell(t, env, strings.Fields(args)...)
		require.Zero(t, code, "what does nothing is no mistake: %s", args)
	}
}

func TestConfigsThatCannotBeUsedAreCode3(t *testing.T) {
	env := place(t)
	file := filepath.Join(t.TempDir(), "goblin.yaml")
	require.NoError(t, os.WriteFile(file, []byte("servers:\n  a: {comand: x}\n"), 0o600))
	for _, args := range [][]string{{"stdio"}, {"stdio", "--standalone"}, {"serve"}, {"host"}, {"validate"}} {
		_, errs, code := shell(t, env, append(args, "--config", file)...)
		require.Equal(t, e2e.ExitConfig, code, args)
		require.Contains(t, errs, `goblin.yaml:2: unknown key "comand"`)
	}
	_, errs, code := shell(t, env, "serve", "--listen", "0.0.0.0:0")
	require.Equal(t, e2e.ExitConfig, code)
	require.Contains(t, errs, "auth_token is required")
}

func TestTheDemoAnswersFromTheShell(t *testing.T) {
	env := place(t)
	out, errs, code := shell(t, env, "list", "servers", "--json")
	require.Zero(t, code, errs)
	var servers []struct{ Name, State string }
	require.NoError(t, json.Unmarshal([]byte(out), &servers))
	require.Len(t, servers, 3)
	for _, s := range servers {
		require.Equal(t, "ready", s.State, s.Name)
	}
	out, errs, code = shell(t, env, "read", "mcp://notes/note:///haiku")
	require.Zero(t, code, errs)
	require.NotEmpty(t, out)
	_, errs, code = shell(t, env, "read", "mcp://notes/note:///haik")
	require.Equal(t, e2e.ExitNotFound, code)
	require.Contains(t, errs, `did you mean "mcp://notes/note:///haiku"`)
}

func TestStandaloneEndsWithItsClient(t *testing.T) {
	for name, end := range map[string]func(*exec.Cmd, io.Closer){
		"end of input": func(_ *exec.Cmd, in io.Closer) { _ = in.Close() },
		"SIGTERM":      func(cmd *exec.Cmd, _ io.Closer) { _ = cmd.Process.Signal(syscall.SIGTERM) },
		"SIGINT":       func(cmd *exec.Cmd, _ io.Closer) { _ = cmd.Process.Signal(os.Interrupt) },
		"SIGHUP":       func(cmd *exec.Cmd, _ io.Closer) { _ = cmd.Process.Signal(syscall.SIGHUP) },
	} {
		t.Run(name, func(t *testing.T) {
			if name == "SIGHUP" && signal.Ignored(syscall.SIGHUP) {
				t.Skip("under nohup, which Goblin heeds")
			}
			cmd, in, out, errs := start(t, place(t), "stdio", "--standalone")
			greet(t, in, out)
			end(cmd, in)
			rest, err := io.ReadAll(out)
			require.NoError(t, err)
			for line := range strings.Lines(string(rest)) {
				require.True(t, json.Valid([]byte(line)), "not JSON-RPC: %q", line)
			}
			_, err = io.ReadAll(errs)
			require.NoError(t, err)
			require.NoError(t, cmd.Wait())
		})
	}
}

func TestClientsShareOneHostThatCanBeAskedAndStopped(t *testing.T) {
	env := place(t)
	cmd, in, out, _ := start(t, env, "stdio")
	greet(t, in, out)
	cmd2, in2, out2, _ := start(t, env) // on pipes it is stdio
	greet(t, in2, out2)

	text, errs, code := shell(t, env, "status", "--json")
	require.Zero(t, code, errs)
	var status struct {
		PID      int
		Sessions []struct{ Transport string }
	}
	require.NoError(t, json.Unmarshal([]byte(text), &status))
	require.Len(t, status.Sessions, 2)
	require.Equal(t, "socket", status.Sessions[0].Transport)

	_, errs, code = shell(t, env, "serve")
	require.Equal(t, e2e.ExitFailure, code)
	require.Regexp(t, `runs already \(pid \d+\)`, errs)
	text, errs, code = shell(t, env, "restart", "clock")
	require.Zero(t, code, errs)
	require.Equal(t, "Restarting \"clock\".\n", text)
	_, errs, code = shell(t, env, "restart", "clck")
	require.Equal(t, e2e.ExitNotFound, code, errs)

	// A client that is still there would start the next host.
	for cmd, in := range map[*exec.Cmd]io.Closer{cmd: in, cmd2: in2} {
		require.NoError(t, in.Close())
		require.NoError(t, cmd.Wait())
	}
	e2e.Eventually(t, "the host to hear of it", func() bool {
		text, errs, code := shell(t, env, "status", "--json")
		require.Zero(t, code, errs)
		return !strings.Contains(text, `"socket"`)
	})
	text, errs, code = shell(t, env, "stop")
	require.Zero(t, code, errs)
	require.Regexp(t, `^Stopped the host \(pid \d+\)\.\n$`, text)
	require.Contains(t, text, strconv.Itoa(status.PID))
	_, errs, code = shell(t, env, "status")
	require.Equal(t, e2e.ExitConnect, code, errs)
}

func TestServeTellsItsAddressAndEndsWell(t *testing.T) {
	cmd, _, out, errs := start(t, place(t), "serve", "--listen", "127.0.0.1:0")
	line, err := errs.ReadString('\n')
	require.NoError(t, err)
	url := regexp.MustCompile(`^goblin: serving (http://127\.0\.0\.1:\d+)/mcp \(pid \d+\); Ctrl-C ends it\n$`).FindStringSubmatch(line)
	require.NotNil(t, url, line)
	resp, err := http.Get(url[1] + "/healthz")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	http.DefaultClient.CloseIdleConnections()

	_, said, code := shell(t, place(t), "serve", "--listen", strings.TrimPrefix(url[1], "http://"))
	require.Equal(t, e2e.ExitFailure, code)
	require.Contains(t, said, "choose another one with --listen")

	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	rest, err := io.ReadAll(out)
	require.NoError(t, err)
	require.Empty(t, rest, "nothing goes to stdout")
	_, err = io.ReadAll(errs)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
}

func TestASecondSignalEndsAtOnce(t *testing.T) {
	// A server that does not end by itself keeps the first one waiting, and it
	// has started another process, as npx does.
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
	cmd := exec.Command(e2e.Goblin, "list", "resources")
	var errs bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = place(t), w, &errs
	require.NoError(t, cmd.Run(), errs.String())
	require.NoError(t, w.Close())
	require.Empty(t, errs.String())
}
