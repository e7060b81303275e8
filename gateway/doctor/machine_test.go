package doctor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/daemon"
	"goblin/gateway/doctor"
	"goblin/gateway/e2e"
	"goblin/registry/report"
)

// place returns the endpoint of a daemon, with a short path.
func place(t *testing.T, version string) daemon.Endpoint {
	t.Helper()
	dir := e2e.ShortDir(t)
	p, err := daemon.Find("hash", version, func(k string) string { return map[string]string{"XDG_RUNTIME_DIR": dir}[k] })
	require.NoError(t, err)
	p.Config = "/c.yaml"
	return p
}

func serveStatus(t *testing.T, p daemon.Endpoint, status daemon.Status) {
	t.Helper()
	l, err := daemon.Listen(p)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- l.Serve(ctx, daemon.Handlers{Control: func(context.Context, string, json.RawMessage) (any, error) { return status, nil }})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		_ = l.Close()
	})
}

func machine(t *testing.T) *doctor.Machine {
	return &doctor.Machine{Version: "2", Config: "c.yaml", Endpoint: place(t, "2"), StatusErr: daemon.ErrNotRunning}
}

func TestTheChecksOfThisMachine(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		change func(*doctor.Machine)
		check  string
		state  report.State
		text   string
		fix    string
	}{
		"all is well":          {func(*doctor.Machine) {}, "version", report.OK, "2", ""},
		"mistakes in the file": {func(m *doctor.Machine) { m.ConfigError = "c.yaml:3: unknown key" }, "config", report.Broken, "c.yaml:3", "goblin validate"},
		"an open folder":       {func(m *doctor.Machine) { m.EndpointErr = errors.New("the folder /x is open; run: chmod 700 /x") }, "runtime", report.Broken, "the folder /x is open", "run: chmod 700 /x"},
		"a removed folder": {func(m *doctor.Machine) {
			m.Endpoint.Dir = filepath.Join(m.Endpoint.Dir, "gone")
		}, "runtime", report.Broken, "cannot write to", "permissions"},
		"a daemon that hangs": {func(m *doctor.Machine) { m.StatusErr = errors.New("it does not answer; if it hangs, kill it") }, doctor.DaemonCheck, report.Broken, "it does not answer", "kill it"},
		"an edit not taken": {func(m *doctor.Machine) {
			m.StatusErr, m.Status = nil, &daemon.Status{Notice: "the edited config has mistakes"}
		}, doctor.DaemonCheck, report.Warning, "the edited config has mistakes", "validate"},
		"a daemon of another build": {func(m *doctor.Machine) {
			m.Endpoint.Build, m.StatusErr, m.Status = "new", nil, &daemon.Status{PID: 7}
		}, doctor.DaemonCheck, report.Warning, "pid 7 is build unknown, this command is build new", "goblin stop"},
		"an entry without its program": {func(m *doctor.Machine) {
			m.Clients = []doctor.Client{{Name: "cursor", Title: "Cursor", Command: "/no/such/goblin"}}
		}, "clients", report.Broken, `Cursor starts "/no/such/goblin", which doesn't exist`, "goblin install cursor"},
		"an entry of another one": {func(m *doctor.Machine) {
			m.Clients = []doctor.Client{{Name: "cursor", Title: "Cursor", Command: "/bin/sh"}}
		}, "clients", report.Warning, "Cursor starts another Goblin, /bin/sh", "goblin install cursor"},
		"a file that is not understood": {func(m *doctor.Machine) {
			m.Clients = []doctor.Client{{Name: "zed", Title: "Zed", File: "/z.json", Problem: "line 3: no comma"}}
		}, "clients", report.Warning, "Zed: /z.json: line 3: no comma", "fix the file"},
		"an entry of Goblin": {func(m *doctor.Machine) {
			m.Clients = []doctor.Client{{Name: "zed", Title: "Zed", Command: self}}
		}, "clients", report.OK, "1 client can start this Goblin", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := machine(t)
			tt.change(m)
			r := m.Check(t.Context())
			var found report.Check
			for _, c := range r.Checks {
				if c.Name == tt.check {
					found = c
				}
			}
			require.Equal(t, tt.state, found.State, "%v", r.Checks)
			require.Equal(t, tt.state, r.State)
			require.Contains(t, found.Text, tt.text)
			require.Contains(t, found.Fix, tt.fix)
		})
	}
}

func TestDaemonsOfOtherVersionsAreFound(t *testing.T) {
	t.Parallel()
	m := machine(t)
	old := m.Endpoint
	old.Version, old.Socket, old.Lock = "1", filepath.Join(old.Dir, "old.sock"), filepath.Join(old.Dir, "old.lock")
	serveStatus(t, old, daemon.Status{PID: 7, Sessions: []daemon.Session{{Client: "editor"}}})
	r := m.Check(t.Context())
	require.Equal(t, report.Warning, r.State, "%v", r.Checks)
	require.Contains(t, r.Findings()[0].Text, "a daemon of Goblin 1 (pid 7) also serves this config and has 1 client; this is Goblin 2")
}

func TestTheDaemonOfADevelopmentBuildIsNoOtherVersion(t *testing.T) {
	t.Parallel()
	m := machine(t)
	m.Endpoint.Version = m.Version + "-dev" // as cli.Version.Handshake returns it
	serveStatus(t, m.Endpoint, daemon.Status{PID: 7})
	r := m.Check(t.Context())
	require.Equal(t, report.OK, r.State, "%v", r.Checks)
}

func TestARunningDaemonIsLookedAt(t *testing.T) {
	t.Parallel()
	m := machine(t)
	serveStatus(t, m.Endpoint, daemon.Status{PID: 9, Started: time.Now(), Servers: []daemon.Server{
		{Name: "fine", State: "ready"}, {Name: "path", State: "failed", Error: "not found"}, {Name: "once", State: "retrying", Error: "gone"},
	}})
	m.QueryDaemon(t.Context(), m.Endpoint)
	require.NoError(t, m.StatusErr)
	require.Equal(t, "pid 9, up 0 s, 0 clients", m.Check(t.Context()).Checks[2].Text)

	ask := func(server string) (report.Diagnosis, error) {
		theirs := report.Diagnosis{Server: server}
		if server == "path" {
			theirs.AddBroken("command", "npx not found in PATH", "add PATH")
		} else {
			theirs.AddOK("command", "npx")
		}
		return theirs, nil
	}
	for server, want := range map[string]string{
		"fine": "ok ",
		"path": "broken works here, but not in the running daemon (pid 9), which has another environment: npx not found in PATH → add PATH",
		"once": "broken works here, but the running daemon (pid 9) reports: gone → goblin restart once",
	} {
		r := report.Diagnosis{Server: server, State: report.OK}
		m.CompareDaemon(&r, ask)
		got := string(r.State) + " "
		for _, c := range r.Checks {
			got += fmt.Sprintf("%s → %s", c.Text, c.Fix)
		}
		require.Equal(t, want, got)
	}
}
