// Package wholefile writes files that are there whole or not at all, whatever happens
// meanwhile, and are private to the user. It knows nothing of what is in them.
package wholefile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write makes the file at path what write writes, by another one in its place, with mode
// 0600. If that fails, what was there stays; a process that is killed meanwhile leaves a file
// beside it whose name ends with [Unfinished]. The folder has to be there.
func Write(path string, write func(io.Writer) error) error {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*"+Unfinished) // 0600
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
		var of *fs.PathError
		if errors.As(err, &of) {
			of.Path = path // which users know
		}
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}

// Unfinished is the end of the names of files that are being written.
const Unfinished = ".part"
