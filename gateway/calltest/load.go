package calltest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"goblin/gateway/state"
	"goblin/registry/savedcall"
)

// Limits of one run.
const (
	maxCalls  = 10_000
	maxDepth  = 32 // folders
	maxStored = 128 << 20
)

// ErrNone is the cause of an error about folders without saved calls.
var ErrNone = errors.New("no saved calls")

// Load reads the calls of files and folders, ordered by folder and name. It ignores hidden
// files, folders that are symbolic links, and files of other types in folders. The error
// joins all mistakes in files. An error with the cause [fs.ErrNotExist] or [ErrNone] is
// about a path itself.
func Load(paths ...string) (calls []*savedcall.Call, err error) {
	var files []string
	for _, path := range paths {
		found, err := find(path)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	slices.SortFunc(files, compareFiles)
	seen := map[string]bool{}
	var mistakes []error
	for _, file := range files {
		key := identity(file)
		if seen[key] {
			continue
		}
		seen[key] = true
		text, err := state.Read(file, savedcall.MaxFile)
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("%s: %w", file, err))
			continue
		}
		call, err := savedcall.Parse(file, text)
		if err != nil {
			mistakes = append(mistakes, err)
			continue
		}
		calls = append(calls, call)
	}
	return calls, errors.Join(mistakes...)
}

// compareFiles orders files by folder and then by name.
func compareFiles(a, b string) int {
	if c := strings.Compare(filepath.Dir(a), filepath.Dir(b)); c != 0 {
		return c
	}
	return strings.Compare(filepath.Base(a), filepath.Base(b))
}

// identity returns a text that all spellings of a path share.
func identity(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// find returns the files of saved calls at a path, which may be one.
func find(root string) (files []string, err error) {
	root = filepath.Clean(root)
	info, err := os.Stat(root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: %w", root, fs.ErrNotExist)
	case err != nil:
		return nil, err
	case !info.IsDir() && !savedcall.IsFile(root):
		return nil, fmt.Errorf("%s: %w; files of saved calls end in .yaml", root, ErrNone)
	case !info.IsDir():
		return []string{root}, nil
	}
	// The separator makes WalkDir follow a link that the user named.
	err = filepath.WalkDir(root+string(filepath.Separator), func(path string, e fs.DirEntry, err error) error {
		path = filepath.Clean(path)
		isRoot := path == root
		switch {
		case err != nil:
			return err
		case !isRoot && strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
		case e.IsDir():
			if within, err := filepath.Rel(root, path); err == nil && strings.Count(within, string(filepath.Separator)) >= maxDepth {
				return fmt.Errorf("%s: more than %d nested folders", path, maxDepth)
			}
		case savedcall.IsFile(path) && !isFolder(path, e):
			if err := checkLink(path, root); err != nil {
				return err
			}
			if files = append(files, path); len(files) > maxCalls {
				return fmt.Errorf("%s: more than %d saved calls", root, maxCalls)
			}
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: %w; files of saved calls end in .yaml", root, ErrNone)
	}
	return files, err
}

// isFolder reports whether a symbolic link leads to a folder. Such links could form loops.
func isFolder(path string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// storedAnswer returns the stored answer of a call, or nil if there is none.
func storedAnswer(call *savedcall.Call) ([]byte, error) {
	if !slices.ContainsFunc(call.Expect, func(c savedcall.Check) bool { return c.Kind == savedcall.CheckSame }) {
		return nil, nil
	}
	if err := checkLink(savedcall.AnswerFile(call.Path), filepath.Dir(call.Path)); err != nil {
		return nil, err
	}
	text, err := state.Read(savedcall.AnswerFile(call.Path), maxStored)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", savedcall.AnswerFile(call.Path), err)
	}
	return text, err
}

// checkLink refuses a symbolic link that leads out of a folder. An untrusted repository may
// contain one, and runs read and replace the file.
func checkLink(path, folder string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil //nolint:nilerr // a missing file, or reading it reports the error
	}
	folder, err = filepath.EvalSymlinks(folder)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if within, err := filepath.Rel(folder, real); err != nil || !filepath.IsLocal(within) {
		return fmt.Errorf("%s: is a link out of its folder; replace it by a file", path)
	}
	return nil
}
