package logs

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"goblin/gateway/state"
)

// File is a log with a size limit. A full log moves to <path>.1, replacing the previous
// one. It is safe for concurrent use, also by other processes that append to the file.
type File struct {
	mu   sync.Mutex
	path string
	most int64
	file *os.File
}

// Open opens a log for appending and rotates it first if it is full. A new file has mode
// 0600. Pipes, terminals and other special files are not rotated.
func Open(path string, most int64) (*File, error) {
	rotate(path, most)
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	return &File{path: path, most: most, file: f}, nil
}

// Write appends to the log.
func (f *File) Write(text []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return 0, fs.ErrClosed
	}
	rotate(f.path, f.most)
	return f.file.Write(text)
}

// File returns the open file, for the standard error of child processes.
func (f *File) File() *os.File { return f.file }

// Close closes the log. Later writes return fs.ErrClosed.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return fs.ErrClosed
	}
	file := f.file
	f.file = nil
	return file.Close()
}

// rotate copies the end of a full log to path.1 and truncates it. The file stays the same
// because it is the standard error of running processes. If the copy fails, as on a full
// disk, it is lost: the limit has priority.
func rotate(path string, most int64) {
	fi, err := os.Stat(path)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() < most {
		return
	}
	_ = keep(path, most)     // see above
	_ = os.Truncate(path, 0) // an error leaves the log too large, but usable
}

// keep copies the end of a log to path.1. It writes a new file and renames it, so a link
// at path.1 is replaced, not followed.
func keep(path string, most int64) (err error) {
	from, _, err := state.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(to.Name()))
		}
	}()
	// Copy the end: the log may be far over its limit.
	_, err = from.Seek(-most, io.SeekEnd)
	if err == nil {
		_, err = io.Copy(to, io.LimitReader(from, most))
	}
	if err = cmp.Or(err, to.Close()); err != nil {
		return fmt.Errorf("keep the end of %s: %w", path, err)
	}
	return os.Rename(to.Name(), path+".1")
}
