// Package filewatch reports when a file may have changed.
//
// It uses system notifications and polling. It never reads the file's content.
package filewatch

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	statefile "goblin/gateway/state"
)

const (
	// settleTime is the time without events before a change is reported, since programs
	// write in steps.
	settleTime = 100 * time.Millisecond
	// maxSettleTime is the maximum delay for a file that keeps changing.
	maxSettleTime = 2 * time.Second
	// pollInterval is the polling interval. Some file systems send no notifications, and
	// neither do missing directories.
	pollInterval = 2 * time.Second
	maxLinks     = 40
)

// File calls changed when the file at path may differ from read, or can be read again.
// Causes are writes, replacement, removal, creation, changed permissions and changed
// symbolic links. If read is nil, changes count from the start of the call. File blocks
// until ctx ends and changed has returned. Calls of changed never overlap.
//
// File watches directories, since editors and deployments replace the file.
func File(ctx context.Context, path string, read fs.FileInfo, changed func()) {
	follow(ctx, path, func(now state) bool { return read != nil && !now.same(state{read, now.readable}) }, changed)
}

// follow is File with a function that decides about the first state. The state is read
// before changed is called, so later changes are noticed, too.
func follow(ctx context.Context, path string, differs func(now state) bool, changed func()) {
	w := &watcher{path: path}
	defer w.close()
	w.updateFolders()
	seen := w.state()
	if differs(seen) {
		changed()
	}
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	timer := time.NewTimer(0)
	<-timer.C
	var first time.Time // first unreported event, or zero
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.events():
			now := time.Now()
			if first.IsZero() {
				first = now
			}
			timer.Reset(max(0, min(settleTime, maxSettleTime-now.Sub(first))))
			continue
		case <-w.errors(): //nolint:errcheck // what is lost is found by looking
			continue
		case <-timer.C:
			first = time.Time{}
		case <-ticker.C:
			if !first.IsZero() {
				continue
			}
		}
		w.updateFolders()
		if now := w.state(); !now.same(seen) {
			seen = now
			changed()
		}
	}
}

// Latest is like [File] for path, and then for the latest path from paths. It watches
// nothing while the path is "". It calls changed for each new path, since the file may
// have changed since it was read.
func Latest(ctx context.Context, path string, paths <-chan string, changed func()) {
	for came := false; ; came = true {
		one, stop := context.WithCancel(ctx)
		var watch sync.WaitGroup
		if path != "" {
			watch.Go(func() { follow(one, path, func(state) bool { return came }, changed) })
		}
		next := path
		for next == path && ctx.Err() == nil {
			select {
			case next = <-paths:
			case <-ctx.Done():
			}
		}
		stop()
		watch.Wait()
		if ctx.Err() != nil {
			return
		}
		path = next
	}
}

type state struct {
	info     fs.FileInfo // nil if missing
	readable bool
}

func (s state) same(o state) bool {
	if s.info == nil || o.info == nil {
		return s.info == o.info
	}
	return s.readable == o.readable && s.info.Mode() == o.info.Mode() &&
		os.SameFile(s.info, o.info) && s.info.ModTime().Equal(o.info.ModTime()) && s.info.Size() == o.info.Size()
}

type watcher struct {
	path    string
	notify  *fsnotify.Watcher // nil if the system refused one
	folders []string          // sorted
}

func (w *watcher) state() state {
	info, err := os.Stat(w.path)
	if err != nil {
		if info, err = os.Lstat(w.path); err != nil {
			return state{}
		}
		return state{info, false} // a broken link is not a missing file
	}
	if !info.Mode().IsRegular() { // opening a pipe would block
		return state{info, true}
	}
	f, _, err := statefile.Open(w.path)
	if err != nil {
		return state{info, false}
	}
	_ = f.Close() // read only
	return state{info, true}
}

func (w *watcher) events() <-chan fsnotify.Event {
	if w.notify == nil {
		return nil
	}
	return w.notify.Events
}

func (w *watcher) errors() <-chan error {
	if w.notify == nil {
		return nil
	}
	return w.notify.Errors
}

// updateFolders watches the current directories of the file and of the links to it.
func (w *watcher) updateFolders() {
	if w.notify == nil {
		notify, err := fsnotify.NewWatcher()
		if err != nil {
			return
		}
		w.notify = notify
	}
	folders := foldersOf(w.path)
	if slices.Equal(folders, w.folders) && slices.Equal(folders, watchedFolders(w.notify)) {
		return
	}
	for _, folder := range w.folders {
		if !slices.Contains(folders, folder) {
			_ = w.notify.Remove(folder) // it may not exist
		}
	}
	w.folders = w.folders[:0]
	for _, folder := range folders {
		if w.notify.Add(folder) == nil { // the next poll tries again
			w.folders = append(w.folders, folder)
		}
	}
}

// watchedFolders returns the directories that are still watched. A removed one is not.
func watchedFolders(notify *fsnotify.Watcher) []string {
	list := notify.WatchList()
	slices.Sort(list)
	return list
}

// foldersOf returns the directories whose changes can affect path.
func foldersOf(path string) []string {
	var folders []string
	for range maxLinks {
		folders = append(folders, filepath.Dir(path))
		target, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

func (w *watcher) close() {
	if w.notify != nil {
		_ = w.notify.Close() // nothing was written
	}
}
