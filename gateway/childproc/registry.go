//go:build linux || darwin

package childproc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	prefix = "children-"
	// handedOver is the suffix of the file of a process that used [Registry.HandOver].
	handedOver = ".handed-over"
	// slot is the length of a child's line, in bytes. Each line is written in place by
	// one write, which a dying process doesn't split.
	slot     = 512
	maxSlots = 4096
)

// child is a line of the file: the leader of a process group.
type child struct {
	PID     int    `json:"pid"`
	Start   int64  `json:"start"` // in system-specific units
	Session int    `json:"session"`
	Era     string `json:"era"` // boot and namespace in which PID and Start are valid
	Server  string `json:"server"`
	Command string `json:"command,omitempty"` // for log messages

	handedOver bool // its process was not killed
}

// line returns the child's line. It omits a command that is too long.
func (c child) line() ([]byte, error) {
	text, err := json.Marshal(c)
	if err == nil && len(text) >= slot {
		c.Command = ""
		text, err = json.Marshal(c)
	}
	if err == nil && len(text) >= slot {
		err = fmt.Errorf("record of %d bytes is too long", len(text))
	}
	if err != nil {
		return nil, err
	}
	return append(text, append(bytes.Repeat([]byte{' '}, slot-1-len(text)), '\n')...), nil
}

func parse(text []byte) []child {
	var all []child
	for line := range bytes.Lines(text) {
		var c child
		if len(line) > slot || json.Unmarshal(line, &c) != nil {
			continue
		}
		if c.PID > 1 && c.Start > 0 && c.Era != "" && len(all) < maxSlots {
			all = append(all, c)
		}
	}
	return all
}

// Registry records the children of this process. Create one with [New].
type Registry struct {
	dir string
	log *slog.Logger

	mu        sync.Mutex
	file      *os.File // nil before the first child and after Close
	taken     []bool
	closed    bool
	failed    bool
	ownerLock *os.File // open until this process exits, after HandOver

	// OutliveExit makes children outlive this process, so that they can be handed over.
	// Set it before the first child.
	OutliveExit bool
}

// New returns a Registry with its file in dir, which must be private to the user. The
// first child creates the file.
func New(dir string, log *slog.Logger) *Registry { return &Registry{dir: dir, log: log} }

// Add records a child that was just started as leader of its own group and not yet
// reaped. The caller must call forget when the group has exited.
func (r *Registry) Add(pid int, server, command string) (forget func()) {
	if r == nil {
		return func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n, err := r.add(pid, server, command)
	if err != nil {
		r.fail(err)
		return func() {}
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.taken[n] = false
		if r.file != nil {
			if _, err := r.file.WriteAt(append(bytes.Repeat([]byte{' '}, slot-1), '\n'), int64(n)*slot); err != nil {
				r.fail(err)
			}
		}
	}
}

func (r *Registry) add(pid int, server, command string) (n int, err error) {
	if r.closed {
		return 0, os.ErrClosed
	}
	start, err := startOf(pid)
	if err != nil {
		return 0, err
	}
	session, err := unix.Getsid(0)
	if err != nil {
		return 0, fmt.Errorf("find the session: %w", err)
	}
	text, err := child{PID: pid, Start: start, Session: session, Era: bootID(), Server: server, Command: command}.line()
	if err != nil {
		return 0, err
	}
	if r.file == nil {
		if r.file, err = create(r.dir); err != nil {
			return 0, err
		}
	}
	if n = slices.Index(r.taken, false); n < 0 {
		if n = len(r.taken); n == maxSlots {
			return 0, fmt.Errorf("limit of %d recorded processes reached", n)
		}
		r.taken = append(r.taken, false)
	}
	if _, err := r.file.WriteAt(text, int64(n)*slot); err != nil {
		return 0, err
	}
	r.taken[n] = true
	return n, nil
}

func (r *Registry) fail(err error) {
	if !r.failed {
		r.failed = true
		r.log.Warn("child processes are not recorded; some may survive if this process is killed", "err", err)
	}
}

// TouchFile updates the file's time, so that cleaners of old files keep it.
func (r *Registry) TouchFile() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file != nil {
		now := time.Now()
		_ = os.Chtimes(r.file.Name(), now, now)
	}
}

// Close removes the file. Call it when all children have exited.
func (r *Registry) Close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.file != nil {
		_ = os.Remove(r.file.Name()) // the next sweep removes leftovers
		_ = r.file.Close()
		r.file = nil
	}
}

func create(dir string) (*os.File, error) {
	for {
		f, err := os.CreateTemp(dir, fmt.Sprintf("%s%d-*", prefix, os.Getpid())) // with mode 0600
		if err != nil {
			return nil, err
		}
		ok, err := lock(f)
		if ok {
			return f, nil
		}
		_ = f.Close()
		if err != nil {
			return nil, errors.Join(err, os.Remove(f.Name()))
		}
	}
}

// lock locks a file. It returns false if another process holds the lock or removed the
// file.
func lock(f *os.File) (bool, error) {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			return false, nil
		}
		return false, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	mine, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Lstat(f.Name())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, there), err
}

// Members returns the number of running processes in the group of a child, except the
// child itself.
func Members(pid int) int {
	n := 0
	for _, m := range members([]child{{PID: pid}})[pid] {
		if m.pid != pid {
			n++
		}
	}
	return n
}
