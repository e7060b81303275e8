// Package filewatch reports when a file may have changed.
//
// It owns the notices of the system and what they miss; it never reads the file, and knows
// nothing of what is in it.
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
	// settleTime is how long a file must stay unchanged before it counts as changed: programs write in steps.
	settleTime = 100 * time.Millisecond
	// maxSettleTime bounds that for a file that keeps changing.
	maxSettleTime = 2 * time.Second
	// pollInterval is how often the file is looked at without a notice. Some file
	// systems give none, and none come of a folder that was not there.
	pollInterval = 2 * time.Second
	// maxLinks is how many symbolic links a path may lead through.
	maxLinks = 40
)

// File calls changed when another content may stand at path than when it was
// read, or may be read again: the file was written, truncated, replaced, removed
// or made, its mode or whether it can be read has changed, or a symbolic link on
// the way to it leads elsewhere. read is the file as it was read; nil counts
// from the call of File on. It blocks until ctx ends, and changed, which is
// never called twice at once, has returned.
//
// The folders are watched, not the file, which editors and deployments replace
// by another one.
func File(ctx context.Context, path string, read fs.FileInfo, changed func()) {
	w := &watcher{path: path}
	defer w.close()
	w.updateFolders()
	seen := w.state()
	if before := (state{read, seen.readable}); read != nil && !before.same(seen) {
		changed()
	}
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	timer := time.NewTimer(0)
	<-timer.C
	var first time.Time // of the notices that changed was not called for; zero for none
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

// Latest is [File] for a path, and then for the one that came last from paths; there is
// none while that is "". changed is called for each that comes, too: another content may
// stand there by now than was read.
func Latest(ctx context.Context, path string, paths <-chan string, changed func()) {
	for came := false; ; came = true {
		one, stop := context.WithCancel(ctx)
		var watch sync.WaitGroup
		if path != "" {
			watch.Go(func() {
				read, _ := os.Stat(path) // nil where there is none yet
				if came {
					changed()
				}
				File(one, path, read, changed)
			})
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

// state identifies a version of a file without reading it.
type state struct {
	info     fs.FileInfo // nil when there is none
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
	notify  *fsnotify.Watcher // nil where the system has none to give
	folders []string          // watched, sorted
}

func (w *watcher) state() state {
	info, err := os.Stat(w.path)
	if err != nil {
		if info, err = os.Lstat(w.path); err != nil {
			return state{}
		}
		return state{info, false} // a link that leads nowhere is not a missing file
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for a writer
		return state{info, true}
	}
	f, _, err := statefile.Open(w.path)
	if err != nil {
		return state{info, false}
	}
	_ = f.Close() // nothing was read
	return state{info, true}
}

// events are the notices; nil blocks for ever.
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

// updateFolders watches the folders of the file, and of each link on the way to it, as they are now.
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
			_ = w.notify.Remove(folder) // it may be gone
		}
	}
	w.folders = w.folders[:0]
	for _, folder := range folders {
		if w.notify.Add(folder) == nil { // the next look tries again
			w.folders = append(w.folders, folder)
		}
	}
}

// watchedFolders are the folders that are watched still: one that was removed is not.
func watchedFolders(notify *fsnotify.Watcher) []string {
	list := notify.WatchList()
	slices.Sort(list)
	return list
}

// foldersOf are the folders in which a change can lead path to another file.
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
