package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"goblin/gateway/childproc"
	"goblin/gateway/cli"
	"goblin/gateway/clientconfig"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/gateway/doctor"
	"goblin/gateway/servers"
	"goblin/gateway/stack"
	"goblin/registry"
	"goblin/registry/report"
	"goblin/registry/termtext"
)

func (a *App) doctor() *cobra.Command {
	return a.withJSON("print a JSON object", &cobra.Command{
		Use:     "doctor [SERVER]",
		GroupID: cli.GroupDiagnose,
		Short:   "Diagnose servers and suggest fixes",
		Long: `Check servers in startup order, up to the first failure: variables, secrets,
command, folder and output of a local one; address, TLS, HTTP, clock and login of
a remote one; then the handshake, lists and tool definitions. Afterwards check
Goblin itself: config, daemon and clients. Each problem comes with a fix.

The servers run once more for the checks, beside those of a running daemon.
Without SERVER, checks all servers at once. If something is broken, the exit code
is 1.`,
		Example: `  goblin doctor
  goblin doctor clock
  goblin doctor --json | jq '.servers[] | select(.state == "broken")'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return oneArg("a server")(cmd, args)
		},
		ValidArgsFunction: a.complete("servers"),
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := a.runDoctor(cmd.Context(), args)
			if err == nil {
				err = cmd.Context().Err() // after an interrupt the findings are wrong
			}
			if err != nil {
				return err
			}
			err = a.printResult(found, a.ForLog(found.text(len(args) > 0)))
			if err == nil && found.State == report.Broken {
				return errReported(cli.CodeFailure)
			}
			return err
		},
	})
}

type doctorResult struct {
	State   report.State       `json:"state"` // the worst state
	Servers []report.Diagnosis `json:"servers"`
	Goblin  *report.Diagnosis  `json:"goblin,omitempty"` // nil if the named server is broken
}

func (a *App) runDoctor(ctx context.Context, names []string) (*doctorResult, error) {
	m := doctor.Machine{Version: a.Version.Handshake()}
	path, err := a.FindConfig()
	if err != nil {
		return nil, err
	}
	m.Config = fileName(path)
	cfg, err := a.LoadFile(path)
	var mistakes *config.Errors
	switch {
	case errors.As(err, &mistakes) && len(mistakes.Problems) > 0:
		m.ConfigError = mistakes.Problems[0].String()
		if more := len(mistakes.Problems) - 1; more > 0 {
			m.ConfigError += fmt.Sprintf(", and %s", termtext.Count(more, "more mistake"))
		}
		cfg = &config.Config{}
	case err != nil:
		return nil, err
	case len(names) > 0:
		if _, ok := cfg.Server(names[0]); !ok {
			return nil, checkUsable(cfg, names[0])
		}
	}
	m.Servers = len(cfg.Servers)
	m.Clients = a.installedClients()
	m.Damaged = a.WarnUnreadable(cfg)
	m.Rules = a.ruleWarnings(ctx, cfg)
	place, err := a.FindDaemon(path)
	m.EndpointErr = err
	if err == nil {
		m.QueryDaemon(ctx, place)
	}
	found := &doctorResult{Servers: []report.Diagnosis{}}
	if m.ConfigError == "" {
		found.Servers = a.checkServers(ctx, cfg, &m, names)
	}
	if len(names) == 0 || len(found.Servers) == 0 || found.Servers[0].State != report.Broken {
		goblin := m.Check(ctx)
		found.Goblin = &goblin
	}
	for _, r := range found.all() {
		for i := range r.Checks {
			c := &r.Checks[i]
			c.Text, c.Fix = a.Mask().String(c.Text), a.withConfigFlag(a.Mask().String(c.Fix))
			for i, line := range c.Lines {
				c.Lines[i] = a.Mask().String(line)
			}
		}
		var worst report.Diagnosis
		worst.State = found.State
		worst.Add(report.Check{State: r.State})
		found.State = worst.State
	}
	return found, nil
}

// configCommands matches Goblin's commands that read the config.
var configCommands = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^goblin validate$|\bgoblin (login|approve|restart|stop|install)\b`)
})

func (a *App) withConfigFlag(text string) string {
	if a.ConfigFlag == "" {
		return text
	}
	return configCommands().ReplaceAllStringFunc(text, func(command string) string {
		return a.CommandLine(strings.TrimPrefix(command, "goblin "))
	})
}

// ruleWarnings returns the warnings about rules that "goblin validate" prints.
func (a *App) ruleWarnings(ctx context.Context, cfg *config.Config) []config.Problem {
	if len(cfg.Rules) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Concat(cfg.Warnings, a.listWarnings(ctx, cfg)), func(p config.Problem) bool {
		return !strings.HasPrefix(p.Text, "rule")
	})
}

func (a *App) installedClients() (all []doctor.Client) {
	for _, c := range clientconfig.All {
		e, ok := c.Installed(clientconfig.CurrentMachine(a.Getenv, ""))
		if !ok {
			continue
		}
		one := doctor.Client{Name: c.Name, Title: c.Title, File: e.File, Command: e.Command}
		if e.Err != nil {
			one.Problem = e.Err.Error()
		}
		all = append(all, one)
	}
	return all
}

func (a *App) checkServers(ctx context.Context, cfg *config.Config, m *doctor.Machine, names []string) []report.Diagnosis {
	folder, _ := os.Getwd() // without it, there is no project
	o := doctor.Options{Config: cfg, Version: a.Version.Version, Logins: a.LoginsDir(), Resolve: a.Secrets().Resolve, Folder: folder, Redact: a.Mask().String}
	free := m.EndpointErr != nil || errors.Is(m.StatusErr, daemon.ErrNotRunning) // only the daemon writes the cache while it runs
	if store := stack.CachedLists(a.ListCacheDir(), cfg, slog.New(slog.DiscardHandler)); store != nil && free {
		began := time.Now()
		o.OnListed = func(s *config.Server, state *registry.ServerState, denied func(registry.Kind) []string, lists map[int][][]byte) {
			servers.CacheLists(store, s, state, denied, lists)
		}
		defer func() { store.Save(began) }()
	}
	if m.EndpointErr == nil {
		o.Children = childproc.New(m.Endpoint.Dir, slog.New(slog.DiscardHandler))
	}
	telling := time.AfterFunc(a.waitDelay(), func() {
		a.Warn("checking %s …", cmp.Or(strings.Join(names, ""), strings.Join(serverNames(cfg), ", ")))
	})
	defer telling.Stop()
	var reports []report.Diagnosis
	if len(names) > 0 {
		s, _ := cfg.Server(names[0]) // checked by runDoctor
		reports = []report.Diagnosis{doctor.Server(ctx, o, s)}
	} else {
		reports = doctor.Servers(ctx, o)
	}
	for i := range reports {
		m.CompareDaemon(&reports[i], func(server string) (report.Diagnosis, error) {
			return (daemon.Remote{Place: m.Endpoint}).Diagnose(ctx, server)
		})
	}
	return reports
}

func (f *doctorResult) all() []*report.Diagnosis {
	var all []*report.Diagnosis
	for i := range f.Servers {
		all = append(all, &f.Servers[i])
	}
	if f.Goblin != nil {
		all = append(all, f.Goblin)
	}
	return all
}

// text prints one line for a healthy server, unless each is set.
func (f *doctorResult) text(each bool) string {
	var out strings.Builder
	names, states := 0, len(report.OK)
	for _, r := range f.all() {
		names = max(names, termtext.Width(subject(r)))
		for _, c := range r.Checks {
			states = max(states, len(c.State))
		}
	}
	line := func(state, what, fix string, indent string) {
		fmt.Fprintf(&out, "%s%s  %s\n", indent, termtext.Pad(state, states), termtext.Line(what))
		if fix != "" {
			fmt.Fprintf(&out, "%s%s  fix: %s\n", strings.Repeat(" ", termtext.Width(indent)), strings.Repeat(" ", states), termtext.Line(fix))
		}
	}
	for _, r := range f.all() {
		head := termtext.Pad(termtext.Name(subject(r)), names) + "  "
		complaints := r.Findings()
		switch {
		case each:
			widest := 0
			for _, c := range r.Checks {
				widest = max(widest, len(title(&c)))
			}
			fmt.Fprintf(&out, "%s%s\n", head, r.State)
			for _, c := range r.Checks {
				line(string(c.State), termtext.Pad(title(&c), widest)+"  "+c.Text, "", "  ")
				margin := strings.Repeat(" ", 2+states+2+widest+2)
				for _, line := range c.Lines {
					fmt.Fprintf(&out, "%s| %s\n", margin, termtext.Line(line))
				}
				if c.Fix != "" {
					fmt.Fprintf(&out, "%sfix: %s\n", margin, termtext.Line(c.Fix))
				}
			}
		case len(complaints) == 0:
			line(string(r.State), mainCheck(r), "", head)
		default:
			for _, c := range complaints {
				line(string(c.State), title(&c)+": "+c.Text, c.Fix, head)
				head = strings.Repeat(" ", names+2)
			}
		}
	}
	return out.String()
}

func title(c *report.Check) string {
	if c.Name == doctor.DaemonCheck {
		return "daemon"
	}
	return c.Name
}

func subject(r *report.Diagnosis) string { return cmp.Or(r.Server, "goblin") }

func mainCheck(r *report.Diagnosis) string {
	for _, name := range []string{"lists", doctor.DaemonCheck} {
		for _, c := range r.Checks {
			if c.Name == name {
				return c.Text
			}
		}
	}
	return ""
}
