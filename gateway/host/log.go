package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
)

// maxLog is how many bytes a log holds before it is moved to <log>.1.
const maxLog = 4 << 20

// openLog opens a host's log for appending, rotated if need be, and tells
// where it ends.
func openLog(path string) (*os.File, int64, error) {
	rotate(path)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("open the host's log: %w", err)
	}
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("open the host's log: %w", err), f.Close())
	}
	return f, end, nil
}

// rotate copies a full log to path.1 and empties it. The file stays the same
// because the standard error of running processes leads to it. A log that
// cannot be rotated is no reason not to run, so failures are not reported.
func rotate(path string) {
	fi, err := os.Lstat(path)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() < maxLog {
		return
	}
	from, err := os.Open(path)
	if err != nil {
		return
	}
	defer from.Close()
	old, err := os.OpenFile(path+".1", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return
	}
	defer old.Close()
	// The end is worth most, and a log may have grown far beyond its bound
	// while nobody rotated it.
	if _, err := from.Seek(-maxLog, io.SeekEnd); err != nil {
		return
	}
	if _, err := io.Copy(old, io.LimitReader(from, maxLog)); err == nil {
		_ = os.Truncate(path, 0)
	}
}

// Log is a detached host's log: bounded, shared with its standard error. It
// is safe for concurrent use.
type Log struct {
	mu   sync.Mutex
	path string
	file *os.File
}

// OpenLog opens the log of a place. Give it to the logger of a detached host:
// what is written through it keeps p.Log at 4 MiB, with as much again in
// <log>.1.
func OpenLog(p Place) (*Log, error) {
	f, _, err := openLog(p.Log)
	if err != nil {
		return nil, err
	}
	return &Log{path: p.Log, file: f}, nil
}

// Write appends to the log.
func (l *Log) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return 0, fs.ErrClosed
	}
	rotate(l.path)
	return l.file.Write(text)
}

// Close closes the log; later writes fail.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return fs.ErrClosed
	}
	f := l.file
	l.file = nil
	return f.Close()
}
