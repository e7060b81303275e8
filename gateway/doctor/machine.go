package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"goblin/gateway/childproc"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/registry/report"
	"goblin/registry/termtext"
)

// Machine contains the facts about this machine that concern all servers. Each fact may
// be missing, with the error beside it.
type Machine struct {
	Version     string
	Config      string // file name for users
	Servers     int
	ConfigError string // config mistakes, or ""; if set, nothing else is checked

	Endpoint    daemon.Endpoint
	EndpointErr error
	Status      *daemon.Status // of the running daemon, or nil
	StatusErr   error          // why Status is nil; [daemon.ErrNotRunning] is not a failure

	Rules   []config.Problem // rules of the config that cannot work
	Damaged []config.Problem // damaged state files
	Clients []Client
}

// Client is Goblin's entry in the config file of an MCP client.
type Client struct {
	Name    string // argument of "goblin install"
	Title   string // display name
	File    string
	Command string
	Problem string // why the entry could not be read, or ""
}

// DaemonCheck is the name of the daemon's check in reports. It is part of the JSON
// output.
const DaemonCheck = "host"

const daemonTimeout = 5 * time.Second

// QueryDaemon fetches the status of the daemon at an endpoint.
func (m *Machine) QueryDaemon(ctx context.Context, place daemon.Endpoint) {
	ctx, cancel := context.WithTimeout(ctx, 2*daemonTimeout)
	defer cancel()
	m.Endpoint = place
	status, err := (daemon.Remote{Place: place}).Status(ctx)
	m.StatusErr = err
	if err == nil {
		m.Status = &status
	}
}

// Check checks the machine up to the first failure.
func (m *Machine) Check(ctx context.Context) report.Diagnosis {
	r := report.Diagnosis{Checks: []report.Check{}}
	if m.config(&r) && m.runtime(&r) && m.daemon(&r) {
		m.state(&r)
		m.versions(ctx, &r)
		m.clients(&r)
	}
	return r
}

func (m *Machine) config(r *report.Diagnosis) bool {
	if m.ConfigError != "" {
		r.AddBroken("config", m.ConfigError, "to see all mistakes, run \"goblin validate\"")
		return false
	}
	r.AddOK("config", m.Config+", "+termtext.Count(m.Servers, "server"))
	return true
}

func (m *Machine) runtime(r *report.Diagnosis) bool {
	const name = "runtime"
	if m.EndpointErr != nil {
		text, fix := splitFix(m.EndpointErr.Error())
		if fix == "" {
			fix = "set XDG_RUNTIME_DIR to a folder that only you can access"
		}
		r.AddBroken(name, text, fix)
		return false
	}
	probe, err := os.CreateTemp(m.Endpoint.Dir, "doctor")
	if err != nil {
		r.AddBroken(name, fmt.Sprintf("cannot write to %s: %v", m.Endpoint.Dir, childproc.StripProgram(err)), "check its permissions and free disk space")
		return false
	}
	_, err = probe.WriteString("x")
	if err = errors.Join(err, probe.Close(), os.Remove(probe.Name())); err != nil {
		r.AddBroken(name, fmt.Sprintf("cannot write to %s: %v", m.Endpoint.Dir, childproc.StripProgram(err)), "check the free disk space")
		return false
	}
	r.AddOK(name, m.Endpoint.Dir)
	return true
}

func (m *Machine) daemon(r *report.Diagnosis) bool {
	switch {
	case errors.Is(m.StatusErr, daemon.ErrNotRunning):
		r.AddOK(DaemonCheck, "no daemon is running; the first client starts one")
	case m.StatusErr != nil:
		text, fix := splitFix(m.StatusErr.Error())
		if fix == "" {
			fix = "stop it with \"goblin stop\"; the next client starts a new one"
		}
		r.AddBroken(DaemonCheck, text, fix)
		return false
	case m.Status == nil:
	case m.Status.Build != m.Endpoint.Build:
		r.AddWarning(DaemonCheck, fmt.Sprintf("pid %d is build %s, this command is build %s", m.Status.PID, cmp.Or(m.Status.Build, "unknown"), cmp.Or(m.Endpoint.Build, "unknown")),
			"run \"goblin stop\"; clients then start the current build")
	case m.Status.Notice != "":
		text, fix := splitFix(m.Status.Notice)
		if fix == "" {
			fix = "goblin validate"
		}
		r.AddWarning(DaemonCheck, text, fix)
	default:
		r.AddOK(DaemonCheck, fmt.Sprintf("pid %d, up %s, %s", m.Status.PID, termtext.Age(time.Since(m.Status.Started)), termtext.Count(m.Status.Clients(), "client")))
	}
	return true
}

// state reports damaged state files. A problem's text ends with the fix.
func (m *Machine) state(r *report.Diagnosis) {
	for _, p := range m.Rules {
		text, fix := splitFix(p.String())
		r.AddWarning("rules", text, fix)
	}
	for _, p := range m.Damaged {
		text, fix := splitFix(p.String())
		r.AddWarning("state", text, fix)
	}
}

// versions reports daemons of other versions. A bridge only connects to a daemon of its
// own version, so each version runs all servers.
func (m *Machine) versions(ctx context.Context, r *report.Diagnosis) {
	const name = "version"
	for _, place := range daemon.FindRunning(m.Endpoint.Dir, m.Endpoint.Config, "") {
		if place.Version == m.Endpoint.Version {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, daemonTimeout)
		other, err := (daemon.Remote{Place: place}).Status(ctx)
		cancel()
		if err == nil {
			r.AddWarning(name, fmt.Sprintf("a daemon of Goblin %s (pid %d) also serves this config and has %s; this is Goblin %s", place.Version, other.PID, termtext.Count(other.Clients(), "client"), m.Endpoint.Version),
				"make its clients start this version, then restart them")
			return
		}
	}
	r.AddOK(name, m.Version)
}

func (m *Machine) clients(r *report.Diagnosis) {
	const name = "clients"
	self, _ := os.Executable()
	fine := 0
	for _, c := range m.Clients {
		again := termtext.Goblin("install", c.Name)
		switch {
		case c.Problem != "":
			r.AddWarning(name, fmt.Sprintf("%s: %s: %s", c.Title, c.File, c.Problem), "fix the file, then run "+again)
		case !isRunnable(c.Command):
			r.AddBroken(name, fmt.Sprintf("%s starts %q, which doesn't exist", c.Title, c.Command), again)
		case !isSameProgram(c.Command, self):
			r.AddWarning(name, fmt.Sprintf("%s starts another Goblin, %s; this is %s", c.Title, c.Command, self), again)
		default:
			fine++
		}
	}
	if fine > 0 {
		r.AddOK(name, termtext.Count(fine, "client")+" can start this Goblin")
	}
}

func isRunnable(command string) bool {
	_, err := childproc.LookPath(command, os.Environ())
	return err == nil
}

func isSameProgram(command, path string) bool {
	found, err := childproc.LookPath(command, os.Environ())
	if err != nil || path == "" {
		return err == nil
	}
	a, errA := os.Stat(found)
	b, errB := os.Stat(path)
	return errA != nil || errB != nil || os.SameFile(a, b) || filepath.Clean(found) == filepath.Clean(path)
}

// CompareDaemon reports a server that works here but fails in the running daemon, which
// may have another environment. ask lets the daemon check the server.
func (m *Machine) CompareDaemon(r *report.Diagnosis, ask func(server string) (report.Diagnosis, error)) {
	if m.Status == nil || r.State == report.Broken {
		return
	}
	for _, s := range m.Status.Servers {
		if s.Name != r.Server || s.Error == "" || s.State == "ready" || s.State == "disabled" {
			continue
		}
		text := fmt.Sprintf("works here, but the running daemon (pid %d) reports: %s", m.Status.PID, s.Error)
		fix := termtext.Goblin("restart", r.Server)
		if theirs, err := ask(r.Server); err == nil && theirs.State == report.Broken {
			found := theirs.Findings()
			last := found[len(found)-1]
			text = fmt.Sprintf("works here, but not in the running daemon (pid %d), which has another environment: %s", m.Status.PID, last.Text)
			fix = last.Fix
		}
		r.AddBroken(DaemonCheck, text, fix)
	}
}
