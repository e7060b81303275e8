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

// File is a log with a size limit. When full, it moves to <path>.1. It is safe for
// concurrent use, also by processes that append to it.
type File struct {
	mu   sync.Mutex
	path string
	most int64
	file *os.File
}

// Open opens a log for appending, with mode 0600, and rotates a full one. Pipes and other
// special files are not rotated.
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

// File returns the open file, as standard error of children.
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

// rotate copies the end of a full log to path.1 and truncates it, since processes keep it
// open. If the copy fails, the content is lost: the limit has priority.
func rotate(path string, most int64) {
	fi, err := os.Stat(path)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() < most {
		return
	}
	_ = keep(path, most)     // lost on failure, see above
	_ = os.Truncate(path, 0) // an error leaves it too large, but usable
}

// keep copies the end of a log to path.1 by a rename, so a link there is not followed.
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
	_, err = from.Seek(-most, io.SeekEnd)
	if err == nil {
		_, err = io.Copy(to, io.LimitReader(from, most))
	}
	if err = cmp.Or(err, to.Close()); err != nil {
		return fmt.Errorf("keep the end of %s: %w", path, err)
	}
	return os.Rename(to.Name(), path+".1")
}
