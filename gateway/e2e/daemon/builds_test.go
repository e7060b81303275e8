//go:build e2e

package daemon

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// TestTheProgramIsRebuiltWhileADaemonRuns: all development builds have the same version.
func TestTheProgramIsRebuiltWhileADaemonRuns(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Filesystem())
	w.Write()
	program := filepath.Join(w.Dir, "goblin")
	run := func(args ...string) (stdout, stderr string) {
		var out bytes.Buffer
		p := w.Execute(program, func(cmd *exec.Cmd) { cmd.Stdout = &out }, args...)
		require.Zero(t, p.Ends(e2e.Patience), "%s", &p.Stderr)
		return out.String(), p.Stderr.String()
	}
	client := func() *e2e.Client {
		c := w.PipeTo(program, "stdio")
		c.Init()
		require.Equal(t, "b:stat:{}", c.CallText("b_stat", e2e.Obj{}))
		return c
	}
	type daemonStatus struct {
		PID   int
		Build string
	}
	status := func() (s daemonStatus) {
		out, _ := run("status", "--json")
		require.NoError(t, json.Unmarshal([]byte(out), &s))
		return s
	}

	require.NoError(t, e2e.BuildAs(program, "first"))
	before := client()
	first := status()
	require.Regexp(t, "first$", first.Build)
	link := filepath.Join(w.Dir, "link")
	require.NoError(t, os.Symlink(program, link))
	ui := w.Pane(160, 45)
	ui.Line("%s", link)
	ui.Shows("Servers")
	ui.Keys("q")
	ui.Hides("Servers")

	require.NoError(t, e2e.BuildAs(program, "second"))
	ui.Line("%s", program)
	ui.Shows(`first, this program is build `, `second; stop it with "goblin stop" and start again`)
	after := client() // is served
	require.True(t, after.Prog.Stderr.Holds(e2e.Patience, func() bool {
		return bytes.Contains(after.Prog.Stderr.Text.Bytes(), []byte(`it serves this client until you run "goblin stop"`))
	}))
	beside := w.PipeTo(program, "--tui", "--tui-tty", ui.Ask("pane_tty"))
	beside.Init() // without the UI
	require.True(t, beside.Prog.Stderr.Holds(e2e.Patience, func() bool {
		return bytes.Contains(beside.Prog.Stderr.Text.Bytes(), []byte("and start again; still serving the client"))
	}))
	beside.Close()
	require.Zero(t, beside.Prog.Ends(e2e.Patience))
	require.Equal(t, first, status())
	text, _ := run("status")
	require.Contains(t, text, "this command is build ")
	_, _ = run("logs")
	doctor, _ := run("doctor")
	require.Contains(t, doctor, "this command is build")

	_, _ = run("stop")
	for _, c := range []*e2e.Client{before, after} { // their bridges come from both builds
		c.CallUntilItWorks("b_stat")
	}
	second := status()
	require.Regexp(t, "second$", second.Build)
	require.NotEqual(t, first.PID, second.PID)
	require.NotContains(t, before.Prog.Stderr.String(), "another build", "nothing must be fixed")
	ui.Line("%s", program)
	ui.Shows("Servers")
	ui.Keys("q")
	ui.Hides("Servers")
	before.Close()
	after.Close()
	_, _ = run("stop")
}
