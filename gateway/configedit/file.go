package configedit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"

	"goblin/gateway/atomicfile"
	"goblin/gateway/config"
	"goblin/gateway/state"
)

const maxFile = 4 << 20 // bytes, the limit of the config package

const bom = "\ufeff"

// File is a config being edited.
type File struct {
	path  string      // as passed by the user
	real  string      // after following links
	mode  fs.FileMode // of the existing file, or 0
	found []byte
	text  []byte // without byte order mark, with \n line ends
	bom   bool
	crlf  bool
	json  bool
	// private removes the permissions of others on Save.
	private bool
	// Path of keys to the servers in a client's file, nil for Goblin's config.
	foreign []string
}

// Server is an entry to add. Keys has config keys (command, args, env, url,
// headers, …). Values are texts, booleans, numbers, []string and map[string]string.
type Server struct {
	Name    string
	Comment string // a line above the entry in YAML, or ""
	Keys    map[string]any
}

// Open reads a config for editing. A missing file counts as empty, and Save creates its
// directory. For a config with mistakes, Open returns a [config.Errors].
func Open(path string) (*File, error) { return open(path, true) }

// OpenBroken is like Open but accepts mistakes, for a config that will be replaced
// completely.
func OpenBroken(path string) (*File, error) { return open(path, false) }

// OpenForeign reads another program's JSON or YAML file, which has servers at a path of
// keys. The meaning of entries is not checked.
func OpenForeign(path string, inJSON bool, section ...string) (*File, error) {
	return load(&File{path: path, json: inJSON, foreign: section}, false)
}

// At sets the path of keys to the servers in a file of OpenForeign, and returns the file.
func (f *File) At(section ...string) *File {
	f.foreign = section
	return f
}

func open(path string, right bool) (*File, error) {
	return load(&File{path: path, json: config.IsJSON(path)}, right)
}

func load(f *File, right bool) (*File, error) {
	path := f.path
	f.real = path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		f.real = real
	} else if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 { // otherwise the file was created just now
		return nil, fmt.Errorf("%s is a broken link", path)
	}
	info, err := os.Stat(f.real)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > f.bound():
		return nil, fmt.Errorf("%s is larger than %d MiB", path, f.bound()>>20)
	}
	f.mode = info.Mode().Perm()
	if f.found, err = state.Read(f.real, f.bound()); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if _, err := config.Parse(path, f.found, os.LookupEnv); err != nil && right {
		return nil, err
	}
	f.text, f.bom = bytes.CutPrefix(f.found, []byte(bom))
	if lines := bytes.Count(f.text, []byte("\n")); lines > 0 && bytes.Count(f.text, []byte("\r\n")) == lines {
		f.text, f.crlf = bytes.ReplaceAll(f.text, []byte("\r\n"), []byte("\n")), true
	}
	if trimmed := bytes.TrimSpace(f.text); f.foreign == nil && len(trimmed) > 0 && trimmed[0] == '{' {
		if _, err := hujson.Standardize(config.EndComment(trimmed)); err == nil {
			f.json = true
		}
	}
	return f, nil
}

// bound is larger for clients' files, since some store history there.
func (f *File) bound() int64 {
	if f.foreign != nil {
		return 4 * maxFile
	}
	return maxFile
}

// Edit changes the text with a function, which gets it without a byte order mark and with
// \n line ends.
func (f *File) Edit(change func(text []byte) ([]byte, error)) error {
	text, err := change(bytes.Clone(f.text))
	if err == nil {
		f.text = text
	}
	return err
}

// RealPath returns the path after following links.
func (f *File) RealPath() string { return f.real }

// IsJSON reports whether the config is JSON.
func (f *File) IsJSON() bool { return f.json }

// SetText replaces the whole text.
func (f *File) SetText(text []byte) { f.text, f.bom, f.crlf = bytes.Clone(text), false, false }

// Template returns the text of a new config.
func Template() []byte { return []byte(newConfigText) }

// Path returns the path that was passed to Open.
func (f *File) Path() string { return f.path }

// IsNew reports whether the file did not exist.
func (f *File) IsNew() bool { return f.mode == 0 }

// Text returns the current text of the whole file.
func (f *File) Text() []byte {
	text := f.text
	if f.crlf {
		text = bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
	}
	if f.bom {
		text = append([]byte(bom), text...)
	}
	return bytes.Clone(text)
}

// Save writes the file atomically. It keeps the mode and follows links. It fails if the
// file changed since Open, is read-only or would have mistakes.
func (f *File) Save() error {
	text := f.Text()
	if bytes.Equal(text, f.found) && !f.IsNew() {
		return nil
	}
	if f.foreign == nil {
		if _, err := config.Parse(f.path, text, os.LookupEnv); err != nil {
			return err
		}
	}
	if f.IsNew() {
		if err := os.MkdirAll(filepath.Dir(f.real), 0o700); err != nil {
			return err
		}
	}
	release, err := lock(filepath.Dir(f.real))
	if err != nil {
		return fmt.Errorf("write %s: %w", f.path, err)
	}
	defer release()
	now, err := state.Read(f.real, f.bound())
	if err != nil && (!f.IsNew() || !errors.Is(err, fs.ErrNotExist)) {
		return fmt.Errorf("read %s: %w", f.path, err)
	}
	if f.IsNew() != (err != nil) || !bytes.Equal(now, f.found) {
		return fmt.Errorf("%s %w", f.path, ErrChanged)
	}
	if err := f.CheckWritable(); err != nil {
		return err
	}
	if err := f.write(text); err != nil {
		return fmt.Errorf("write %s: %w", f.path, err)
	}
	if f.IsNew() {
		f.mode = 0o600
	}
	f.found = text
	return nil
}

// CheckWritable fails if the mode of an existing file forbids changes.
func (f *File) CheckWritable() error {
	if !f.IsNew() && f.mode&0o200 == 0 {
		return fmt.Errorf("%s is read-only (mode %04o); run chmod u+w on it or change its source", f.path, f.mode)
	}
	return nil
}

// write keeps owner, group and mode, also if another process just changed them. If it
// cannot keep them, or the file has an access list, it overwrites the file in place. Users
// may share that file.
func (f *File) write(text []byte) error {
	if f.IsNew() {
		return atomicfile.Write(f.real, text)
	}
	was, err := os.Lstat(f.real)
	switch {
	case err != nil:
		return err
	case !was.Mode().IsRegular(): // another user may have replaced it by a link
		return fmt.Errorf("%s %w", f.path, ErrChanged)
	}
	mode := was.Mode().Perm()
	if f.private {
		mode &= 0o700
	}
	if hasAccessList(f.real) && !f.private {
		return f.overwrite(text, was)
	}
	err = atomicfile.WriteFunc(f.real, func(w io.Writer) error {
		if file, ok := w.(*os.File); ok {
			if err := errors.Join(keepOwner(file, was), file.Chmod(mode)); err != nil {
				return err
			}
		}
		_, err := w.Write(text)
		return err
	})
	if !errors.Is(err, errOwner) {
		return err
	}
	return f.overwrite(text, was)
}

// overwrite replaces the content of the file was. It follows no link and changes no other
// file.
func (f *File) overwrite(text []byte, was fs.FileInfo) error {
	file, err := os.OpenFile(f.real, os.O_WRONLY|noFollow, 0)
	if err != nil {
		return err
	}
	now, err := file.Stat()
	switch {
	case err != nil:
	case !os.SameFile(was, now):
		err = fmt.Errorf("%s %w", f.path, ErrChanged)
	default:
		if _, err = file.Write(text); err == nil {
			err = errors.Join(file.Truncate(int64(len(text))), file.Sync())
		}
	}
	return errors.Join(err, file.Close())
}

var errOwner = errors.New("its owner and group cannot be kept")

// Servers returns the sorted names of the entries.
func (f *File) Servers() ([]string, error) {
	doc, err := f.read(f.text)
	if err != nil {
		return nil, err
	}
	_, servers := f.section(doc)
	return slices.Sorted(maps.Keys(servers)), nil
}

// ErrNone reports an unknown server.
var ErrNone = errors.New("no such server")

// Keys returns the keys of a server, or nil.
func (f *File) Keys(server string) map[string]any {
	doc, err := f.read(f.text)
	if err != nil {
		return nil
	}
	_, servers := f.section(doc)
	keys, _ := servers[server].(map[string]any)
	return keys
}

// SetPrivate removes all permissions of group and others on the next Save.
func (f *File) SetPrivate() {
	f.private = true
}

// ErrTaken reports that the server already exists.
var ErrTaken = errors.New("already exists")

// ErrChanged reports that the file changed since it was read.
var ErrChanged = errors.New("was changed by another program; nothing was written; try again")

// Add appends a server, or returns ErrTaken.
func (f *File) Add(s Server) error {
	return f.change(func(doc map[string]any) error {
		path, servers := f.section(doc)
		if _, ok := servers[s.Name]; ok {
			return fmt.Errorf("server %q %w", s.Name, ErrTaken)
		}
		if servers == nil {
			if path == nil {
				path = f.newSection()
			}
			if servers = madeSection(doc, path); servers == nil {
				return fmt.Errorf("%s is unchanged: %q is not a mapping", f.path, strings.Join(path, "."))
			}
		}
		entry, err := f.plain(s.Keys)
		servers[s.Name] = entry
		return err
	}, func() ([]byte, error) { return f.add(s) })
}

// Remove deletes a server entry, keeping outside comments, or returns ErrNone.
func (f *File) Remove(server string) error {
	return f.change(func(doc map[string]any) error {
		_, servers := f.section(doc)
		if _, ok := servers[server]; !ok {
			return ErrNone
		}
		delete(servers, server)
		return nil
	}, func() ([]byte, error) { return f.remove(server) })
}

// keys returns the entry of a server in the parsed file, or ErrNone.
func (f *File) keys(doc map[string]any, server string) (map[string]any, error) {
	_, servers := f.section(doc)
	entry, ok := servers[server]
	if !ok {
		return nil, ErrNone
	}
	keys, ok := entry.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("server %q has no keys in the file", server)
	}
	return keys, nil
}

// SetDisabled disables or enables a server, or returns ErrNone.
func (f *File) SetDisabled(server string, disabled bool) error {
	return f.change(func(doc map[string]any) error {
		keys, err := f.keys(doc, server)
		if err != nil {
			return err
		}
		delete(keys, "disabled")
		if disabled {
			keys["disabled"] = true
		}
		delete(keys, "enabled")
		delete(keys, "isActive")
		return nil
	}, func() ([]byte, error) { return f.setDisabled(server, disabled) })
}

// change applies an edit to the decoded file and to its text. If the results differ, it
// returns an error and changes nothing.
func (f *File) change(meaning func(map[string]any) error, text func() ([]byte, error)) error {
	wanted, err := f.read(f.text)
	if err != nil {
		return err
	}
	if wanted == nil {
		wanted = make(map[string]any)
	}
	if err := meaning(wanted); err != nil {
		return err
	}
	changed, err := text()
	if err != nil {
		return fmt.Errorf("%s is unchanged: %w", f.path, err)
	}
	got, err := f.read(changed)
	if err != nil || !reflect.DeepEqual(f.tidy(got), f.tidy(wanted)) {
		hand := ""
		if f.foreign == nil {
			hand = " (goblin edit)"
		}
		return fmt.Errorf("%s cannot be edited safely; change it by hand%s", f.path, hand)
	}
	f.text = changed
	return nil
}

func (f *File) read(text []byte) (doc map[string]any, err error) {
	if f.json {
		if len(bytes.TrimSpace(text)) == 0 {
			return nil, nil
		}
		if text, err = hujson.Standardize(config.EndComment(text)); err != nil {
			return nil, err
		}
		return doc, json.Unmarshal(text, &doc)
	}
	return doc, yaml.Unmarshal(text, &doc)
}

func (f *File) sections() [][]string {
	if f.foreign != nil {
		return [][]string{f.foreign}
	}
	return [][]string{{"servers"}, {"mcpServers"}}
}

func (f *File) newSection() []string {
	if f.foreign == nil && f.json {
		return []string{"mcpServers"}
	}
	return f.sections()[0]
}

func (f *File) section(doc map[string]any) (path []string, servers map[string]any) {
	for _, path := range f.sections() {
		outer := doc
		for _, key := range path[:len(path)-1] {
			outer, _ = outer[key].(map[string]any)
		}
		if all, ok := outer[path[len(path)-1]]; ok {
			servers, _ := all.(map[string]any)
			return path, servers
		}
	}
	return nil, nil
}

// madeSection returns the innermost mapping of a path, or nil if another value is in the
// way.
func madeSection(doc map[string]any, path []string) map[string]any {
	for _, key := range path {
		if doc[key] == nil {
			doc[key] = make(map[string]any)
		}
		inner, ok := doc[key].(map[string]any)
		if !ok {
			return nil
		}
		doc = inner
	}
	return doc
}

func (f *File) plain(v map[string]any) (out map[string]any, err error) {
	marshal, unmarshal := yaml.Marshal, yaml.Unmarshal
	if f.json {
		marshal, unmarshal = json.Marshal, json.Unmarshal
	}
	text, err := marshal(v)
	if err == nil {
		err = unmarshal(text, &out)
	}
	return out, err
}

// tidy normalizes equivalent spellings for comparisons.
func (f *File) tidy(doc map[string]any) map[string]any {
	path, servers := f.section(doc)
	if path == nil {
		return doc
	}
	if f.foreign != nil {
		if len(servers) == 0 && len(path) == 1 { // an empty section may be omitted
			doc = maps.Clone(doc)
			delete(doc, path[0])
		}
		return doc
	}
	doc = maps.Clone(doc)
	all := make(map[string]any, len(servers))
	for server, entry := range servers {
		if keys, ok := entry.(map[string]any); ok {
			keys = maps.Clone(keys)
			for _, on := range []string{"enabled", "isActive"} { // other clients' spellings
				if keys[on] == false {
					keys["disabled"] = true
				}
				delete(keys, on)
			}
			if keys["disabled"] == false {
				delete(keys, "disabled")
			}
			entry = keys
		}
		all[server] = entry
	}
	doc[path[0]] = all
	return doc
}
