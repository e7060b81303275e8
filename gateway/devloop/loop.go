package devloop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/filewatch"
	"goblin/registry"
	"goblin/registry/termtext"
)

// listTime is added to the server's own limits for a start and its first lists.
const listTime = 5 * time.Second

// slowBuild is the time after which a build that runs is reported.
const slowBuild = time.Minute

// shownOutput is the number of output lines that are logged after a failed build.
const shownOutput = 20

// loop builds and restarts one server.
type loop struct {
	m       *Manager
	defined config.Server
	stopped chan struct{}
	stop    func()
	signal  chan struct{} // capacity 1: files is not empty
	want    chan struct{} // capacity 1: the server waits for its first build

	mu      sync.Mutex
	files   map[string]bool // changed and not handled
	dirty   bool            // a build must finish before the server starts
	waiting int             // callers of awaitBuild
	built   chan struct{}   // closed by the next build

	// Only run uses these.
	state    registry.Build
	self     ownChanges
	compared uint64 // number of the first change of lists since the last comparison, or 0
	first    bool   // there were no lists then
}

func newLoop(m *Manager, s *config.Server) *loop {
	stopped := make(chan struct{})
	return &loop{
		m: m, defined: *s, stopped: stopped, stop: sync.OnceFunc(func() { close(stopped) }),
		signal: make(chan struct{}, 1), want: make(chan struct{}, 1), built: make(chan struct{}),
		files: make(map[string]bool), dirty: s.Build.Command() != nil,
		self: ownChanges{folder: s.Cwd},
	}
}

func (l *loop) name() string { return l.defined.Name }

// run owns the watch and the builds. It returns when both have stopped.
func (l *loop) run(outer context.Context) {
	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() {
		defer cancel()
		select {
		case <-l.stopped:
		case <-ctx.Done():
		}
	})
	globs, err := l.defined.Globs()
	if err != nil {
		l.m.note(slog.LevelError, l.name(), "files are not watched: "+err.Error())
		return // the config was checked, so this is unreachable
	}
	tree := filewatch.NewTree(l.defined.Cwd, globs)
	full := false
	l.state.Watched, full = tree.Len()
	watching.Go(func() { tree.Run(ctx, l.add) })
	l.state.Command = l.m.o.Redact(strings.TrimSpace(cmp.Or(l.defined.Build.Shell, termtext.QuoteWords(l.defined.Build.Words...))))
	l.note("watching " + termtext.Count(l.state.Watched, "file") + " in " + l.defined.Cwd)
	switch {
	case full:
		l.warn(fmt.Sprintf("only the first %d files are watched; select fewer by watch", l.state.Watched))
	case l.state.Watched == 0:
		l.warn("no file matches watch, so changes are not noticed until one exists")
	}
	l.publish(registry.BuildWatching)
	if l.defined.Build.Command() == nil { // otherwise the first build reports the start
		if files := l.reportStart(ctx); len(files) > 0 {
			l.rebuild(ctx, files)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.want:
			l.rebuild(ctx, nil)
		case <-l.signal:
			if files := l.take(); len(files) > 0 {
				l.rebuild(ctx, files)
			}
		}
	}
}

// reportStart waits for the first lists of a server without a successful build.
func (l *loop) reportStart(ctx context.Context) (newer []string) {
	newer, err := l.awaitLists(ctx, time.Time{})
	s, _ := l.m.o.Registry.State(l.name())
	switch {
	case len(newer) > 0 || ctx.Err() != nil || s.State == registry.StateDisabled:
	case err != nil:
		l.m.note(slog.LevelError, l.name(), "server did not start: "+err.Error())
	default:
		l.note("started: " + termtext.Count(s.Counts[registry.Tool], "tool"))
	}
	return newer
}

// add records changed files. It never blocks.
func (l *loop) add(files []string) {
	l.mu.Lock()
	for _, f := range files {
		l.files[f] = true
	}
	l.mu.Unlock()
	select {
	case l.signal <- struct{}{}:
	default:
	}
}

// take returns the changed files that must cause a build.
func (l *loop) take() []string {
	l.mu.Lock()
	var files []string
	for f := range l.files {
		files = append(files, f)
	}
	clear(l.files)
	l.mu.Unlock()
	files, found := l.self.filter(files, time.Now())
	if len(found) > 0 {
		l.warn(fmt.Sprintf("each build or start changes %s; changes during a build are ignored now. Exclude the file from watch", describe(found)))
		l.publish(l.state.Phase)
	}
	return files
}

func (l *loop) warn(text string) {
	l.state.Warning = text
	l.m.note(slog.LevelWarn, l.name(), text)
}

func (l *loop) note(text string) { l.m.note(slog.LevelInfo, l.name(), text) }

// awaitBuild implements [Manager.AwaitBuild].
func (l *loop) awaitBuild(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.dirty {
		return
	}
	l.waiting++
	built := l.built
	l.mu.Unlock()
	select {
	case l.want <- struct{}{}:
	default:
	}
	select {
	case <-built:
	case <-l.stopped:
	case <-ctx.Done():
	}
	l.mu.Lock()
	l.waiting--
}

// release lets a waiting server start, and reports whether there is one.
func (l *loop) release() (waiting bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dirty = false
	close(l.built)
	l.built = make(chan struct{})
	return l.waiting > 0
}

// publish sets the phase and shows the state.
func (l *loop) publish(phase registry.BuildPhase) {
	if l.state.Phase != phase {
		l.state.Since = time.Now()
	}
	l.state.Phase = phase
	l.m.publish(l, l.state)
}

// rebuild builds and restarts until no file changed meanwhile. files is empty for the
// first build.
func (l *loop) rebuild(ctx context.Context, files []string) {
	for ctx.Err() == nil {
		if s, ok := l.m.o.Registry.State(l.name()); ok && s.State == registry.StateDisabled && len(files) > 0 {
			l.mu.Lock()
			l.dirty = l.defined.Build.Command() != nil // built when the server is enabled
			l.mu.Unlock()
			return
		}
		l.self.begin(time.Now())
		files = l.attempt(ctx, files)
		l.self.end(time.Now())
		if len(files) == 0 {
			return
		}
	}
}

// attempt builds and restarts once. It returns the files whose change made it stop early.
func (l *loop) attempt(ctx context.Context, files []string) (newer []string) {
	l.state = registry.Build{
		Number: l.state.Number + 1, Files: describe(files), Command: l.state.Command,
		Watched: l.state.Watched, Warning: l.state.Warning, Phase: l.state.Phase, Since: l.state.Since,
	}
	if l.defined.Build.Command() != nil {
		ok := false
		if ok, newer = l.build(ctx); len(newer) > 0 || ctx.Err() != nil {
			return newer
		}
		switch {
		case ok:
		case l.release(): // an older build may start
			return l.reportStart(ctx)
		default:
			return nil
		}
	}
	return l.restart(ctx)
}

// build runs the build. newer is not empty if a change stopped it.
func (l *loop) build(ctx context.Context) (ok bool, newer []string) {
	cause := ""
	if l.state.Files != "" {
		cause = " (" + l.state.Files + " changed)"
	}
	l.note("building: " + l.state.Command + cause)
	l.publish(registry.BuildRunning)
	began := time.Now()
	building, kill := context.WithCancel(ctx)
	defer kill()
	var output string
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		output, err = l.runBuild(building)
	}()
	slow := time.NewTimer(slowBuild)
	defer slow.Stop()
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-slow.C:
			l.m.note(slog.LevelWarn, l.name(), "still building after "+termtext.Duration(slowBuild)+"; a build must exit by itself, without watching files")
		case <-l.signal:
			if newer = l.take(); len(newer) > 0 {
				kill()
				<-done
				l.note("build stopped: " + describe(newer) + " changed")
				return false, newer
			}
		}
	}
	if ctx.Err() != nil {
		return false, nil
	}
	l.state.Took, l.state.Output = time.Since(began), l.m.o.Redact(output)
	if err == nil {
		l.note("built in " + termtext.Duration(l.state.Took))
		return true, nil
	}
	l.state.Error = l.m.o.Redact(err.Error())
	l.m.note(slog.LevelError, l.name(), fmt.Sprintf("build failed after %s: %s", termtext.Duration(l.state.Took), l.state.Error))
	lines := strings.Split(strings.TrimRight(l.state.Output, "\n"), "\n")
	for _, line := range lines[max(0, len(lines)-shownOutput):] {
		if strings.TrimSpace(line) != "" {
			l.m.note(slog.LevelError, l.name(), "  "+line)
		}
	}
	l.publish(registry.BuildFailed)
	return false, nil
}

// restart replaces the process and compares the definitions.
func (l *loop) restart(ctx context.Context) (newer []string) {
	before, _ := l.m.o.Registry.State(l.name())
	if l.compared == 0 { // otherwise an earlier attempt was not compared
		l.compared, l.first = l.m.o.Registry.ListChanges().Stats().Next, !before.Listed
	}
	began := time.Now()
	if l.defined.Build.Command() == nil || !l.release() {
		if l.defined.Build.Command() == nil {
			l.note("restarting: " + l.state.Files + " changed")
		}
		if err := l.m.o.Restart(l.name()); err != nil {
			return l.notStarted(err)
		}
	}
	l.publish(registry.BuildRestarting)
	if newer, err := l.awaitLists(ctx, began); len(newer) > 0 || ctx.Err() != nil {
		return newer
	} else if err != nil {
		return l.notStarted(err)
	}
	l.state.First = l.first
	for _, c := range l.m.o.Registry.ListChanges().Window(l.compared, -1) {
		if c.Server == l.name() {
			l.state.Changes = append(l.state.Changes, c)
		}
	}
	l.compared = 0
	l.reportChanges(time.Since(began))
	l.publish(registry.BuildRestarted)
	return l.check(ctx)
}

func (l *loop) notStarted(err error) []string {
	l.state.Error = l.m.o.Redact(err.Error())
	l.m.note(slog.LevelError, l.name(), "server did not start: "+l.state.Error)
	l.publish(registry.BuildNotStarted)
	return nil
}

// awaitLists waits until the process that was started after since has listed.
func (l *loop) awaitLists(ctx context.Context, since time.Time) (newer []string, err error) {
	watch, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := l.m.o.Registry.Watch(watch, registry.Servers)
	limit := l.defined.StartupTimeout + l.defined.Timeout + listTime
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		s, ok := l.m.o.Registry.State(l.name())
		switch {
		case !ok:
			return nil, errors.New("it was removed from the config")
		case !s.Since.After(since):
		case s.State == registry.StateReady && s.Listed && !s.Stale:
			return nil, nil
		case s.State == registry.StateDisabled:
			return nil, errors.New("it is disabled")
		case s.State == registry.StateFailed, s.State == registry.StateRetrying, s.State == registry.StateNeedsLogin:
			return nil, errors.New(cmp.Or(s.LastError, s.State.Label()))
		}
		select {
		case <-changes:
		case <-l.signal:
			if newer = l.take(); len(newer) > 0 {
				return newer, nil
			}
		case <-late.C:
			return nil, fmt.Errorf("its lists were not read within %s", termtext.Duration(limit))
		case <-ctx.Done():
			return nil, nil
		}
	}
}

func (l *loop) reportChanges(took time.Duration) {
	s, _ := l.m.o.Registry.State(l.name())
	text := fmt.Sprintf("restarted in %s: %s", termtext.Duration(took), l.state.Summary())
	if l.state.First && len(l.state.Changes) == 0 {
		text = fmt.Sprintf("started in %s: %s", termtext.Duration(took), termtext.Count(s.Counts[registry.Tool], "tool"))
	}
	l.note(text)
	for i := range l.state.Changes {
		l.note("  " + l.state.Changes[i].Line())
	}
}

// check runs the marked saved calls.
func (l *loop) check(ctx context.Context) (newer []string) {
	if l.m.o.Check == nil {
		return nil
	}
	checking, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan []registry.BuildCheck, 1)
	go func() { results <- l.m.o.Check(checking, &l.defined) }()
	for {
		select {
		case <-l.signal:
			if newer = l.take(); len(newer) > 0 {
				cancel()
				<-results
				return newer
			}
		case l.state.Checks = <-results:
			if len(l.state.Checks) == 0 || ctx.Err() != nil {
				return nil
			}
			failed := l.state.FailedChecks()
			l.note(fmt.Sprintf("saved calls: %d passed, %d failed", len(l.state.Checks)-failed, failed))
			for _, c := range l.state.Checks {
				if !c.OK {
					l.m.note(slog.LevelError, l.name(), "  "+c.Name+": "+c.Text)
				}
			}
			l.publish(registry.BuildRestarted)
			return nil
		}
	}
}

// describe names the first of some files.
func describe(files []string) string {
	if len(files) == 0 {
		return ""
	}
	first := files[0]
	for _, f := range files {
		first = min(first, f)
	}
	text := termtext.Name(filepath.ToSlash(first))
	if more := len(files) - 1; more > 0 {
		text += " and " + termtext.Count(more, "other file")
	}
	return text
}
