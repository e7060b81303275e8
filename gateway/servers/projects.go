package servers

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/downstream"
	"goblin/gateway/upstream"
)

// projectSessions tracks the project of each session. A project's processes run while it
// has sessions, and for gateway.linger after that.
type projectSessions struct {
	mu        sync.Mutex
	byProject map[*downstream.Session]string
	sessions  map[string]int
	idle      map[string]*time.Timer // of projects without sessions
	pinned    atomic.Bool            // see PinProject
}

// PinProject keeps a project's servers running as long as the Manager. It is for
// processes that work in one folder. Call it before Run.
func (f *Manager) PinProject(folder string) {
	f.projects.mu.Lock()
	defer f.projects.mu.Unlock()
	f.projects.initLocked()
	f.projects.sessions[folder]++
	f.projects.pinned.Store(true)
}

func (p *projectSessions) initLocked() {
	if p.byProject == nil {
		p.byProject, p.sessions, p.idle = make(map[*downstream.Session]string), make(map[string]int), make(map[string]*time.Timer)
	}
}

// waitsForProject reports whether a server may wait forever for a client with a project.
func (f *Manager) waitsForProject(b *Server) bool { return b.perProject() && !f.projects.pinned.Load() }

// perProject reports whether a server has one process per project.
func (s *Server) perProject() bool { return s.defined.Isolation == config.PerProject }

// HasPerProject reports whether any server has one process per project.
func (f *Manager) HasPerProject() bool { return slices.ContainsFunc(f.All(), (*Server).perProject) }

// JoinProject sets the project of a session (or "") and starts its servers without
// waiting for them.
func (f *Manager) JoinProject(s *downstream.Session, folder string) {
	p := &f.projects
	p.mu.Lock()
	was, known := p.byProject[s]
	if was == folder && known {
		p.mu.Unlock()
		return
	}
	p.initLocked()
	p.byProject[s] = folder
	if folder != "" {
		p.sessions[folder]++
		if timer := p.idle[folder]; timer != nil {
			timer.Stop()
			delete(p.idle, folder)
		}
	}
	f.leaveLocked(was)
	p.mu.Unlock()
	for _, b := range f.All() {
		if b.perProject() {
			if folder != "" {
				b.OpenProject(folder)
			}
			f.hooks.OnConnectionChanged(b.Name(), b.IsolationUnit)
		}
	}
}

// ReleaseSession closes the connections that a closed session used alone.
func (f *Manager) ReleaseSession(s *downstream.Session) {
	p := &f.projects
	p.mu.Lock()
	f.leaveLocked(p.byProject[s])
	delete(p.byProject, s)
	p.mu.Unlock()
	for _, b := range f.All() {
		if b.perSession() {
			b.CloseUnit(s.Unit())
		}
	}
}

func (f *Manager) leaveLocked(folder string) {
	p := &f.projects
	if folder == "" {
		return
	}
	if p.sessions[folder]--; p.sessions[folder] > 0 {
		return
	}
	delete(p.sessions, folder)
	p.idle[folder] = time.AfterFunc(f.o.Config.Gateway.Linger, func() { f.endProject(folder) })
}

func (f *Manager) endProject(folder string) {
	p := &f.projects
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle[folder] == nil {
		return
	}
	delete(p.idle, folder)
	for _, b := range f.All() {
		if b.perProject() {
			b.CloseUnit(folder)
		}
	}
}

// evict stops the processes of one project without sessions. It returns false if there is
// none.
func (f *Manager) evict() bool {
	p := &f.projects
	p.mu.Lock()
	folders := slices.Sorted(maps.Keys(p.idle))
	p.mu.Unlock()
	if len(folders) == 0 {
		return false
	}
	f.endProject(folders[0])
	return true
}

func (f *Manager) folders() []string {
	f.projects.mu.Lock()
	defer f.projects.mu.Unlock()
	return slices.Sorted(maps.Keys(f.projects.sessions))
}

// NoProject returns an error if a server needs a project and the session has none.
func (f *Manager) NoProject(server string, s *downstream.Session) error {
	if b := f.Get(server); b == nil || !b.perProject() || s.Project() != "" {
		return nil
	}
	return &upstream.Error{
		Code: upstream.ConnectionError, Server: server,
		Reason: "needs a project (isolation: project), and this client has none: " + f.hooks.NoProject(s),
	}
}

func (f *Manager) projectConn(ctx context.Context, b *Server, s *downstream.Session, modern bool) (upstream.Conn, error) {
	if err := f.NoProject(b.Name(), s); err != nil {
		return nil, err
	}
	folder := s.Project()
	conn, err := b.Unit(ctx, folder)
	if errors.Is(err, upstream.ErrTooManyProjects) && f.evict() {
		conn, err = b.Unit(ctx, folder)
	}
	if err == nil && modern {
		if own := b.Modern(ctx, folder); own != nil {
			return own, nil
		}
	}
	return conn, err
}

// AwaitProject waits until the servers of the session's project have listed or failed,
// for startup_wait at most.
func (f *Manager) AwaitProject(ctx context.Context, s *downstream.Session) {
	folder := s.Project()
	if folder == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, f.o.Config.Gateway.StartupWait)
	defer cancel()
	for _, b := range f.All() {
		if !b.perProject() || !b.HasProject(folder) { // the limit of projects may be reached
			continue
		}
		select {
		case <-b.FirstList():
		case <-ctx.Done():
			return
		}
	}
}
