package state

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"goblin/gateway/atomicfile"
)

// Files that restrict clients have a last good copy, so that a damaged file does not lift
// the restrictions. A missing file means no restrictions: the user removed it.
const (
	copySuffix    = ".good"
	damagedSuffix = ".damaged"
)

// ErrVersion is the cause of an error about a file of another version. Such a file is
// valid for the Goblin that wrote it, so [Save] does not replace it.
var ErrVersion = errors.New("written by another version of Goblin")

// DamagedError is the error for an existing but unusable file. Its text does not contain
// the path.
type DamagedError struct {
	Err      error
	Restored bool // the last good copy was used instead
}

func (e *DamagedError) Error() string { return e.Err.Error() }

func (e *DamagedError) Unwrap() error { return e.Err }

// Repair returns how the user can fix the file without removing it.
func (e *DamagedError) Repair() string {
	if errors.Is(e.Err, fs.ErrPermission) {
		return "give this user access to it"
	}
	return "fix it"
}

// Load parses the file at path, or its last good copy if the file is damaged. It returns
// a *[DamagedError] even if it used the copy. For a missing file it returns the zero
// value.
func Load[T any](path string, most int64, parse func(text []byte) (T, error)) (value T, err error) {
	value, err = load(path, most, parse)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return value, nil
	}
	damaged := &DamagedError{Err: err}
	if value, err = load(path+copySuffix, most, parse); err == nil {
		damaged.Restored = true
	}
	return value, damaged
}

func load[T any](path string, most int64, parse func(text []byte) (T, error)) (value T, err error) {
	text, err := Read(path, most)
	if err == nil {
		value, err = parse(text)
	}
	if err != nil {
		var none T
		return none, err
	}
	return value, nil
}

// readCopy returns the last good copy of the file at path, damaged or not.
func readCopy(path string, most int64) ([]byte, error) { return Read(path+copySuffix, most) }

// Save replaces the file at path and its last good copy. was is the error of [Load]: a
// damaged file is kept with the suffix ".damaged". Save returns was without changes if
// the file has another version or could not be restored. The caller must hold the lock of
// the file.
func Save(path string, text []byte, was error) error {
	damaged, ok := errors.AsType[*DamagedError](was)
	switch {
	case !ok:
		// The copy comes first: a full disk then leaves the file unchanged.
		if err := saveCopy(path, text); err != nil {
			return err
		}
		err := atomicfile.Write(path, text)
		if err != nil {
			_ = os.Remove(path + copySuffix) // it has the rejected text; UpdateCopy writes it again
		}
		return err
	case !damaged.Restored, errors.Is(was, ErrVersion):
		return was
	}
	if err := keepDamaged(path); err != nil {
		return err
	}
	if err := atomicfile.Write(path, text); err != nil {
		return err // the copy is the only good version
	}
	return saveCopy(path, text)
}

func saveCopy(path string, text []byte) error {
	if err := atomicfile.Write(path+copySuffix, text); err != nil {
		return fmt.Errorf("write the last good copy: %w; free disk space or remove %s", err, path+copySuffix)
	}
	return nil
}

// keepDamaged links a damaged file to a second name. The file itself stays until it is
// replaced, because a missing one means no restrictions.
func keepDamaged(path string) error {
	aside := path + damagedSuffix
	err := os.Remove(aside)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.Link(path, aside)
	}
	if err != nil {
		return fmt.Errorf("keep the damaged file as %s: %w; move the file away manually", aside, atomicfile.StripPath(err))
	}
	return nil
}

// UpdateCopy updates the last good copy from the file at path if check accepts its text.
// It removes the copy of a missing file, and keeps the copy of a damaged one.
func UpdateCopy(path string, most int64, check func(text []byte) error) error {
	if copyOf(path, most, check) == nil {
		return nil // the usual case needs no lock
	}
	unlock, err := atomicfile.Lock(path)
	if err != nil {
		return err
	}
	defer unlock()
	if update := copyOf(path, most, check); update != nil { // another process may have updated it
		return update()
	}
	return nil
}

// copyOf returns nil if the copy is up to date.
func copyOf(path string, most int64, check func(text []byte) error) (update func() error) {
	text, err := Read(path, most)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(path + copySuffix); err != nil {
			return nil
		}
		return func() error { return os.Remove(path + copySuffix) }
	case err != nil:
		return nil // Load reports it
	}
	if old, err := readCopy(path, most); err == nil && bytes.Equal(old, text) || check(text) != nil {
		return nil
	}
	return func() error { return saveCopy(path, text) }
}
