package recorder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// Removed counts removed files. Bytes includes bodies.
type Removed struct {
	Files  int   `json:"files"`
	Bodies int   `json:"bodies"`
	Bytes  int64 `json:"bytes"`
}

// Delete removes the recordings in a folder that ended more than older ago, and the
// bodies that only they use. It keeps the file of a running recording, and refuses a
// folder without recordings.
func Delete(path string, older time.Duration) (gone Removed, err error) {
	path, err = filepath.Abs(path)
	if err == nil {
		err = checkFolder(path)
	}
	if err != nil {
		return gone, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return gone, err
	}
	defer root.Close()
	f := &folder{path: path, root: root}
	all, err := f.files()
	if err != nil {
		return gone, err
	}
	if len(all) == 0 {
		return gone, fmt.Errorf("%s contains no recordings of Goblin; nothing was removed", path)
	}
	running, err := f.isWritten()
	if err != nil {
		return gone, err
	}
	var remaining []file
	for i, one := range all {
		if running && i == len(all)-1 || time.Since(one.end) < older {
			remaining = append(remaining, one)
			continue
		}
		if err := root.Remove(one.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return gone, err
		}
		gone.Files++
		gone.Bytes += one.size
	}
	if gone.Files == 0 {
		return gone, nil
	}
	unused, err := f.removeUnused(remaining)
	gone.Bodies, gone.Bytes = unused.Bodies, gone.Bytes+unused.Bytes
	return gone, err
}

// isWritten reports whether a process records into the folder.
func (f *folder) isWritten() (bool, error) {
	if _, err := f.root.Lstat(lockName); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	lock := flock.New(filepath.Join(f.path, lockName), flock.SetFlag(os.O_RDWR))
	ok, err := lock.TryLock()
	return !ok, errors.Join(err, lock.Close())
}
