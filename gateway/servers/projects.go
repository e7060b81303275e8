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

// projectSessions tracks which sessions are in which project. A project's processes run while it has
// sessions, and for gateway.linger after that.
type projectSessions struct {
	mu        sync.Mutex
	byProject map[*downstream.Session]string
	sessions  map[string]int         // in each project
	idle      map[string]*time.Timer // of projects without
	pinned    atomic.Bool            // see PinProject
}

// PinProject makes the servers run in a project as long as the Manager does, for a process that
// is there for what is done in that folder. It is called before Run.
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
func (f *Manager) waitsForProject(b *Server) bool { return b.PerProject() && !f.projects.pinned.Load() }

// PerProject reports whether a server has a process for each project.
func (s *Server) PerProject() bool { return s.defined.Isolation == config.PerProject }

// HasPerProject reports whether any server has a process for each project.
func (f *Manager) HasPerProject() bool { return slices.ContainsFunc(f.All(), (*Server).PerProject) }

// JoinProject notes the project that a session is in by now, "" for none, and starts its
// servers. It does not wait for them.
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
		if b.PerProject() {
			if folder != "" {
				b.OpenProject(folder)
			}
			f.hooks.OnConnectionChanged(b.Name(), b.IsolationUnit)
		}
	}
}

// ReleaseSession gives back what a session that has ended used alone.
func (f *Manager) ReleaseSession(s *downstream.Session) {
	p := &f.projects
	p.mu.Lock()
	f.leaveLocked(p.byProject[s])
	delete(p.byProject, s)
	p.mu.Unlock()
	for _, b := range f.All() {
		if b.PerSession() {
			b.CloseUnit(s.Unit())
		}
	}
}

// leaveLocked counts a session out of a project.
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

// endProject ends the processes of a project, unless a session has come into it again.
func (f *Manager) endProject(folder string) {
	p := &f.projects
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle[folder] == nil {
		return
	}
	delete(p.idle, folder)
	for _, b := range f.All() {
		if b.PerProject() {
			b.CloseUnit(folder)
		}
	}
}

// evict ends the processes of a project that no session is in; false when there is none.
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

// folders are the projects that have sessions.
func (f *Manager) folders() []string {
	f.projects.mu.Lock()
	defer f.projects.mu.Unlock()
	return slices.Sorted(maps.Keys(f.projects.sessions))
}

// NoProject returns the error of a server with a process for each project for a session
// without a project, nil for other servers and sessions.
func (f *Manager) NoProject(server string, s *downstream.Session) error {
	if b := f.Get(server); b == nil || !b.PerProject() || s.Project() != "" {
		return nil
	}
	return &upstream.Error{
		Code: upstream.ConnectionError, Server: server,
		Reason: "runs in the project of its client (isolation: project), and this client has none: " + f.hooks.NoProject(s),
	}
}

// projectConn is the connection of a server for the project of a session.
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

// AwaitProject waits until the servers that run in the project of a session have listed
// or failed to, at most as long as startup_wait says.
func (f *Manager) AwaitProject(ctx context.Context, s *downstream.Session) {
	folder := s.Project()
	if folder == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, f.o.Config.Gateway.StartupWait)
	defer cancel()
	for _, b := range f.All() {
		if !b.PerProject() || !b.HasProject(folder) { // there may be no place for it
			continue
		}
		select {
		case <-b.FirstList():
		case <-ctx.Done():
			return
		}
	}
}
