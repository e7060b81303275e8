package filewatch

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Limits of a [Tree].
const (
	maxTreeFiles   = 20_000
	maxTreeFolders = 10_000
)

const (
	// treeSettleTime is the time without events before changes of a tree are reported.
	// Programs such as git change many files in a row.
	treeSettleTime = 200 * time.Millisecond
	// pollShare limits polling to this part of one processor: 1/50.
	pollShare = 50
)

// Tree watches the files of a folder that its globs select, with up to 20,000 files in
// 10,000 folders. It does not follow symbolic links to folders.
type Tree struct {
	folder string
	globs  *Globs
	notify *fsnotify.Watcher      // nil if the system refused one
	files  map[string]fs.FileInfo // by path relative to folder
	full   bool                   // a limit was reached
	took   time.Duration          // of the last scan
}

// NewTree reads the current state of a folder. Later changes are reported by [Tree.Run].
func NewTree(folder string, globs *Globs) *Tree {
	t := &Tree{folder: folder, globs: globs}
	t.notify, _ = fsnotify.NewWatcher() // polling works without
	t.files = t.scan()
	return t
}

// Len returns the number of watched files, and whether a limit excludes others. It must not
// be called during Run.
func (t *Tree) Len() (n int, full bool) { return len(t.files), t.full }

// Run calls changed with the sorted relative paths of files that were written, created or
// removed. It waits until no file changed for 200 ms, or 2 s have passed. Run blocks until
// ctx ends and must be called once. changed must not block.
func (t *Tree) Run(ctx context.Context, changed func(files []string)) {
	defer func() {
		if t.notify != nil {
			_ = t.notify.Close() // nothing was written
		}
	}()
	timer := time.NewTimer(0)
	<-timer.C
	poll := time.NewTimer(t.pollPause())
	defer poll.Stop()
	var first time.Time // first unreported sign of a change, or zero
	pending := map[string]bool{}
	delay := func() {
		now := time.Now()
		if first.IsZero() {
			first = now
		}
		timer.Reset(max(0, min(treeSettleTime, maxSettleTime-now.Sub(first))))
	}
	for {
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case e := <-t.events():
			if e.Op != fsnotify.Chmod {
				delay()
			}
		case <-t.errors(): //nolint:errcheck // a scan finds what is lost
			delay()
		case <-poll.C:
			if t.rescan(pending) {
				delay()
			}
			poll.Reset(t.pollPause())
		case <-timer.C:
			first = time.Time{}
			t.rescan(pending)
			if len(pending) > 0 {
				changed(sorted(pending))
				clear(pending)
			}
		}
	}
}

func sorted(set map[string]bool) []string {
	all := make([]string, 0, len(set))
	for name := range set {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func (t *Tree) pollPause() time.Duration { return max(pollInterval, pollShare*t.took) }

func (t *Tree) events() <-chan fsnotify.Event {
	if t.notify == nil {
		return nil
	}
	return t.notify.Events
}

func (t *Tree) errors() <-chan error {
	if t.notify == nil {
		return nil
	}
	return t.notify.Errors
}

// rescan adds the files that differ from the last scan, and reports whether there are
// any.
func (t *Tree) rescan(changed map[string]bool) (any bool) {
	before := t.files
	t.files = t.scan()
	for name, is := range t.files {
		was := before[name]
		if was == nil || !was.ModTime().Equal(is.ModTime()) || was.Size() != is.Size() || !os.SameFile(was, is) {
			changed[name], any = true, true
		}
	}
	for name := range before {
		if t.files[name] == nil {
			changed[name], any = true, true
		}
	}
	return any
}

// scan reads all folders and watches them.
func (t *Tree) scan() map[string]fs.FileInfo {
	began := time.Now()
	files, folders := make(map[string]fs.FileInfo, len(t.files)), 0
	t.full = false
	left := t.globs.roots()
	for len(left) > 0 {
		folder := left[len(left)-1]
		left = left[:len(left)-1]
		if folders++; folders > maxTreeFolders {
			t.full = true
			break
		}
		full := filepath.Join(t.folder, filepath.FromSlash(folder))
		if t.notify != nil {
			_ = t.notify.Add(full) // before reading it; polling finds what this misses
		}
		entries, err := os.ReadDir(full)
		if err != nil {
			continue // removed meanwhile
		}
		for _, e := range entries {
			name := path.Join(folder, e.Name())
			if e.IsDir() {
				if t.globs.Enter(name) {
					left = append(left, name)
				}
				continue
			}
			if !t.globs.Match(name) {
				continue
			}
			info, err := os.Stat(filepath.Join(full, e.Name())) // of a link's target
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			if len(files) == maxTreeFiles {
				t.full = true
				break
			}
			files[name] = info
		}
	}
	t.took = time.Since(began)
	return files
}
