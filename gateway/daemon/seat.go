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

// seat is a place that a daemon has taken.
type seat struct {
	place Endpoint
	lock  *flock.Flock
	ln    *net.UnixListener
	files map[string]os.FileInfo // the lock and the socket, as the daemon made them
	left  atomic.Bool            // for another one
}

// lock is the lock of a place, not taken yet.
func (p Endpoint) lock() *flock.Flock {
	return flock.New(p.Lock, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
}

// sit listens at a place whose lock is held; on an error it gives that up.
func sit(p Endpoint, lock *flock.Flock) (*seat, error) {
	// Nothing depends on it, and some systems forbid writing to a locked file,
	// so a failure is none.
	variables, _ := json.Marshal(p.Variables) // only texts
	_ = os.WriteFile(p.Lock, fmt.Appendf(nil, "%d\n%q %q\n%s\n", os.Getpid(), p.Version, p.Config, variables), 0o600)
	if err := os.Remove(p.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("remove the socket of a daemon that died: %w", err), lock.Unlock())
	}
	s := &seat{place: p, lock: lock}
	if err := s.listen(); err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	return s, nil
}

// listen makes the socket.
func (s *seat) listen() error {
	p := s.place
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: p.Socket, Net: "unix"})
	if err != nil {
		return fmt.Errorf("listen on the daemon's socket: %w", err)
	}
	ln.SetUnlinkOnClose(false) // by its path, which may be another daemon's by then
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

// has reports whether the file at a path is the one that the daemon made there.
func (s *seat) has(path string) bool {
	now, err := os.Lstat(path)
	return err == nil && s.files[path] != nil && os.SameFile(s.files[path], now)
}

// close takes no more connections, and removes the socket.
func (s *seat) close() error {
	if s.has(s.place.Socket) {
		_ = os.Remove(s.place.Socket)
	}
	return s.ln.Close()
}

// leave gives a place up.
func (s *seat) leave() error {
	s.left.Store(true)
	return errors.Join(s.close(), s.lock.Unlock())
}

// restore makes sockets anew that somebody has removed, or nobody would find the daemon, and
// none could start beside it, as it has the lock.
func (l *Listener) restore() {
	l.moved.Lock()
	defer l.moved.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, s := range l.seats {
		_, err := os.Lstat(s.place.Socket)
		if l.ending || l.accept == nil || !errors.Is(err, os.ErrNotExist) || !s.has(s.place.Lock) {
			continue
		}
		next := &seat{place: s.place, lock: s.lock}
		if err := next.listen(); err != nil {
			l.log.Debug("the daemon's socket is gone", "err", err)
			continue
		}
		l.log.Warn("the daemon's socket was removed, and made anew", "socket", s.place.Socket)
		l.seats = slices.Clone(l.seats)
		l.seats[i] = next
		l.accept(next)
		s.left.Store(true)
		_ = s.ln.Close()
	}
}

// moveLimit is how long a daemon that may be at another place already has to answer.
const moveLimit = time.Second

// Move makes the daemon be found at another place, too, instead of the one that it
// has moved to before: the config names other variables by now. The first place
// stays, for those that know no other. It hardly waits: if another daemon is
// there already, that is a [*RunningError], and this one stays where it is.
func (l *Listener) Move(p Endpoint) error {
	l.moved.Lock()
	defer l.moved.Unlock()
	l.mu.Lock()
	seats := l.seats
	l.mu.Unlock()
	if p.Socket == seats[len(seats)-1].place.Socket {
		return nil
	}
	next := seats[:1:1]
	if p.Socket != l.place.Socket {
		lock := p.lock()
		ok, err := lock.TryLock()
		if err != nil {
			return errors.Join(fmt.Errorf("lock %s: %w", p.Lock, err), lock.Close())
		}
		if !ok {
			return errors.Join(&RunningError{lockHolder(p)}, lock.Close())
		}
		ctx, cancel := context.WithTimeout(context.Background(), moveLimit)
		other, _ := living(ctx, p)
		cancel()
		if other != nil { // whose lock somebody has removed
			return errors.Join(other, lock.Close())
		}
		s, err := sit(p, lock)
		if err != nil {
			return err
		}
		next = append(next, s)
	}
	l.mu.Lock()
	ending := l.ending
	if !ending {
		l.seats = next
		if l.accept != nil {
			for _, s := range next[1:] {
				l.accept(s)
			}
		}
	}
	l.mu.Unlock()
	leaving := seats[1:]
	if ending {
		leaving = next[1:]
	}
	var err error
	for _, s := range leaving {
		err = errors.Join(err, s.leave())
	}
	return err
}

// maxNote bounds what is read of a lock file.
const maxNote = 64 << 10

// Serving are the places in a folder, that of [Locate], which daemons of a version ("" for any)
// took for a config file, whatever variables it named then: for who cannot read
// it any more. There need not be a daemon at any of them by now. On systems that
// forbid writing to a locked file there are none.
func Serving(dir, config, version string) []Endpoint {
	locks, _ := filepath.Glob(filepath.Join(dir, "*.lock")) // the pattern is right
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
			_ = json.Unmarshal([]byte(lines[2]), &p.Variables) // none is one that knows of no variables
		}
		name := strings.TrimSuffix(lock, ".lock")
		p.Socket, p.Log = name+".sock", name+".log"
		places = append(places, p)
	}
	return places
}
