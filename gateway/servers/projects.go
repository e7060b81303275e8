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

// inProjects knows which sessions are in which project. A project's processes are there
// as long as it has sessions, and gateway.linger longer.
type inProjects struct {
	mu       sync.Mutex
	of       map[*downstream.Session]string
	sessions map[string]int         // in each project
	idle     map[string]*time.Timer // of projects without
	stays    atomic.Bool            // see Stay
}

// Stay makes the servers run in a project as long as the Fleet does, for a process that
// is there for what is done in that folder. It is called before Run.
func (f *Fleet) Stay(folder string) {
	f.projects.mu.Lock()
	defer f.projects.mu.Unlock()
	f.projects.initLocked()
	f.projects.sessions[folder]++
	f.projects.stays.Store(true)
}

func (p *inProjects) initLocked() {
	if p.of == nil {
		p.of, p.sessions, p.idle = make(map[*downstream.Session]string), make(map[string]int), make(map[string]*time.Timer)
	}
}

// waits reports whether a server may wait for a client with a project for ever.
func (f *Fleet) waits(b *Server) bool { return b.PerProject() && !f.projects.stays.Load() }

// PerProject reports whether a server has a process for each project.
func (s *Server) PerProject() bool { return s.defined.Isolation == config.PerProject }

// Projects reports whether any server has a process for each project.
func (f *Fleet) Projects() bool { return slices.ContainsFunc(f.All(), (*Server).PerProject) }

// Join notes the project that a session is in by now, "" for none, and starts its
// servers. It does not wait for them.
func (f *Fleet) Join(s *downstream.Session, folder string) {
	p := &f.projects
	p.mu.Lock()
	was, known := p.of[s]
	if was == folder && known {
		p.mu.Unlock()
		return
	}
	p.initLocked()
	p.of[s] = folder
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
				b.Enter(folder)
			}
			f.hooks.Moved(b.Name(), b.UnitOf)
		}
	}
}

// Left gives back what a session that has ended used alone.
func (f *Fleet) Left(s *downstream.Session) {
	p := &f.projects
	p.mu.Lock()
	f.leaveLocked(p.of[s])
	delete(p.of, s)
	p.mu.Unlock()
	for _, b := range f.All() {
		if b.PerSession() {
			b.EndUnit(s.Unit())
		}
	}
}

// leaveLocked counts a session out of a project.
func (f *Fleet) leaveLocked(folder string) {
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
func (f *Fleet) endProject(folder string) {
	p := &f.projects
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle[folder] == nil {
		return
	}
	delete(p.idle, folder)
	for _, b := range f.All() {
		if b.PerProject() {
			b.EndUnit(folder)
		}
	}
}

// evict ends the processes of a project that no session is in; false when there is none.
func (f *Fleet) evict() bool {
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
func (f *Fleet) folders() []string {
	f.projects.mu.Lock()
	defer f.projects.mu.Unlock()
	return slices.Sorted(maps.Keys(f.projects.sessions))
}

// NoProject returns the error of a server with a process for each project for a session
// without a project, nil for other servers and sessions.
func (f *Fleet) NoProject(server string, s *downstream.Session) error {
	if b := f.Get(server); b == nil || !b.PerProject() || s.Project() != "" {
		return nil
	}
	return &upstream.Error{
		Code: upstream.ConnectionError, Server: server,
		Reason: "runs in the project of its client (isolation: project), and this client has none: " + f.hooks.NoProject(s),
	}
}

// projectConn is the connection of a server for the project of a session.
func (f *Fleet) projectConn(ctx context.Context, b *Server, s *downstream.Session, modern bool) (upstream.Conn, error) {
	if err := f.NoProject(b.Name(), s); err != nil {
		return nil, err
	}
	folder := s.Project()
	conn, err := b.Unit(ctx, folder)
	if errors.Is(err, upstream.ErrProjects) && f.evict() {
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
func (f *Fleet) AwaitProject(ctx context.Context, s *downstream.Session) {
	folder := s.Project()
	if folder == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, f.o.Config.Gateway.StartupWait)
	defer cancel()
	for _, b := range f.All() {
		if !b.PerProject() || !b.Entered(folder) { // there may be no place for it
			continue
		}
		select {
		case <-b.FirstList():
		case <-ctx.Done():
			return
		}
	}
}
