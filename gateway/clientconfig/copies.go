package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"time"

	"goblin/gateway/state"
)

// Backup copies a file's text to a new file next to it, named by the time.
func Backup(path string, text []byte, mode fs.FileMode, now time.Time) (string, error) {
	for i := 1; ; i++ {
		name := path + ".goblin-" + now.Format("20060102-150405")
		if i > 1 {
			name += fmt.Sprintf("-%d", i)
		}
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode|0o200)
		if errors.Is(err, fs.ErrExist) && i < 1000 {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(text)
		return name, errors.Join(err, f.Close())
	}
}

var copyName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\.goblin-[0-9]{8}-[0-9]{6}(?:-[0-9]{1,3})?$`)
})

// copies includes those by older versions of Goblin.
func copies(path string) (list []string) {
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil // unreadable: no copy can be removed either
	}
	for _, file := range files {
		if tail, ok := strings.CutPrefix(file.Name(), filepath.Base(path)); ok && file.Type().IsRegular() && copyName().MatchString(tail) {
			list = append(list, filepath.Join(filepath.Dir(path), file.Name()))
		}
	}
	return list
}

// RemoveCopies removes the copies of a file except one. It ignores errors.
func RemoveCopies(path, but string) {
	for _, name := range copies(path) {
		if name != but {
			_ = os.Remove(name)
		}
	}
}

func readRaw(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return nil, errors.New("not a backup")
	}
	return state.Read(path, maxFile)
}

// isCopy reports whether a recorded path is a copy of the file.
func isCopy(path, of string) bool {
	tail, ok := strings.CutPrefix(path, of)
	return ok && copyName().MatchString(tail)
}

// copy creates the copy of the file without Goblin, unless the previous copy is equal.
// drop removes it again.
func (ch *Change) copy(now time.Time) (drop func() error, err error) {
	nothing := func() error { return nil }
	if ch.file.IsNew() {
		return nothing, nil
	}
	ch.keptCopy()
	if text, err := readRaw(ch.Backup); err == nil && bytes.Equal(text, ch.first) {
		return nothing, nil
	}
	ch.Backup, err = Backup(ch.file.RealPath(), ch.first, 0o600, now)
	if err != nil {
		return nothing, err
	}
	ch.Secrets = ch.secretsIn(ch.Backup)
	return func() error {
		made := ch.Backup
		ch.Backup, ch.Secrets = "", 0
		return os.Remove(made)
	}, nil
}

func (ch *Change) keptCopy() {
	if ch.old == nil || !isCopy(ch.old.Backup, ch.file.RealPath()) {
		return
	}
	if _, err := readRaw(ch.old.Backup); err == nil {
		ch.Backup, ch.Secrets = ch.old.Backup, ch.secretsIn(ch.old.Backup)
	}
}

func (ch *Change) secretsIn(path string) (n int) {
	f := read(&ch.machine, ch.client, place{path: path, dialect: ch.place.dialect})
	for i := range f.Servers {
		_, found := f.Servers[i].SplitSecrets(func(wanted, _ string) string { return wanted })
		n += len(found)
	}
	return n
}

// tidyCopies removes the copy of the previous change and all copies that differ from text
// at most in Goblin's entry.
func (ch *Change) tidyCopies(text []byte) {
	for _, path := range copies(ch.file.RealPath()) {
		if path == ch.Backup {
			continue
		}
		mine := ch.old != nil && ch.old.Backup == path && ch.undo != nil
		if old, err := readRaw(path); err == nil && (mine || ch.place.dialect.sameBut(old, text)) {
			_ = os.Remove(path) // a remaining copy is visible to the user
		}
	}
}

// sameBut reports whether two texts differ at most in Goblin's entry.
func (d *dialect) sameBut(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var doc [2]map[string]any
	for i, text := range [][]byte{a, b} {
		var err error
		if doc[i], err = decoded(d, text); err != nil {
			return false
		}
		form := d.formOf(doc[i])
		if entry, there := form.goblin(doc[i]); there && isOwnEntry(entry) {
			form.delete(doc[i], EntryName)
		}
		for _, form := range d.forms() {
			form.tidy(doc[i])
		}
	}
	return reflect.DeepEqual(doc[0], doc[1])
}
