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

// File is a log of bounded size: when it holds so many bytes they move to
// <path>.1, in the place of those before. It is safe for concurrent use, also by
// other processes that append to the file.
type File struct {
	mu   sync.Mutex
	path string
	most int64
	file *os.File
}

// Open opens a log for appending, with mode 0600 if it is new, and rotates it
// first if it is full. What is no regular file, such as a pipe or a terminal, is
// written as it is.
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

// File is the open file, for processes whose standard error leads there.
func (f *File) File() *os.File { return f.file }

// Close closes the log; later writes fail.
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

// rotate keeps the end of a full log in path.1 and empties it. The file stays the
// same, because the standard error of running processes leads to it. If its end
// cannot be kept, as on a full disk, it is lost: the bound holds all the same.
func rotate(path string, most int64) {
	fi, err := os.Stat(path)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() < most {
		return
	}
	_ = keep(path, most)     // it is lost then
	_ = os.Truncate(path, 0) // or nothing could be written either
}

// keep copies the end of a log to path.1, by way of a new file: whatever stood
// there under that name is replaced, not followed.
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
	// The end is worth most, and a log may have grown far beyond its bound
	// while nobody rotated it.
	_, err = from.Seek(-most, io.SeekEnd)
	if err == nil {
		_, err = io.Copy(to, io.LimitReader(from, most))
	}
	if err = cmp.Or(err, to.Close()); err != nil {
		return fmt.Errorf("keep the end of %s: %w", path, err)
	}
	return os.Rename(to.Name(), path+".1")
}
