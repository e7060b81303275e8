package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"goblin/gateway/childproc"
	"goblin/gateway/config"
	"goblin/gateway/extensions"
	"goblin/gateway/oauth"
	"goblin/gateway/upstream"
	"goblin/gateway/upstream/stderr"
	"goblin/registry"
	"goblin/registry/report"
	"goblin/registry/termtext"
)

// Options configure the checks of servers.
type Options struct {
	Config  *config.Config
	Version string // Goblin's version for the handshake
	Logins  string // the folder of logins, or ""
	Folder  string // the project for servers with one process per project
	// Resolve returns the values of config references. nil resolves none.
	Resolve config.Resolver
	// Redact removes secrets from server output. nil changes nothing.
	Redact func(string) string
	// Children records child processes, so that they can be stopped if this process is
	// killed. nil records none.
	Children *childproc.Registry
	// OnListed receives the complete lists of a server by kind, its state, and the names
	// that the config filters out. It may be called concurrently, and may be nil.
	OnListed func(s *config.Server, state *registry.ServerState, denied func(registry.Kind) []string, lists map[int][][]byte)
	// OnConnected receives the open connection of a server after its lists. It may be nil.
	OnConnected func(ctx context.Context, conn upstream.Conn)
	// Silent describes a start of a local server that got no answer to initialize within
	// startup_timeout. The server is then not started again. nil: no such start is known.
	Silent *Silence
}

// Silence is the output of a local server that did not answer initialize.
type Silence struct {
	Lines  []string // the end of stderr
	Banner string   // the first line of stdout that is no message, or ""
}

// session returns the session of the start.
func (n *Silence) session(o *Options, s *config.Server) *session {
	lines := make([]string, len(n.Lines))
	for i, line := range n.Lines {
		lines[i] = o.Redact(termtext.Line(line))
	}
	fix, _ := stderr.FindFix(lines)
	t := &session{banner: n.Banner, err: &upstream.Error{
		Server: s.Name, Code: upstream.ConnectionError, Err: context.DeadlineExceeded, Fix: fix, Lines: stderr.Pick(lines),
		Reason: fmt.Sprintf("did not answer initialize within %s (startup_timeout)", config.ShortDuration(s.StartupTimeout)),
	}}
	if n.Banner != "" {
		t.skippedLines = 1
	}
	return t
}

const maxParallel = 4

// Servers checks all servers and returns reports in config order.
func Servers(ctx context.Context, o Options) []report.Diagnosis {
	reports := make([]report.Diagnosis, len(o.Config.Servers))
	places := make(chan struct{}, maxParallel)
	var all sync.WaitGroup
	for i := range o.Config.Servers {
		s := &o.Config.Servers[i]
		if s.Disabled {
			reports[i] = newReport(s)
			reports[i].Add(report.Check{Name: "config", State: report.Disabled, Text: `has "disabled: true"`})
			continue
		}
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			reports[i] = Server(ctx, o, s)
		})
	}
	all.Wait()
	return reports
}

func newReport(s *config.Server) report.Diagnosis {
	return report.Diagnosis{Server: s.Name, Transport: string(s.Type), Checks: []report.Check{}}
}

// Server checks one server, even if it is disabled.
func Server(ctx context.Context, o Options, defined *config.Server) report.Diagnosis {
	if o.Redact == nil {
		o.Redact = func(s string) string { return s }
	}
	r := newReport(defined)
	if defined.Problem != "" {
		addFailures(&r, "config", defined.Problems, defined.Problem)
		return r
	}
	resolved, err := defined.Resolve(ctx, o.Resolve)
	if err != nil {
		var texts []string
		if unresolved, ok := errors.AsType[*config.UnresolvedError](err); ok {
			texts = unresolved.Texts
		}
		addFailures(&r, "secrets", texts, err.Error())
		return r
	}
	if len(resolved.Secrets) > 0 {
		mask, outer := new(config.Mask), o.Redact
		mask.AddServerSecrets(resolved)
		o.Redact = func(s string) string { return mask.String(outer(s)) }
		r.AddOK("secrets", strings.Join(defined.References(), ", "))
	}
	s := o.Definition(resolved.Server)
	p := &serverCheck{Options: o, Diagnosis: &r, s: s, defined: defined}
	if s.Type == config.Stdio {
		p.checkProgram(ctx)
	} else {
		p.checkRemote(ctx)
	}
	if defined.Disabled {
		r.AddWarning("config", "disabled in the config", fmt.Sprintf("remove \"disabled: true\" from %q", s.Name))
	}
	for i := range r.Checks {
		c := &r.Checks[i]
		c.Text, c.Fix = o.Redact(c.Text), o.Redact(c.Fix)
		for i, line := range c.Lines {
			c.Lines[i] = o.Redact(line)
		}
	}
	return r
}

func addFailures(r *report.Diagnosis, name string, texts []string, whole string) {
	if len(texts) == 0 {
		texts = []string{whole}
	}
	for _, t := range texts {
		text, fix := splitFix(t)
		r.AddBroken(name, text, fix)
	}
}

// Definition returns the definition of the single process or connection that is checked.
func (o *Options) Definition(defined *config.Server) *config.Server {
	s := *defined
	s.Disabled = false
	if s.Isolation == config.PerProject {
		s = *s.InProject(o.Folder)
		if s.Cwd == "" {
			s.Cwd = o.Folder
		}
	}
	s.Isolation = config.Shared // one process is enough
	if s.Type == config.Stdio && s.Cwd == "" && o.Config.Path != "" {
		s.Cwd = filepath.Dir(o.Config.Path)
	}
	return &s
}

type serverCheck struct {
	Options
	*report.Diagnosis
	s              *config.Server
	defined        *config.Server // config definition; s is the one that is run
	unsetVariables []string       // variables of printed commands that are not set here
}

func splitFix(text string) (wrong, fix string) {
	wrong, fix, _ = strings.Cut(text, "; ")
	return wrong, fix
}

// listTime is the maximum time for a server's lists.
const listTime = 30 * time.Second

func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

func (p *serverCheck) connect(ctx context.Context, s *config.Server) *session {
	names := make([]string, len(p.Config.Servers))
	for i := range p.Config.Servers {
		names[i] = p.Config.Servers[i].Name
	}
	t := &session{
		roots: p.Config.Gateway.Roots,
		Registry: registry.New(registry.Options{
			Servers: names, Own: config.OwnTools(), MaxName: p.Config.Gateway.MaxName, MaxEntries: p.Config.Gateway.Limits.Entries, Repair: true,
		}),
	}
	server := upstream.NewServer(*s, upstream.Options{
		Handler: t, Registry: t, Version: p.Version, Capabilities: extensions.ForClients(p.s.RootsSource() != config.NoRoots), Limits: p.Config.Gateway.Limits,
		Redact: p.Redact, Children: p.Children, Authorizer: p.authorizer(), EnvNames: p.Config.EnvNames,
		Hooks: upstream.Hooks{FrameSkipped: t.countSkipped, ListFailed: t.unlisted},
	})
	open, end := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { server.Run(open) })
	ctx, stop := context.WithTimeout(ctx, s.StartupTimeout+listTime)
	defer stop()
	select {
	case <-server.FirstList():
	case <-ctx.Done():
	}
	t.err = checkAlive(ctx, server, s.Type)
	state, _ := t.State(s.Name)
	if lists := t.complete(); s == p.s && t.err == nil && lists != nil && p.OnListed != nil {
		p.OnListed(p.defined, &state, server.DeniedNames, lists)
	}
	if conn, err := server.Conn(); s == p.s && err == nil && p.OnConnected != nil {
		p.OnConnected(open, conn)
	}
	end()
	running.Wait()
	return t
}

const pingTime = 2 * time.Second

// checkAlive returns the connection error. A ping detects processes that exit right after
// their lists.
func checkAlive(ctx context.Context, server *upstream.Server, kind config.Type) error {
	conn, err := server.Conn()
	if err != nil || kind != config.Stdio || conn.Info().Era == upstream.Modern {
		return err
	}
	_, _ = conn.Call(&upstream.Call{Context: ctx, Method: "ping", Timeout: pingTime}) // any answer is fine
	return conn.Err()
}

func (p *serverCheck) authorizer() *oauth.Authorizer {
	path, err := config.Canonical(p.Config.Path)
	if err != nil || p.Logins == "" {
		return nil
	}
	o, ok := oauth.ServerOptions(path, p.s, p.Version, p.Resolve)
	if !ok {
		return nil
	}
	return oauth.NewAuthorizer(p.Logins, o, slog.New(slog.DiscardHandler))
}
