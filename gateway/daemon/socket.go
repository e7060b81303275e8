package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"goblin/gateway/state"
)

type boundSocket struct {
	endpoint Endpoint
	lock     *flock.Flock
	ln       *net.UnixListener
	files    map[string]os.FileInfo // the lock and the socket as created
	released atomic.Bool
}

func (p Endpoint) lock() *flock.Flock {
	return flock.New(p.Lock, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
}

// bind listens at an endpoint whose lock is held. On an error it releases the lock.
func bind(p Endpoint, lock *flock.Flock) (*boundSocket, error) {
	// The content is optional, and some systems forbid writing to a locked file.
	// Therefore it ignores errors.
	variables, _ := json.Marshal(p.Variables) // cannot fail: texts only
	_ = os.WriteFile(p.Lock, fmt.Appendf(nil, "%d\n%q %q\n%s\n", os.Getpid(), p.Version, p.Config, variables), 0o600)
	if err := os.Remove(p.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("remove the socket of a dead daemon: %w", err), lock.Unlock())
	}
	s := &boundSocket{endpoint: p, lock: lock}
	if err := s.listen(); err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	return s, nil
}

func (s *boundSocket) listen() error {
	p := s.endpoint
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: p.Socket, Net: "unix"})
	if err != nil {
		return fmt.Errorf("listen on the daemon's socket: %w", err)
	}
	ln.SetUnlinkOnClose(false) // the path may belong to another daemon by then
	if err := os.Chmod(p.Socket, 0o600); err != nil {
		return errors.Join(fmt.Errorf("protect the daemon's socket: %w", err), ln.Close(), os.Remove(p.Socket))
	}
	s.ln, s.files = ln, make(map[string]os.FileInfo)
	for _, path := range []string{p.Lock, p.Socket} {
		if info, err := os.Lstat(path); err == nil {
			s.files[path] = info
		}
	}
	return nil
}

// owns reports whether the file at path is still the daemon's own.
func (s *boundSocket) owns(path string) bool {
	now, err := os.Lstat(path)
	return err == nil && s.files[path] != nil && os.SameFile(s.files[path], now)
}

func (s *boundSocket) close() error {
	if s.owns(s.endpoint.Socket) {
		_ = os.Remove(s.endpoint.Socket)
	}
	return s.ln.Close()
}

func (s *boundSocket) release() error {
	s.released.Store(true)
	return errors.Join(s.close(), s.lock.Unlock())
}

// restore creates removed sockets again. Without its socket, clients cannot find the
// daemon, and its lock prevents another one.
func (l *Listener) restore() {
	l.moveMu.Lock()
	defer l.moveMu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, s := range l.sockets {
		_, err := os.Lstat(s.endpoint.Socket)
		if l.ending || l.accept == nil || !errors.Is(err, os.ErrNotExist) || !s.owns(s.endpoint.Lock) {
			continue
		}
		next := &boundSocket{endpoint: s.endpoint, lock: s.lock}
		if err := next.listen(); err != nil {
			l.log.Debug("cannot restore the daemon's socket", "err", err)
			continue
		}
		l.log.Warn("restored the daemon's removed socket", "socket", s.endpoint.Socket)
		l.sockets = slices.Clone(l.sockets)
		l.sockets[i] = next
		l.accept(next)
		s.released.Store(true)
		_ = s.ln.Close()
	}
}

// moveLimit is the maximum wait for a daemon that may be at the new endpoint.
const moveLimit = time.Second

// AddEndpoint adds an endpoint, because the config names other variables now. It replaces
// a previously added one; the original endpoint stays. A daemon that is already there is
// a [*RunningError], and nothing changes. AddEndpoint blocks for about a second at most.
func (l *Listener) AddEndpoint(p Endpoint) error {
	l.moveMu.Lock()
	defer l.moveMu.Unlock()
	l.mu.Lock()
	sockets := l.sockets
	l.mu.Unlock()
	if p.Socket == sockets[len(sockets)-1].endpoint.Socket {
		return nil
	}
	next := sockets[:1:1]
	if p.Socket != l.endpoint.Socket {
		lock := p.lock()
		ok, err := lock.TryLock()
		if err != nil {
			return errors.Join(fmt.Errorf("lock %s: %w", p.Lock, err), lock.Close())
		}
		if !ok {
			return errors.Join(&RunningError{lockHolder(p)}, lock.Close())
		}
		ctx, cancel := context.WithTimeout(context.Background(), moveLimit)
		other, _ := runningDaemon(ctx, p)
		cancel()
		if other != nil { // its lock file was removed
			return errors.Join(other, lock.Close())
		}
		s, err := bind(p, lock)
		if err != nil {
			return err
		}
		next = append(next, s)
	}
	l.mu.Lock()
	ending := l.ending
	if !ending {
		l.sockets = next
		if l.accept != nil {
			for _, s := range next[1:] {
				l.accept(s)
			}
		}
	}
	l.mu.Unlock()
	leaving := sockets[1:]
	if ending {
		leaving = next[1:]
	}
	var err error
	for _, s := range leaving {
		err = errors.Join(err, s.release())
	}
	return err
}

const maxNote = 64 << 10

// FindRunning returns the endpoints in dir (see [Find]) that daemons used for a config,
// with any variables. It serves callers that cannot read the config. version "" means any
// version. The daemons may no longer run. The result is empty on systems that forbid
// writing to a locked file.
func FindRunning(dir, config, version string) []Endpoint {
	locks, _ := filepath.Glob(filepath.Join(dir, "*.lock")) // the pattern is valid
	var places []Endpoint
	for _, lock := range locks {
		text, err := state.Read(lock, maxNote)
		if err != nil {
			continue
		}
		var pid int
		p := Endpoint{Dir: dir, Lock: lock}
		if _, err := fmt.Sscanf(string(text), "%d\n%q %q\n", &pid, &p.Version, &p.Config); err != nil || version != "" && p.Version != version || p.Config != config {
			continue
		}
		if lines := strings.SplitN(string(text), "\n", 3); len(lines) == 3 {
			_ = json.Unmarshal([]byte(lines[2]), &p.Variables) // older daemons wrote none
		}
		name := strings.TrimSuffix(lock, ".lock")
		p.Socket, p.Log = name+".sock", name+".log"
		places = append(places, p)
	}
	return places
}
