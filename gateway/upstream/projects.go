package upstream

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/upstream/limiter"
	"goblin/registry"
)

// With isolation: project, units are projects, named by their folders, and the server's
// definition depends on them. So the server has no connection of its own; its catalog
// comes from one project's connection at a time.

// ErrTooManyProjects is the cause of an [Error] if limits.projects is reached.
var ErrTooManyProjects = errors.New("too many projects have a process")

// IsProjectUnit reports whether a unit is a project.
func IsProjectUnit(unit string) bool { return filepath.IsAbs(unit) }

func (s *Server) isPerProject() bool { return s.cfg.Isolation == config.PerProject }

func (s *Server) definition(ctx context.Context, unit string) (*config.Server, error) {
	cfg := &s.cfg
	if s.opt.Resolve != nil {
		now, err := s.opt.Resolve(ctx, cfg)
		if err != nil {
			return nil, s.newError(ConnectionError, err.Error(), err)
		}
		cfg = now
	}
	if s.isPerProject() && unit != "" {
		return cfg.InProject(unit), nil
	}
	return cfg, nil
}

// OpenProject opens the connection of a project without waiting for it.
func (s *Server) OpenProject(folder string) {
	_, _, _, _ = s.unitConn(folder, nil, nil) // later callers get the error
}

// HasProject reports whether a project has a connection or is opening one.
func (s *Server) HasProject(folder string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runCtx == nil || s.units[folder] != nil
}

func (s *Server) projectLocked(name string) (*unit, error) {
	if u := s.units[name]; u != nil {
		return u, nil
	}
	if s.opt.Projects != nil && !s.opt.Projects.TryAcquire() {
		return nil, s.newError(ConnectionError, fmt.Sprintf("cannot start a process for the project %s: %d are running (limits.projects)", name, s.opt.Projects.Limit), ErrTooManyProjects)
	}
	return s.newUnitLocked(name), nil
}

func (s *Server) releaseProjectLocked() {
	if s.isPerProject() && s.opt.Projects != nil {
		s.opt.Projects.Release()
	}
}

func (s *Server) followProject(ctx context.Context) (up time.Duration, err error) {
	if s.opt.Folders != nil {
		for _, folder := range s.opt.Folders() {
			s.OpenProject(folder)
		}
	}
	l, err := s.awaitProject(ctx)
	if l == nil {
		return 0, err
	}
	return s.serve(ctx, l)
}

// ShowWait shows that the server waits for the first client with a project.
func (s *Server) ShowWait() {
	s.setState(func(st *registry.ServerState) {
		st.State, st.LastError, st.PID, st.Stale = registry.StateStopped, "waiting for a client with a project (isolation: project)", 0, st.Listed
	})
}

// awaitProject returns the error of one project if none can connect.
func (s *Server) awaitProject(ctx context.Context) (*link, error) {
	waits := false
	for {
		s.mu.Lock()
		var why error
		opening := false
		for _, u := range s.units {
			if !u.hasOwnConn {
				s.startUnitLocked(u) // it had a connection before a restart
			}
			switch {
			case u.conn != nil && u.conn.Err() == nil:
				s.mu.Unlock()
				return u.conn, nil
			case u.opening != nil:
				opening = true
			default:
				why = u.err
			}
		}
		idle, changed := len(s.units) == 0, s.changed
		s.mu.Unlock()
		switch {
		case why != nil && !opening:
			return nil, why
		case idle && !waits:
			s.ShowWait()
		case !idle && waits:
			s.setState(func(st *registry.ServerState) { st.State, st.LastError = registry.StateConnecting, "" })
		}
		waits = idle
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (s *Server) projectsChanged() {
	if !s.isPerProject() {
		return
	}
	var now []registry.Project
	s.mu.Lock()
	for name, u := range s.units {
		p := registry.Project{Folder: name}
		if u.conn != nil {
			p.PID = u.conn.pid
		}
		now = append(now, p)
	}
	s.broadcastLocked()
	s.mu.Unlock()
	slices.SortFunc(now, func(a, b registry.Project) int { return strings.Compare(a.Folder, b.Folder) })
	s.setState(func(st *registry.ServerState) { st.Projects = now })
}

// Projects counts the processes of projects of all servers.
type Projects = limiter.Projects
