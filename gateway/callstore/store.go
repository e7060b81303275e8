// Package callstore reads and changes the saved calls in one folder.
//
// All names are relative to the folder. Symbolic links that leave it are errors. Files are
// replaced atomically. The number of files, their sizes and their depth are limited. All
// methods block on the disk and are safe for concurrent use; the last of two writers wins.
package callstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"goblin/registry/savedcall"
)

// Limits of a folder.
const (
	MaxFiles  = 5_000
	maxDepth  = 32       // folders
	maxText   = 64 << 20 // bytes of all files
	maxAnswer = 16 << 20 // bytes of one stored answer
)

// watchInterval is the polling interval of [Store.Watch].
const watchInterval = 2 * time.Second

var (
	errNoFolder = errors.New("there is no folder for saved calls")
	errTooMany  = fmt.Errorf("only the first %d files are shown", MaxFiles)
	errText     = errors.New("the files have more than 64 MiB; some are not shown")
	errName     = errors.New("use letters, digits, spaces, - and _, with / for folders")
	errFile     = errors.New("not a regular file inside the folder")
)

// Store is a folder of saved calls. The folder may be missing until the first call is
// saved. Without a folder ("") all methods fail.
type Store struct{ Folder string }

// SavedCalls reads the folder. A missing one has no files.
func (s Store) SavedCalls() (*savedcall.Folder, error) {
	out := &savedcall.Folder{Path: s.Folder}
	root, err := s.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	size := 0
	err = walk(root, func(name string) error {
		file := savedcall.File{Name: name}
		full := filepath.Join(s.Folder, filepath.FromSlash(name))
		text, err := read(root, name, savedcall.MaxFile)
		if size += len(text); size > maxText {
			return errText
		}
		if err == nil {
			file.Call, err = savedcall.Parse(full, text)
		} else {
			err = fmt.Errorf("%s:1: %w", full, err)
		}
		if err != nil {
			file.Mistakes = err.Error()
		}
		_, missing := root.Stat(savedcall.AnswerFile(name))
		file.HasAnswer = missing == nil
		out.Files = append(out.Files, file)
		return nil
	})
	if err != nil {
		out.Problem = err.Error()
	}
	return out, nil
}

// walk calls do for each file of a saved call in the order of their names: the files of a
// folder before its folders.
func walk(root *os.Root, do func(name string) error) error {
	n := 0
	var folder func(at string, depth int) error
	folder = func(at string, depth int) error {
		entries, err := fs.ReadDir(root.FS(), at)
		if err != nil {
			return err
		}
		var below []string
		for _, e := range entries {
			name := path.Join(at, e.Name())
			switch {
			case strings.HasPrefix(e.Name(), "."):
			case e.IsDir():
				below = append(below, name)
			case savedcall.IsFile(e.Name()):
				if n++; n > MaxFiles {
					return errTooMany
				}
				if err := do(name); err != nil {
					return err
				}
			}
		}
		for _, name := range below {
			if depth == maxDepth {
				return fmt.Errorf("%s: more than %d nested folders", name, maxDepth)
			}
			if err := folder(name, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return folder(".", 0)
}

func (s Store) open(create bool) (*os.Root, error) {
	if s.Folder == "" {
		return nil, errNoFolder
	}
	if create {
		if err := os.MkdirAll(s.Folder, 0o755); err != nil {
			return nil, err
		}
	}
	return os.OpenRoot(s.Folder)
}

// read returns the content of a regular file of at most most bytes.
func read(root *os.Root, name string, most int64) ([]byte, error) {
	info, err := root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fs.ErrNotExist
	case err != nil || !info.Mode().IsRegular(): // opening a pipe would block
		return nil, errFile
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		return nil, fmt.Errorf("larger than %d MiB", most>>20)
	}
	return text, err
}

// checkName returns an error unless name can be the name of a saved call.
func checkName(name string) error {
	bad := !fs.ValidPath(name) || !filepath.IsLocal(filepath.FromSlash(name)) || !savedcall.IsFile(name) || len(name) > 240 || strings.Count(name, "/") > maxDepth ||
		strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || strings.ContainsRune(`\:*?"<>|`, r) })
	for part := range strings.SplitSeq(name, "/") {
		bad = bad || strings.HasPrefix(part, ".") || strings.TrimSpace(part) != part || strings.TrimSuffix(part, path.Ext(part)) == ""
	}
	if bad {
		return fmt.Errorf("name %q: %w", name, errName)
	}
	return nil
}

// SaveCall writes a call to a file and returns its path. If the file has the same call,
// its comments stay. With overwrite unset, it returns an error with the cause
// [fs.ErrExist] for an existing file.
func (s Store) SaveCall(name string, c *savedcall.Call, overwrite bool) (where string, err error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	root, err := s.open(true)
	if err != nil {
		return "", err
	}
	defer root.Close()
	text := c.Format()
	old, err := read(root, name, savedcall.MaxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case !overwrite:
		return "", fmt.Errorf("%s: %w", name, fs.ErrExist)
	case errors.Is(err, errFile):
		return "", fmt.Errorf("%s: %w", name, err)
	case err == nil:
		was, _ := savedcall.Parse(name, old) // a file with mistakes is replaced
		if was != nil && was.Kind == c.Kind && was.Name == c.Name {
			if text, err = c.Update(old); err != nil {
				return "", err
			}
		}
	}
	return s.path(name), write(root, name, text, !overwrite)
}

func (s Store) path(name string) string { return filepath.Join(s.Folder, filepath.FromSlash(name)) }

// write atomically replaces a file. With exclusive it fails if the file exists.
func write(root *os.Root, name string, text []byte, exclusive bool) (err error) {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	temp := name
	if !exclusive {
		temp = path.Join(path.Dir(name), ".goblin-"+rand.Text()+".tmp")
	}
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil && !exclusive {
		err = root.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	return nil
}

// StoredAnswer returns the answer that is stored beside a call, or nil.
func (s Store) StoredAnswer(name string) ([]byte, error) {
	root, err := s.open(false)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	text, err := read(root, savedcall.AnswerFile(name), maxAnswer)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// StoreAnswer stores an answer beside a call.
func (s Store) StoreAnswer(name string, answer []byte) error {
	if err := checkName(name); err != nil {
		return err
	}
	root, err := s.open(true)
	if err != nil {
		return err
	}
	defer root.Close()
	return write(root, savedcall.AnswerFile(name), answer, false)
}

// MoveSavedCall renames a call and its stored answer, or copies them if keep is set. It
// returns an error with the cause [fs.ErrExist] for an existing file.
func (s Store) MoveSavedCall(from, to string, keep bool) error {
	if err := checkName(to); err != nil {
		return err
	}
	root, err := s.open(false)
	if err != nil {
		return err
	}
	defer root.Close()
	text, err := read(root, from, savedcall.MaxFile)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if err := write(root, to, text, true); err != nil {
		return fmt.Errorf("%s: %w", to, err)
	}
	answer, err := read(root, savedcall.AnswerFile(from), maxAnswer)
	if err == nil {
		err = write(root, savedcall.AnswerFile(to), answer, false)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil || keep {
		return err
	}
	return remove(root, from)
}

// DeleteSavedCall deletes a call, its stored answer, and folders that are empty then.
func (s Store) DeleteSavedCall(name string) error {
	root, err := s.open(false)
	if err != nil {
		return err
	}
	defer root.Close()
	return remove(root, name)
}

func remove(root *os.Root, name string) error {
	if err := root.Remove(name); err != nil {
		return err
	}
	if err := root.Remove(savedcall.AnswerFile(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		if root.Remove(folder) != nil { // not empty
			break
		}
	}
	return nil
}

// Load returns calls to run, in the order of their folders and names. Their paths lead to
// their files.
func (s Store) Load(names []string) (calls []*savedcall.Call, err error) {
	root, err := s.open(false)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for _, name := range names {
		text, err := read(root, name, savedcall.MaxFile)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		// The runner reads the stored answer by its path.
		if _, err := read(root, savedcall.AnswerFile(name), maxAnswer); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w", savedcall.AnswerFile(name), err)
		}
		c, err := savedcall.Parse(s.path(name), text)
		if err != nil {
			return nil, err
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// Watch calls changed after files were added, removed or written, until ctx ends.
func (s Store) Watch(ctx context.Context, changed func()) {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	seen := s.fingerprint()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if now := s.fingerprint(); now != seen {
			seen = now
			changed()
		}
	}
}

// fingerprint returns a number that changes with names, sizes and times of files.
func (s Store) fingerprint() uint64 {
	h := fnv.New64a()
	root, err := s.open(false)
	if err != nil {
		return 0
	}
	defer root.Close()
	err = walk(root, func(name string) error {
		for _, name := range []string{name, savedcall.AnswerFile(name)} {
			if info, err := root.Stat(name); err == nil {
				fmt.Fprintln(h, name, info.Size(), info.ModTime().UnixNano())
			} else {
				fmt.Fprintln(h, name)
			}
		}
		return nil
	})
	fmt.Fprintln(h, cmp.Or(err, errors.New("")))
	return h.Sum64()
}
