package recorder

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"goblin/registry/recording"
)

const (
	// maxFile is the largest part of a file after its lists, in bytes.
	maxFile = 32 << 20
	// maxEarly is the longest wait for the start of a file that follows another one.
	maxEarly = 10 * time.Millisecond
	// minFile is the smallest one, for a small limit of the folder.
	minFile = 64 << 10
	// maxNameTries is the number of times tried for the name of a new file.
	maxNameTries = 1000
)

// writer writes the current file and the files of bodies.
type writer struct {
	folder *folder
	most   int64 // bytes of one file and its bodies

	file    *os.File
	name    string
	start   time.Time
	size    int64 // complete lines
	head    int64 // of it the header and the lists
	bodies  int64 // bytes of new bodies
	written int64 // bytes since the last call of takeWritten
	used    map[[sha256.Size]byte]bool
}

func newWriter(f *folder, limit int64) *writer {
	return &writer{folder: f, most: min(max(limit/8, minFile), maxFile)}
}

// create starts a file, whose name is after those of all others.
func (w *writer) create(now time.Time) error {
	all, err := w.folder.files()
	if err != nil {
		return err
	}
	start := now.UTC().Truncate(time.Millisecond)
	if len(all) > 0 {
		if last := all[len(all)-1].start; !start.After(last) { // the clock was set back
			start = last.Add(time.Millisecond)
		}
	}
	// Bodies belong to files by time, so the next body must not be older than its file.
	if early := time.Until(start); early < maxEarly {
		time.Sleep(early)
	}
	for range maxNameTries {
		name := start.Format(timeForm) + recording.Suffix
		f, err := w.folder.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			w.file, w.name, w.start = f, name, start
			w.size, w.head, w.bodies, w.used = 0, 0, 0, make(map[[sha256.Size]byte]bool)
			return nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		start = start.Add(time.Millisecond)
	}
	return fmt.Errorf("create a recording in %s: no free name at %s", w.folder.path, start)
}

// write appends complete lines. After an error the file ends with the last one that fits.
func (w *writer) write(lines []byte) error {
	if len(lines) == 0 {
		return nil
	}
	n, err := w.file.Write(lines)
	if err != nil {
		n = bytes.LastIndexByte(lines[:n], '\n') + 1
	}
	w.size += int64(n)
	w.written += int64(n)
	if err != nil {
		err = errors.Join(err, w.cut())
	}
	return err
}

// cut removes an incomplete line.
func (w *writer) cut() error {
	if err := w.file.Truncate(w.size); err != nil {
		return err
	}
	_, err := w.file.Seek(w.size, 0)
	return err
}

// isFull reports whether the next lines belong into another file: by size, or because
// another day began.
func (w *writer) isFull(now time.Time) bool {
	y, m, d := w.start.Local().Date()
	ny, nm, nd := now.Local().Date()
	return w.size-w.head+w.bodies >= w.most || (y != ny || m != nm || d != nd) && now.After(w.start)
}

// takeWritten returns the bytes written since the last call.
func (w *writer) takeWritten() (n int64) {
	n, w.written = w.written, 0
	return n
}

// storeBody writes a masked body to a file named by its hash, unless it exists. It sets
// the time of the file to now, because retention removes bodies by their last use.
func (w *writer) storeBody(text []byte) (*recording.Body, error) {
	sum := sha256.Sum256(text)
	name := hex.EncodeToString(sum[:])
	b := &recording.Body{File: name, Size: len(text)}
	if w.used[sum] {
		return b, nil
	}
	group := recording.BodyFolder + "/" + name[:2]
	path := group + "/" + name
	root := w.folder.root
	now := time.Now()
	if now.Before(w.start) {
		now = w.start
	}
	info, err := root.Lstat(path)
	if err == nil && info.Mode().IsRegular() && info.Size() > 0 { // 0 after a power failure
		err = root.Chtimes(path, now, now)
	} else {
		err = fs.ErrNotExist
	}
	if errors.Is(err, fs.ErrNotExist) { // perhaps removed between both calls
		err = w.writeBody(path, group, text, now)
	}
	if err != nil {
		return nil, err
	}
	w.used[sum] = true
	return b, nil
}

func (w *writer) writeBody(path, group string, text []byte, now time.Time) error {
	root := w.folder.root
	if err := root.MkdirAll(group, 0o700); err != nil {
		return err
	}
	size, err := writeBody(root, path, text, now)
	w.bodies += size
	w.written += size
	return err
}

func writeBody(root *os.Root, path string, text []byte, used time.Time) (size int64, err error) {
	temp := path + tempName
	f, err := root.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	z := newGzip(f)
	if _, err = z.Write(text); err == nil {
		err = z.Close()
	}
	if info, bad := f.Stat(); bad == nil {
		size = info.Size()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Chtimes(temp, used, used)
	}
	if err == nil {
		err = root.Rename(temp, path)
	}
	if err != nil {
		_ = root.Remove(temp) // the first error matters
	}
	return size, err
}

// newGzip returns a compressor for speed: recordings compress well at any level.
func newGzip(f *os.File) *gzip.Writer {
	z, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		panic("recorder: " + err.Error()) // impossible: the level is valid
	}
	return z
}
