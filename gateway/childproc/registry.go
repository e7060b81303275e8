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
	// handedOver is the suffix of the file of a process that exited before its children
	// on purpose, see [Registry.HandOver].
	handedOver = ".handed-over"
	// slot is the length in bytes of a child's line. Lines are written in
	// place, each by one write, which the death of the process does not cut.
	slot = 512
	// maxSlots bounds the children of a file; more are not recorded.
	maxSlots = 4096
)

// child is a line of the file: the leader of a process group.
type child struct {
	PID     int    `json:"pid"`
	Start   int64  `json:"start"` // in units of the system
	Session int    `json:"session"`
	Era     string `json:"era"` // in which PID and Start mean this process
	Server  string `json:"server"`
	Command string `json:"command,omitempty"` // for people

	handedOver bool // by its process, which was not killed
}

// line is the child as it is written. A command that is too long is left out.
func (c child) line() ([]byte, error) {
	text, err := json.Marshal(c)
	if err == nil && len(text) >= slot {
		c.Command = ""
		text, err = json.Marshal(c)
	}
	if err == nil && len(text) >= slot {
		err = fmt.Errorf("the line has %d bytes", len(text))
	}
	if err != nil {
		return nil, err
	}
	return append(text, append(bytes.Repeat([]byte{' '}, slot-1-len(text)), '\n')...), nil
}

// parse reads the children of a file. Lines that are none are skipped: they are
// free, or broken.
func parse(text []byte) []child {
	var all []child
	for line := range bytes.Lines(text) {
		var c child
		if len(line) > slot || json.Unmarshal(line, &c) != nil {
			continue
		}
		// Groups 0 and 1 stand for others in a call of kill.
		if c.PID > 1 && c.Start > 0 && c.Era != "" && len(all) < maxSlots {
			all = append(all, c)
		}
	}
	return all
}

// Registry is the children of this process. Make one with [New].
type Registry struct {
	dir string
	log *slog.Logger

	mu        sync.Mutex
	file      *os.File // nil before the first child and after Close
	taken     []bool   // slots of file
	closed    bool
	failed    bool     // told of
	ownerLock *os.File // open for as long as this process lives, once it has handed over

	// OutliveExit makes children outlive this process, so that they can be handed over. Set it before the first
	// child.
	OutliveExit bool
}

// New returns a Record whose file will be in dir, a folder that is private to
// the user. The file is made with the first child.
func New(dir string, log *slog.Logger) *Registry { return &Registry{dir: dir, log: log} }

// Add records a child that was just started as the leader of a group of its
// own and has not been waited for. forget must be called when the child and its
// group are gone.
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
			return 0, fmt.Errorf("%d are recorded already", n)
		}
		r.taken = append(r.taken, false)
	}
	if _, err := r.file.WriteAt(text, int64(n)*slot); err != nil {
		return 0, err
	}
	r.taken[n] = true
	return n, nil
}

// fail logs that a child is not recorded, once.
func (r *Registry) fail(err error) {
	if !r.failed {
		r.failed = true
		r.log.Warn("Child processes are not recorded; some may be left if this process is killed", "err", err)
	}
}

// TouchFile makes the file look used, for programs that clear folders of what is old.
func (r *Registry) TouchFile() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file != nil {
		now := time.Now()
		_ = os.Chtimes(r.file.Name(), now, now) // it may be gone already
	}
}

// Close removes the file, when all children are gone.
func (r *Registry) Close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.file != nil {
		_ = os.Remove(r.file.Name()) // one that stays is removed by the next sweep
		_ = r.file.Close()
		r.file = nil
	}
}

// create makes a file that is locked for the life of this process.
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

// lock takes the lock of a file that is still in its folder; false when
// somebody else has it or has removed the file.
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
