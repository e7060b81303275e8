// Package devloop builds and restarts servers when their source files change.
//
// Each server with watch or build has a loop, which runs at most one build. The running
// process stays until a build succeeds. A change during a build kills the build and
// starts one more. All methods are safe for concurrent use. [Manager.Run] and
// [Manager.AwaitBuild] block; other methods do not. A build has no time limit. The last
// 64 KiB of its output are kept, without control sequences.
//
// The package must not know how servers are started; it calls [Options].Restart.
package devloop

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"goblin/gateway/childproc"
	"goblin/gateway/config"
	"goblin/registry"
	"goblin/registry/termtext"
)

// Options configures a [Manager].
type Options struct {
	Registry *registry.Registry
	Children *childproc.Registry // records processes of builds; may be nil
	// Restart replaces the process or connection of a server, without blocking.
	Restart func(server string) error
	// Resolve replaces references in the definition of a server; may be nil.
	Resolve func(ctx context.Context, s *config.Server) (*config.Server, error)
	// Redact removes secrets; may be nil.
	Redact func(string) string
	// Check runs the marked saved calls of a server after a restart; may be nil. It must
	// return when ctx is done.
	Check func(ctx context.Context, s *config.Server) []registry.BuildCheck
	// Note logs a line about a server, without secrets.
	Note func(level slog.Level, server, text string)
	// Changed is called after [Manager.Notice] may have changed; may be nil.
	Changed func()
}

// Manager owns the loops of the servers of a config.
type Manager struct {
	o    Options
	work sync.WaitGroup

	mu    sync.Mutex
	run   context.Context // nil before Run and after it
	loops map[string]*loop
}

// New returns a Manager without loops.
func New(o Options) *Manager {
	if o.Redact == nil {
		o.Redact = func(s string) string { return s }
	}
	return &Manager{o: o, loops: make(map[string]*loop)}
}

// Apply replaces the loops by those of the given servers. Loops of unchanged servers
// continue. Call it before the servers themselves change.
func (m *Manager) Apply(all []config.Server) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := make(map[string]*loop)
	for i := range all {
		s := &all[i]
		if !s.Rebuilt() || s.Problem != "" {
			continue
		}
		if old := m.loops[s.Name]; old != nil && old.defined.Equal(s) {
			next[s.Name] = old
			continue
		}
		next[s.Name] = newLoop(m, s)
	}
	for name, old := range m.loops {
		if next[name] != old {
			old.stop()
			m.o.Registry.SetBuild(name, nil)
		}
	}
	for name, l := range next {
		if m.run != nil && m.loops[name] != l {
			m.startLocked(l)
		}
	}
	m.loops = next
}

func (m *Manager) startLocked(l *loop) { m.work.Go(func() { l.run(m.run) }) }

// Run runs the loops until ctx ends and all builds have stopped.
func (m *Manager) Run(ctx context.Context) {
	m.mu.Lock()
	m.run = ctx
	for _, l := range m.loops {
		m.startLocked(l)
	}
	m.mu.Unlock()
	<-ctx.Done()
	m.mu.Lock()
	m.run = nil
	m.mu.Unlock()
	m.work.Wait()
}

// AwaitBuild waits until a server may start: its first build has finished, successfully
// or not, or ctx is done. It returns at once for servers without a build.
func (m *Manager) AwaitBuild(ctx context.Context, server string) {
	m.mu.Lock()
	l := m.loops[server]
	m.mu.Unlock()
	if l != nil {
		l.awaitBuild(ctx)
	}
}

// Notice returns a line about failed builds, or "".
func (m *Manager) Notice() string {
	m.mu.Lock()
	names := make([]string, 0, len(m.loops))
	for name := range m.loops {
		names = append(names, name)
	}
	m.mu.Unlock()
	slices.Sort(names)
	var all []string
	for _, name := range names {
		s, ok := m.o.Registry.State(name)
		if !ok || !s.Build.Failed() {
			continue
		}
		switch b := s.Build; b.Phase {
		case registry.BuildFailed:
			all = append(all, "build of "+name+" failed: "+b.Error)
		case registry.BuildNotStarted:
			all = append(all, name+" did not start after its build: "+b.Error)
		default:
			all = append(all, name+": "+termtext.Count(b.FailedChecks(), "saved call")+" failed after the restart")
		}
	}
	return strings.Join(all, "; ")
}

func (m *Manager) note(level slog.Level, server, text string) {
	m.o.Note(level, server, m.o.Redact(text))
}

// publish sets the state of a loop, unless Apply has replaced it.
func (m *Manager) publish(l *loop, b registry.Build) {
	m.mu.Lock()
	current := m.loops[l.name()] == l
	if current {
		m.o.Registry.SetBuild(l.name(), &b)
	}
	m.mu.Unlock()
	if current && m.o.Changed != nil {
		m.o.Changed()
	}
}
