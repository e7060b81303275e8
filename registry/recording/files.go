package recording

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrNotFound means that there is no such file or folder.
var ErrNotFound = errors.New("no such recording")

// Files returns the files of a recording: path itself, or the recordings in a folder in
// the order of their names. Of a file that exists with and without compression, it
// returns the one without: its compression has not finished. Without path, it returns
// ErrNotFound.
func Files(path string) ([]string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", path, ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	all, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	plain := make(map[string]bool)
	var files []string
	for _, e := range all {
		name := e.Name()
		if !e.Type().IsRegular() || strings.HasPrefix(name, ".") {
			continue
		}
		if strings.HasSuffix(name, Suffix) {
			plain[stem(name)] = true
			files = append(files, filepath.Join(path, name))
		} else if strings.HasSuffix(name, CompressedSuffix) {
			files = append(files, filepath.Join(path, name))
		}
	}
	files = slices.DeleteFunc(files, func(f string) bool {
		return strings.HasSuffix(f, CompressedSuffix) && plain[stem(f)]
	})
	slices.SortFunc(files, func(a, b string) int { return strings.Compare(stem(a), stem(b)) })
	return files, nil
}

// stem returns the name of a file without its suffix.
func stem(path string) string {
	name := filepath.Base(path)
	if short, ok := strings.CutSuffix(name, CompressedSuffix); ok {
		return short
	}
	return strings.TrimSuffix(name, Suffix)
}

// errNotRegular refuses pipes and devices: opening one may block or have effects.
var errNotRegular = errors.New("not a regular file")

// openRegular opens a file. If it was compressed or unpacked meanwhile, it opens the
// other form.
func openRegular(path string) (*os.File, error) {
	f, err := openExactly(path)
	if errors.Is(err, fs.ErrNotExist) {
		other := strings.TrimSuffix(path, ".gz")
		if other == path {
			other += ".gz"
		}
		if again, also := openExactly(other); also == nil {
			return again, nil
		}
	}
	return f, err
}

func openExactly(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func noFilesError(path string) error {
	return fmt.Errorf("%s: no recordings; their names end in %s or %s", path, Suffix, CompressedSuffix)
}
