// Package atomicfile replaces private files atomically and locks them against other
// processes.
//
// It does not interpret their content.
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

// Write is [WriteFunc] with a text.
func Write(path string, text []byte) error {
	return WriteFunc(path, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// WriteFunc atomically replaces path with the output of write, mode 0600. The directory
// must exist. A killed process may leave a temporary file ending in [TempSuffix].
func WriteFunc(path string, write func(io.Writer) error) error {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*"+TempSuffix) // 0600
	if err != nil {
		return err
	}
	if err = write(temp); err == nil {
		err = temp.Sync() // otherwise a power failure may leave an empty file
	}
	err = errors.Join(err, temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		if of, ok := errors.AsType[*fs.PathError](err); ok {
			of.Path = path // the path that users know
		}
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}

// StripPath removes the path from a file system error.
func StripPath(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// ConfigPath returns the path in folder for the data of a config, given by its canonical
// path.
func ConfigPath(folder, config string) string {
	sum := sha256.Sum256([]byte(config))
	return filepath.Join(folder, hex.EncodeToString(sum[:8])+".json")
}

// TempSuffix is the suffix of temporary files.
const TempSuffix = ".part"
