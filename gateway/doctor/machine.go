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

// Machine has the findings about this machine, apart from servers. Each part may have
// failed, which is the error beside it.
type Machine struct {
	Version     string
	Config      string // as a user knows it
	Servers     int
	ConfigError string // what is wrong with the config, "" for nothing; nothing else is checked then

	Endpoint    daemon.Endpoint
	EndpointErr error
	Status      *daemon.Status // of the running daemon; nil for none
	StatusErr   error          // why there is none; [daemon.ErrNotRunning] is no failure

	Damaged []config.Problem // state files that cannot be read
	Clients []Client
}

// Client is Goblin's entry in the config file of an MCP client.
type Client struct {
	Name    string // as a user types it behind "goblin install"
	Title   string // as people call it
	File    string
	Command string
	Args    []string
	Problem string // why the entry could not be read; "" for nothing
}

// DaemonCheck is the name of the daemon's check in reports. JSON output keeps the older word.
const DaemonCheck = "host"

// daemonTimeout bounds what other daemons are asked for.
const daemonTimeout = 5 * time.Second

// QueryDaemon asks the running daemon of a place.
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

// Check checks all of it.
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
		r.AddBroken("config", m.ConfigError, "goblin validate tells all of its mistakes")
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
			fix = "set XDG_RUNTIME_DIR to a folder that is yours alone"
		}
		r.AddBroken(name, text, fix)
		return false
	}
	probe, err := os.CreateTemp(m.Endpoint.Dir, "doctor")
	if err != nil {
		r.AddBroken(name, fmt.Sprintf("nothing can be written to %s: %v", m.Endpoint.Dir, childproc.StripProgram(err)), "see its rights, and whether the disk is full")
		return false
	}
	_, err = probe.WriteString("x")
	if err = errors.Join(err, probe.Close(), os.Remove(probe.Name())); err != nil {
		r.AddBroken(name, fmt.Sprintf("nothing can be written to %s: %v", m.Endpoint.Dir, childproc.StripProgram(err)), "see whether the disk is full")
		return false
	}
	r.AddOK(name, m.Endpoint.Dir)
	return true
}

func (m *Machine) daemon(r *report.Diagnosis) bool {
	switch {
	case errors.Is(m.StatusErr, daemon.ErrNotRunning):
		r.AddOK(DaemonCheck, "none runs; the first client starts it")
	case m.StatusErr != nil:
		text, fix := splitFix(m.StatusErr.Error())
		if fix == "" {
			fix = "end it with \"goblin stop\"; the next client starts another"
		}
		r.AddBroken(DaemonCheck, text, fix)
		return false
	case m.Status == nil:
	case m.Status.Build != m.Endpoint.Build:
		r.AddWarning(DaemonCheck, fmt.Sprintf("pid %d runs another build (%s) than this one (%s)", m.Status.PID, cmp.Or(m.Status.Build, "unknown"), cmp.Or(m.Endpoint.Build, "unknown")),
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

// state reports damaged state files. The fix is the last part of a problem's text.
func (m *Machine) state(r *report.Diagnosis) {
	for _, p := range m.Damaged {
		text, fix := splitFix(p.String())
		r.AddWarning("state", text, fix)
	}
}

// versions looks for daemons of other versions of Goblin: a bridge only speaks to a daemon of
// its own, so that each version has one, with all its servers.
func (m *Machine) versions(ctx context.Context, r *report.Diagnosis) {
	const name = "version"
	for _, place := range daemon.FindRunning(m.Endpoint.Dir, m.Endpoint.Config, "") {
		if place.Version == m.Version {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, daemonTimeout)
		other, err := (daemon.Remote{Place: place}).Status(ctx)
		cancel()
		if err == nil {
			r.AddWarning(name, fmt.Sprintf("Goblin %s (pid %d) serves this config too, to %s; this is %s", place.Version, other.PID, termtext.Count(other.Clients(), "client"), m.Version),
				"restart the clients that use the other one, and have them start this version")
			return
		}
	}
	r.AddOK(name, m.Version)
}

// clients looks at the entries of clients.
func (m *Machine) clients(r *report.Diagnosis) {
	const name = "clients"
	self, _ := os.Executable()
	fine := 0
	for _, c := range m.Clients {
		again := termtext.Goblin("install", c.Name)
		switch {
		case c.Problem != "":
			r.AddWarning(name, fmt.Sprintf("%s: %s: %s", c.Title, c.File, c.Problem), "mend that file, then run "+again)
		case !isRunnable(c.Command):
			r.AddBroken(name, fmt.Sprintf("%s starts %q, which is not there", c.Title, c.Command), again)
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

// isRunnable reports whether a client could start a command, whatever its PATH.
func isRunnable(command string) bool {
	_, err := childproc.LookPath(command, os.Environ())
	return err == nil
}

// isSameProgram reports whether a command is the program at a path.
func isSameProgram(command, path string) bool {
	found, err := childproc.LookPath(command, os.Environ())
	if err != nil || path == "" {
		return err == nil
	}
	a, errA := os.Stat(found)
	b, errB := os.Stat(path)
	return errA != nil || errB != nil || os.SameFile(a, b) || filepath.Clean(found) == filepath.Clean(path)
}

// CompareDaemon adds what the running daemon says of a server that works here: it may have been
// started with another environment. ask has the daemon check the server.
func (m *Machine) CompareDaemon(r *report.Diagnosis, ask func(server string) (report.Diagnosis, error)) {
	if m.Status == nil || r.State == report.Broken {
		return
	}
	for _, s := range m.Status.Servers {
		if s.Name != r.Server || s.Error == "" || s.State == "ready" || s.State == "disabled" {
			continue
		}
		text := fmt.Sprintf("it works here, but the running daemon (pid %d) says: %s", m.Status.PID, s.Error)
		fix := termtext.Goblin("restart", r.Server)
		if theirs, err := ask(r.Server); err == nil && theirs.State == report.Broken {
			found := theirs.Findings()
			last := found[len(found)-1]
			text = fmt.Sprintf("it works here, but not in the running daemon (pid %d), which has another environment: %s", m.Status.PID, last.Text)
			fix = last.Fix
		}
		r.AddBroken(DaemonCheck, text, fix)
	}
}
