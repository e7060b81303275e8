// Package state reads and writes the state files: cached lists, pins and disabled
// entries.
//
// Except for [ReadNamed], it never blocks on pipes and never reads devices. Reads are
// limited to the caller's maximum. All functions are safe for concurrent use.
package state

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"goblin/gateway/atomicfile"
)

// ErrNotRegular is the cause of an error about a directory, pipe, socket or device.
var ErrNotRegular = errors.New("not a regular file")

// Open opens the regular file at path for reading. For other kinds of files it returns an
// error that wraps [ErrNotRegular]. Errors do not contain the path.
func Open(path string) (*os.File, fs.FileInfo, error) {
	// Stat comes first: opening some devices has effects, and opening a socket fails
	// obscurely.
	info, err := os.Stat(path)
	if err == nil {
		err = regular(info)
	} else if errors.Is(err, fs.ErrNotExist) && isDanglingLink(path) {
		err = errors.New("broken symbolic link") // not a missing file
	}
	if err != nil {
		return nil, nil, atomicfile.StripPath(err)
	}
	f, err := os.OpenFile(path, readOnly, 0)
	if err != nil {
		return nil, nil, atomicfile.StripPath(err)
	}
	if info, err = f.Stat(); err == nil {
		err = regular(info) // the file may have been replaced
	}
	if err != nil {
		return nil, nil, errors.Join(atomicfile.StripPath(err), f.Close())
	}
	return f, info, nil
}

// isDanglingLink reports whether the missing file at path, or a folder above it, is a
// symbolic link to nothing. An unmounted disk leaves such links.
func isDanglingLink(path string) bool {
	for {
		if info, err := os.Lstat(path); err == nil {
			_, err := os.Stat(path)
			return info.Mode()&fs.ModeSymlink != 0 && errors.Is(err, fs.ErrNotExist)
		}
		folder := filepath.Dir(path)
		if folder == path {
			return false
		}
		path = folder
	}
}

// Read returns the content of the regular file at path. It fails if the content exceeds
// most bytes. Errors do not contain the path.
func Read(path string, most int64) ([]byte, error) {
	f, info, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > most {
		return nil, tooLarge(most)
	}
	text := make([]byte, 0, min(info.Size(), most)+1)
	text, err = readAll(text, io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, atomicfile.StripPath(err)
	case int64(len(text)) > most:
		return nil, tooLarge(most)
	}
	return text, nil
}

// ReadNamed returns the content of a file that the user named once, which may be a pipe.
// It fails if the content exceeds most bytes.
func ReadNamed(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = &fs.PathError{Op: "read", Path: path, Err: tooLarge(most)}
	}
	return text, err
}

// readAll uses the capacity of text, unlike [io.ReadAll].
func readAll(text []byte, r io.Reader) ([]byte, error) {
	for {
		n, err := r.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		if errors.Is(err, io.EOF) {
			return text, nil
		}
		if err != nil {
			return nil, err
		}
		if len(text) == cap(text) {
			text = append(text, 0)[:len(text)]
		}
	}
}

func tooLarge(most int64) error { return fmt.Errorf("larger than %d bytes", most) }

func regular(info fs.FileInfo) error {
	kind := "special file"
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		kind = "directory"
	case mode&fs.ModeNamedPipe != 0:
		kind = "pipe"
	case mode&fs.ModeSocket != 0:
		kind = "socket"
	case mode&fs.ModeDevice != 0:
		kind = "device"
	}
	return fmt.Errorf("is a %s, %w", kind, ErrNotRegular)
}
