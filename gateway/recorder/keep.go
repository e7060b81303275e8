package recorder

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"goblin/registry/recording"
)

const (
	// idleShare is the share of time in which the compressor rests: 9 of 10.
	idleShare = 9
	// chunk is the number of bytes compressed at once.
	chunk = 256 << 10
	// checkInterval is the time between searches for files that are too old.
	checkInterval = 10 * time.Minute
	// tempAge is the age of a temporary file that a killed writer left.
	tempAge = time.Minute
)

// keeper compresses finished files and removes old ones, in a goroutine of its own.
type keeper struct {
	folder *folder
	limit  int64         // bytes of the folder
	age    time.Duration // maximum age of a file
	size   atomic.Int64  // bytes of the folder
	wake   chan struct{} // capacity one

	current atomic.Pointer[string] // the file being written, or nil
}

// run returns when ctx is done. fail reports an error of a step; later steps still run.
func (k *keeper) run(ctx context.Context, fail func(error)) {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	if err := k.removeLeftovers(); err != nil {
		fail(err)
	}
	for {
		if err := k.retain(time.Now()); err != nil {
			fail(err)
		}
		for {
			name, err := k.nextFile()
			if err == nil && name != "" {
				err = k.compress(name, func(took time.Duration) bool { return k.rest(ctx, name, took) })
			}
			if errors.Is(err, context.Canceled) && ctx.Err() == nil {
				continue // the file was removed meanwhile
			}
			if err != nil && ctx.Err() == nil {
				fail(err)
			}
			if name == "" || err != nil {
				break
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		case <-tick.C:
		}
	}
}

// removeLeftovers removes temporary files and bodies that no file uses.
func (k *keeper) removeLeftovers() error {
	all, err := k.folder.files()
	if err == nil {
		_, err = k.folder.removeUnused(all)
	}
	return err
}

// grow adds bytes to the size of the folder.
func (k *keeper) grow(n int64) {
	if size := k.size.Add(n); size > k.limit && size-n <= k.limit {
		k.signal()
	}
}

func (k *keeper) signal() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// isCurrent reports whether a file may still be written. One after the current file has
// just been created by the writer.
func (k *keeper) isCurrent(name string) bool {
	current := k.current.Load()
	return current != nil && name >= *current
}

// nextFile returns the oldest finished file that is not compressed, or "".
func (k *keeper) nextFile() (string, error) {
	all, err := k.folder.files()
	for _, f := range all {
		if !f.compressed && !k.isCurrent(f.name) {
			return f.name, err
		}
	}
	return "", err
}

// rest pauses after a chunk, so that the compressor takes a tenth of one processor. It
// returns false if the file was removed or ctx is done.
func (k *keeper) rest(ctx context.Context, name string, took time.Duration) bool {
	if k.size.Load() > k.limit {
		_ = k.retain(time.Now()) // run reports the next error
		if _, err := k.folder.root.Lstat(name); err != nil {
			return false
		}
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(idleShare * took):
		return true
	}
}

// compress replaces a file by its compressed form. proceed is called after each chunk
// with the time that it took; if it returns false, the error is [context.Canceled].
func (k *keeper) compress(name string, proceed func(took time.Duration) bool) (err error) {
	root := k.folder.root
	from, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed meanwhile
	}
	if err != nil {
		return err
	}
	defer from.Close()
	done := strings.TrimSuffix(name, recording.Suffix) + recording.CompressedSuffix
	temp := done + tempName
	to, err := root.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = root.Remove(temp) // the first error matters
		}
	}()
	before, after, err := pack(from, to, proceed)
	err = errors.Join(err, to.Close())
	if err != nil {
		return err
	}
	info, err := from.Stat()
	if err != nil {
		return err
	}
	if _, err := root.Lstat(name); err != nil {
		return root.Remove(temp) // the file was removed meanwhile
	}
	if err := errors.Join(root.Chtimes(temp, info.ModTime(), info.ModTime()), root.Rename(temp, done), root.Remove(name)); err != nil {
		return err
	}
	k.size.Add(after - before)
	return nil
}

func pack(from, to *os.File, proceed func(took time.Duration) bool) (before, after int64, err error) {
	z := newGzip(to)
	room := make([]byte, chunk)
	for err == nil {
		start := time.Now()
		var n int
		n, err = io.ReadFull(from, room)
		before += int64(n)
		if _, bad := z.Write(room[:n]); bad != nil {
			return before, 0, bad
		}
		if err == nil && !proceed(time.Since(start)) {
			return before, 0, context.Canceled
		}
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return before, 0, err
	}
	// Synced, because the original is removed next.
	if err := errors.Join(z.Close(), to.Sync()); err != nil {
		return before, 0, err
	}
	info, err := to.Stat()
	if err != nil {
		return before, 0, err
	}
	return before, info.Size(), nil
}

// retain removes finished files that are too old, then the oldest ones until the folder
// fits its limit. It also removes bodies without a file.
func (k *keeper) retain(now time.Time) error {
	all, err := k.folder.files()
	if err != nil {
		return err
	}
	total, err := k.folder.size(all)
	if err != nil {
		return err
	}
	finished := all
	if n := len(all); n > 0 && k.isCurrent(all[n-1].name) {
		finished = all[:n-1]
	}
	removed := 0
	for _, f := range finished {
		if now.Sub(f.end) <= k.age && total <= k.limit {
			break
		}
		if err := k.folder.root.Remove(f.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		removed++
		total -= f.size
		freed, err := k.folder.removeUnused(all[removed:])
		if err != nil {
			return err
		}
		total -= freed.Bytes
	}
	k.size.Store(total)
	return nil
}

// size returns the bytes of recordings and bodies.
func (f *folder) size(all []file) (total int64, err error) {
	for _, one := range all {
		total += one.size
	}
	err = f.bodies(func(b body) { total += b.size })
	return total, err
}

// removeUnused removes the bodies that were last used before the oldest of the remaining
// files.
func (f *folder) removeUnused(remaining []file) (gone Removed, err error) {
	oldest := time.Now().Add(tempAge)
	if len(remaining) > 0 {
		oldest = remaining[0].start
	}
	var failed error
	err = f.bodies(func(b body) {
		if !b.used.Before(oldest) || strings.HasSuffix(b.path, tempName) && time.Since(b.used) < tempAge {
			return
		}
		if err := f.root.Remove(b.path); err != nil {
			failed = errors.Join(failed, err)
			return
		}
		gone.Bodies++
		gone.Bytes += b.size
	})
	return gone, errors.Join(err, failed)
}
