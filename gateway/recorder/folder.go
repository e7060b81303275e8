package recorder

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"goblin/registry/recording"
)

// Names in a folder, in addition to the recordings and the bodies.
const (
	lockName = ".lock"
	pidName  = ".pid" // of the writer
	keyName  = ".key" // of the hashes in placeholders
	keyLen   = 32     // bytes
	tempName = ".part"
	timeForm = "20060102T150405.000Z" // of names; sorts by time
)

// Folder returns the folder for the recordings of a config. config is its canonical path,
// "" for the demo.
func Folder(stateDir, config string) string {
	name := "demo"
	if config != "" {
		sum := sha256.Sum256([]byte(config))
		name = hex.EncodeToString(sum[:8])
	}
	return filepath.Join(stateDir, "recordings", name)
}

// folder is a private folder of recordings. All access is by root, so that no symbolic
// link leads out of it.
type folder struct {
	path string
	root *os.Root
	lock *flock.Flock // nil without the lock
}

// openFolder creates, checks and locks a folder for writing.
func openFolder(path string) (f *folder, key []byte, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return nil, nil, err
	}
	if err := prepareFolder(path); err != nil {
		return nil, nil, err
	}
	f = &folder{path: path}
	if f.root, err = os.OpenRoot(path); err != nil {
		return nil, nil, err
	}
	if err = f.acquire(); err == nil {
		key, err = f.readKey()
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.close())
	}
	return f, key, nil
}

// prepareFolder refuses a folder that other users may read or change, and one with files
// of other programs only. Only an empty one becomes private, since other programs may rely
// on the mode of their files' folder.
func prepareFolder(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err == nil || !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := checkFolder(path); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	all, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	private := info.Mode().Perm()&0o077 == 0 || runtime.GOOS == "windows" // access lists protect it there
	switch {
	case len(all) > 0 && !private:
		return fmt.Errorf("folder of recordings %s: other users can access it (mode %04o); run \"chmod 700\" on it or choose another folder", path, info.Mode().Perm())
	case len(all) > 0 && !slices.ContainsFunc(all, isOwn):
		return fmt.Errorf("folder of recordings %s: contains other files; choose an empty folder", path)
	case !private:
		return os.Chmod(path, 0o700)
	}
	return nil
}

// isOwn reports whether a recorder creates files of this name.
func isOwn(e fs.DirEntry) bool {
	_, _, ok := parseName(e.Name())
	return ok || e.Name() == lockName
}

func checkFolder(path string) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("folder of recordings %s: is a symbolic link; use the folder that it points to", path)
	case !info.IsDir():
		return fmt.Errorf("folder of recordings %s: is not a folder; choose another one", path)
	}
	if uid, ok := ownerOf(info); ok && uid != os.Getuid() {
		return fmt.Errorf("folder of recordings %s: belongs to another user (uid %d); choose another one", path, uid)
	}
	return nil
}

// acquire locks the folder against other writers.
func (f *folder) acquire() error {
	lock := flock.New(filepath.Join(f.path, lockName), flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	ok, err := lock.TryLock()
	if err != nil {
		return errors.Join(fmt.Errorf("lock %s: %w", lock.Path(), err), lock.Close())
	}
	if !ok {
		return errors.Join(fmt.Errorf("folder of recordings %s: %s records into it; stop that recording or choose another folder", f.path, f.holder()), lock.Close())
	}
	f.lock = lock
	return f.writeSmall(pidName, strconv.AppendInt(nil, int64(os.Getpid()), 10))
}

var errDamaged = errors.New("not a small regular file")

// readSmall reads a file of the key's size at most. Opening a pipe would block.
func (f *folder) readSmall(name string) ([]byte, error) {
	info, err := f.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > keyLen {
		return nil, errDamaged
	}
	return f.root.ReadFile(name)
}

// writeSmall replaces a file. Opening a pipe would block.
func (f *folder) writeSmall(name string, text []byte) error {
	if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return f.root.WriteFile(name, text, 0o600)
}

func (f *folder) holder() string {
	text, err := f.readSmall(pidName)
	pid, bad := strconv.Atoi(string(text))
	switch {
	case err != nil || bad != nil:
		return "another process"
	case pid == os.Getpid():
		return "this process"
	}
	return fmt.Sprintf("another process (pid %d)", pid)
}

// readKey returns the key of the folder, a new one for a new folder.
func (f *folder) readKey() ([]byte, error) {
	key, err := f.readSmall(keyName)
	switch {
	case err == nil && len(key) == keyLen:
		return key, f.root.Chmod(keyName, 0o600)
	case err == nil || errors.Is(err, errDamaged):
		return nil, fmt.Errorf("%s is damaged; remove it, then later recordings hide secrets under other placeholders", filepath.Join(f.path, keyName))
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	key = make([]byte, keyLen)
	rand.Read(key) //nolint:errcheck // never fails
	if err := f.writeSmall(keyName+tempName, key); err != nil {
		return nil, err
	}
	return key, f.root.Rename(keyName+tempName, keyName)
}

// close releases the lock.
func (f *folder) close() error {
	var err error
	if f.lock != nil {
		err = errors.Join(f.root.Remove(pidName), f.lock.Close())
	}
	return errors.Join(err, f.root.Close())
}

// file is a recording in the folder.
type file struct {
	name       string
	start, end time.Time // end is the time of the last write
	size       int64
	compressed bool
}

// parseName returns the start of a recording by its name.
func parseName(name string) (start time.Time, compressed, ok bool) {
	text, compressed := strings.CutSuffix(name, recording.CompressedSuffix)
	if !compressed {
		if text, ok = strings.CutSuffix(name, recording.Suffix); !ok {
			return time.Time{}, false, false
		}
	}
	start, err := time.Parse(timeForm, text)
	return start, compressed, err == nil
}

// files returns the recordings, oldest first.
func (f *folder) files() ([]file, error) {
	all, err := readDir(f.root, ".")
	if err != nil {
		return nil, err
	}
	var found []file
	for _, e := range all {
		start, compressed, ok := parseName(e.Name())
		if !ok || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err == nil { // else it was removed meanwhile
			found = append(found, file{e.Name(), start, info.ModTime(), info.Size(), compressed})
		}
	}
	slices.SortFunc(found, func(a, b file) int { return cmp.Or(a.start.Compare(b.start), cmp.Compare(a.name, b.name)) })
	return found, nil
}

// removeLeftovers removes the temporary files of a killed writer, and files whose
// compressed form is complete.
func (f *folder) removeLeftovers() error {
	all, err := readDir(f.root, ".")
	if err != nil {
		return err
	}
	names := make(map[string]bool)
	for _, e := range all {
		names[e.Name()] = true
	}
	for name := range names {
		text, isTemp := strings.CutSuffix(name, tempName)
		_, compressed, ok := parseName(text)
		if ok && (isTemp || !compressed && names[strings.TrimSuffix(name, recording.Suffix)+recording.CompressedSuffix]) {
			err = errors.Join(err, f.root.Remove(name))
		}
	}
	return err
}

// body is a body in a file of its own.
type body struct {
	path string
	size int64
	used time.Time // by the last recording
}

// bodies calls visit for each body, also for temporary files of a killed writer.
func (f *folder) bodies(visit func(body)) error {
	groups, err := readDir(f.root, recording.BodyFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, group := range groups {
		if !group.IsDir() || len(group.Name()) != 2 {
			continue
		}
		within := recording.BodyFolder + "/" + group.Name()
		all, err := readDir(f.root, within)
		if err != nil {
			return err
		}
		for _, e := range all {
			sum, err := hex.DecodeString(strings.TrimSuffix(e.Name(), tempName))
			if err != nil || len(sum) != sha256.Size || !strings.HasPrefix(e.Name(), group.Name()) || !e.Type().IsRegular() {
				continue // of another program
			}
			if info, err := e.Info(); err == nil {
				visit(body{within + "/" + e.Name(), info.Size(), info.ModTime()})
			}
		}
	}
	return err
}

// readDir returns the entries of a folder, unsorted.
func readDir(root *os.Root, name string) ([]fs.DirEntry, error) {
	d, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	all, err := d.ReadDir(-1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return all, err
}
