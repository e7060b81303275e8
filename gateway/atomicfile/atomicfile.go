// Package atomicfile replaces private files atomically and locks them against other
// processes.
//
// It knows nothing of what is in them.
package atomicfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write makes text the file at path, as [WriteFunc] does.
func Write(path string, text []byte) error {
	return WriteFunc(path, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// WriteFunc makes the file at path what write writes, by another one in its place, with mode
// 0600. If that fails, what was there stays; a process that is killed meanwhile leaves a file
// beside it whose name ends with [TempSuffix]. The folder has to be there.
func WriteFunc(path string, write func(io.Writer) error) error {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*"+TempSuffix) // 0600
	if err != nil {
		return err
	}
	if err = write(temp); err == nil {
		err = temp.Sync() // or a machine that fails now may have an empty one in the place
	}
	err = errors.Join(err, temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		if of, ok := errors.AsType[*fs.PathError](err); ok {
			of.Path = path // which users know
		}
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}

// StripPath takes the path out of an error of the file system.
func StripPath(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// ConfigPath is the path in a folder for what is kept of a config. config is the one path by which
// its file is known.
func ConfigPath(folder, config string) string {
	sum := sha256.Sum256([]byte(config))
	return filepath.Join(folder, hex.EncodeToString(sum[:8])+".json")
}

// TempSuffix is the end of the names of files that are being written.
const TempSuffix = ".part"
