package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"goblin/gateway/atomicfile"
	"goblin/gateway/configedit"
	"goblin/gateway/state"
)

const attempts = 10

// Plan plans a change and applies it unless dryRun is true. It plans again, up to 10
// times, if another process changes the file or its record.
func Plan(plan func() (*Change, error), dryRun bool, now func() time.Time) (ch *Change, err error) {
	for range attempts {
		ch, err = plan()
		if err != nil || dryRun {
			return ch, err
		}
		err = ch.Apply(now())
		if !errors.Is(err, configedit.ErrChanged) {
			break
		}
	}
	return ch, err
}

// Apply writes a change. While Goblin is in the file, a copy without it exists next to
// the file. One lock covers the record and the file. The error is a
// [configedit.ErrChanged] if the file or its record changed after planning.
func (ch *Change) Apply(now time.Time) error {
	if ch.IsEmpty() {
		return nil
	}
	unlock, err := ch.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := ch.unchanged(); err != nil {
		return err
	}
	if ch.undo == nil {
		return ch.applyUndo()
	}
	dropCopy, err := ch.copy(now)
	if err != nil {
		return fmt.Errorf("back up %s: %w", ch.File, err)
	}
	forget, err := ch.writeRecord()
	if err == nil {
		err = ch.file.Save()
	}
	if err != nil {
		return errors.Join(err, forget(), dropCopy())
	}
	ch.tidyCopies(ch.first)
	return nil
}

// lock uses one lock for all clients, since several may share a file.
func (ch *Change) lock() (unlock func(), err error) {
	if ch.state == "" {
		return func() {}, nil
	}
	records := filepath.Join(ch.state, "clients")
	if err := os.MkdirAll(records, 0o700); err != nil {
		return nil, fmt.Errorf("save undo information: %w", err)
	}
	unlock, err = atomicfile.Lock(records)
	if err != nil {
		return nil, fmt.Errorf("change %s: %w", ch.File, err)
	}
	return unlock, nil
}

func (ch *Change) unchanged() error {
	now, err := state.Read(ch.file.RealPath(), maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist) && ch.file.IsNew():
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err != nil, ch.file.IsNew(), !bytes.Equal(now, ch.Before):
		return fmt.Errorf("%s %w", ch.File, configedit.ErrChanged)
	}
	if !reflect.DeepEqual(ch.old, readRecord(ch.state, ch.file.RealPath(), ch.Before)) {
		return fmt.Errorf("%s %w", ch.File, configedit.ErrChanged)
	}
	return nil
}

func (ch *Change) applyUndo() error {
	if ch.Deletes {
		if err := os.Remove(ch.file.RealPath()); err != nil {
			return err
		}
	} else if err := ch.file.Save(); err != nil {
		return err
	}
	ch.keptCopy()
	if text, err := readRaw(ch.Backup); err == nil && !bytes.Equal(text, ch.After) {
		return ch.recordCopy() // the user edited the file in between
	}
	ch.Backup, ch.Secrets = "", 0
	ch.tidyCopies(ch.After)
	return ch.removeRecord()
}
