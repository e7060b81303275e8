// Toggles are the tools, prompts, resources and templates that a user disabled, for all
// clients or for one profile.
//
// There is a state file per config. Disabled entries need not exist, and stay disabled in
// case they appear.
//
// All methods are safe for concurrent use. A change is in the file when they return, or
// did not happen. Several processes may share a file: each changes it under a lock and
// reads the changes of others. After the file was written, callers must check for changes
// again.

package state

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"goblin/gateway/atomicfile"
)

const (
	// MaxToggles is the maximum number of disabled entries in one config.
	MaxToggles = 10_000
	// maxName is in bytes.
	maxName = 8 << 10
	// maxToggles is the maximum size of the file, in bytes.
	maxToggles     = 16 << 20
	togglesVersion = 1
)

// ToggleEntry is a disabled entry.
type ToggleEntry struct {
	Profile string    `json:"profile,omitempty"` // "" for all clients
	Server  string    `json:"server"`
	Kind    string    `json:"kind"` // tool, prompt, resource or template
	Name    string    `json:"name"` // the server's own name or URI
	Since   time.Time `json:"since"`
}

// ToggleKinds lists the kinds of entries that can be disabled.
var ToggleKinds = []string{"tool", "prompt", "resource", "template"}

// compare returns 0 for toggles of the same entry.
func compare(a, b ToggleEntry) int {
	return cmp.Or(strings.Compare(a.Profile, b.Profile), strings.Compare(a.Server, b.Server),
		cmp.Compare(slices.Index(ToggleKinds, a.Kind), slices.Index(ToggleKinds, b.Kind)), strings.Compare(a.Name, b.Name))
}

// AllServers stands for all servers in [ToggleStore.Hidden].
const AllServers = "*"

// ToggleStore holds the toggles of one config. Open it with [OpenToggles].
type ToggleStore struct {
	path string // "" keeps them in memory

	mu     sync.Mutex
	read   bool     // content was read from a file
	hidden []string // see [ToggleStore.Hidden]
	content
}

// content is the content of a file. It is immutable.
type content struct {
	disabled []ToggleEntry // sorted
	unknown  []entry       // of kinds unknown to this version
}

type entry struct {
	text json.RawMessage
	line int
	err  error
}

// TogglesPath returns the path of a config's toggles in the state folder. config must be
// the canonical path of the config file.
func TogglesPath(folder, config string) string {
	return atomicfile.ConfigPath(filepath.Join(folder, "off"), config)
}

// OpenToggles reads the toggles at path; a missing file means none. If the file is
// damaged, it returns a *[ToggleFileError], and the store uses the last good copy.
// Without a copy the store hides servers, and [ToggleStore.Set] fails until the user
// fixes or removes the file.
func OpenToggles(path string) (*ToggleStore, error) {
	s := &ToggleStore{path: path}
	return s, s.Refresh()
}

// Disabled returns the disabled entries, sorted. Callers must not modify them.
func (s *ToggleStore) Disabled() []ToggleEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.disabled
}

// Hidden returns the servers whose entries must all be hidden because it is unknown which
// are disabled. It is only [AllServers] if the servers are unknown, too.
func (s *ToggleStore) Hidden() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hidden
}

// Skipped returns a message for each entry of unknown kind. Such entries hide nothing and
// stay in the file.
func (s *ToggleStore) Skipped() (messages []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.unknown {
		messages = append(messages, fmt.Sprintf("%s:%d: %v", s.path, e.line, e.err))
	}
	return messages
}

// Refresh reads changes by other processes. It returns the errors of [OpenToggles]. If
// the last good copy is damaged, too, the data read last stays valid.
func (s *ToggleStore) Refresh() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.load()
}

// UpdateCopy updates the last good copy of the file.
func (s *ToggleStore) UpdateCopy() error {
	if s.path == "" {
		return nil
	}
	return UpdateCopy(s.path, maxToggles, func(text []byte) error {
		_, err := parseToggles(text)
		return err
	})
}

func (s *ToggleStore) load() error {
	if s.path == "" {
		return nil
	}
	found := false
	c, err := Load(s.path, maxToggles, func(text []byte) (content, error) {
		found = true
		return parseToggles(text)
	})
	damaged, isDamaged := errors.AsType[*DamagedError](err)
	switch {
	case !isDamaged, damaged.Restored:
		s.content = c
		s.hidden = nil
		s.read = found // a missing file says nothing about a later one
	case !s.read && !belowDevice(s.path):
		s.hidden = affectedServers(s.path)
	}
	if isDamaged {
		return s.damagedError(damaged)
	}
	return nil
}

func (s *ToggleStore) damagedError(err *DamagedError) error {
	until := "its last good copy is used"
	switch {
	case err.Restored:
	case s.read:
		until = "disabled entries stay disabled"
	case len(s.hidden) == 0:
		until = "nothing is disabled"
	case slices.Contains(s.hidden, AllServers):
		until = "all entries of all servers stay hidden"
	default:
		until = "all entries of these servers stay hidden: " + strings.Join(s.hidden, ", ")
	}
	line := 0
	if at, ok := errors.AsType[*lineError](err.Err); ok {
		line = at.line
	}
	return &ToggleFileError{s.path, line, fmt.Errorf("read disabled entries: %w; remove the file to enable everything, or %s; until then %s", err, err.Repair(), until)}
}

// belowDevice reports whether path is below a device, as with HOME=/dev/null. No file was
// ever written there. An inaccessible folder may contain one.
func belowDevice(path string) bool {
	for folder := filepath.Dir(path); ; folder = filepath.Dir(folder) {
		info, err := os.Stat(folder)
		if err == nil {
			return info.Mode()&fs.ModeDevice != 0
		}
		if !errors.Is(err, syscall.ENOTDIR) || folder == filepath.Dir(folder) {
			return false
		}
	}
}

// affectedServers returns the servers named in a damaged file and its copy. It returns
// [AllServers] unless one of them is complete and only of another version.
func affectedServers(path string) []string {
	var all []string
	for _, read := range []func(string, int64) ([]byte, error){Read, readCopy} {
		var f struct {
			Off []struct {
				Server string `json:"server"`
			} `json:"off"`
		}
		text, err := read(path, maxToggles)
		if err != nil || json.Unmarshal(text, &f) != nil {
			continue
		}
		for _, t := range f.Off {
			if t.Server == "" {
				return []string{AllServers}
			}
			all = append(all, t.Server)
		}
	}
	if len(all) == 0 {
		return []string{AllServers}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Set disables or enables entries. Entries already in that state stay unchanged.
func (s *ToggleStore) Set(on bool, things ...ToggleEntry) error {
	for i := range things {
		if err := things[i].check(); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var was error // of the replaced file
	if s.path != "" {
		unlock, err := atomicfile.Lock(s.path)
		if err != nil {
			return fmt.Errorf("save disabled entries: %w", err)
		}
		defer unlock()
		was = s.load()
	}
	off := slices.Clone(s.disabled)
	for _, t := range things {
		at, is := slices.BinarySearchFunc(off, t, compare)
		switch {
		case on && is:
			off = slices.Delete(off, at, at+1)
		case !on && !is:
			off = slices.Insert(off, at, t)
		}
	}
	if len(off)+len(s.unknown) > MaxToggles {
		return fmt.Errorf("at most %d entries can be disabled; use filters of servers and profiles in the config, which accept globs", MaxToggles)
	}
	if s.path != "" {
		if err := s.write(off, was); err != nil {
			return fmt.Errorf("save disabled entries: %w", err)
		}
	}
	s.disabled = off
	return nil
}

type kindError struct{ kind string }

func (e *kindError) Error() string {
	return fmt.Sprintf("unknown kind %q; known: %s", e.kind, strings.Join(ToggleKinds, ", "))
}

func (t *ToggleEntry) check() error {
	switch {
	case t.Kind != "" && !slices.Contains(ToggleKinds, t.Kind):
		return &kindError{t.Kind}
	case t.Server == "" || t.Name == "":
		return errors.New("server or name missing")
	case t.Kind == "":
		return errors.New("kind missing")
	case len(t.Name)+len(t.Server)+len(t.Profile) > maxName:
		return fmt.Errorf("name longer than %d bytes", maxName)
	}
	return nil
}

// ToggleFileError is a mistake in a file.
type ToggleFileError struct {
	Path string
	Line int // from 1; 0 for the whole file
	Err  error
}

func (e *ToggleFileError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.Path, e.Line, e.Err)
}

func (e *ToggleFileError) Unwrap() error { return e.Err }

// Restored reports whether the last good copy is used.
func (e *ToggleFileError) Restored() bool {
	damaged, ok := errors.AsType[*DamagedError](e.Err)
	return ok && damaged.Restored
}

// lineError is a mistake on a line, 0 for the whole text.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string { return e.err.Error() }

func (e *lineError) Unwrap() error { return e.err }

// ParseToggles parses the text of a file without entries of unknown kinds. line is the
// line of a mistake, 0 for the whole text.
func ParseToggles(text []byte) (off []ToggleEntry, line int, err error) {
	c, err := parseToggles(text)
	if at, ok := errors.AsType[*lineError](err); ok {
		return nil, at.line, at.err
	}
	return c.disabled, 0, err
}

// parseToggles returns errors of type *[lineError].
func parseToggles(text []byte) (c content, err error) {
	var f struct {
		Version *int              `json:"version"`
		Off     []json.RawMessage `json:"off"`
	}
	at := func(offset int64) int {
		return 1 + bytes.Count(text[:min(max(offset, 0), int64(len(text)))], []byte("\n"))
	}
	if err := json.Unmarshal(text, &f); err != nil {
		line := 0
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		switch {
		case errors.As(err, &syntax):
			line = at(syntax.Offset)
		case errors.As(err, &kind):
			line = at(kind.Offset)
		}
		return c, &lineError{line, err}
	}
	switch {
	case f.Version == nil:
		return c, &lineError{0, errors.New("version missing")}
	case *f.Version != togglesVersion:
		return c, &lineError{at(int64(bytes.Index(text, []byte(`"version"`)))), fmt.Errorf("version %d, expected %d: %w", *f.Version, togglesVersion, ErrVersion)}
	case f.Off == nil:
		return c, &lineError{0, errors.New("list \"off\" missing")}
	case len(f.Off) > MaxToggles:
		return c, &lineError{0, fmt.Errorf("%d disabled entries exceed the limit of %d", len(f.Off), MaxToggles)}
	}
	from := 0
	for _, raw := range f.Off {
		from += max(bytes.Index(text[from:], raw), 0)
		line := at(int64(from))
		from += len(raw)
		var t ToggleEntry
		err := json.Unmarshal(raw, &t)
		if err == nil {
			err = t.check()
		}
		switch _, unknown := errors.AsType[*kindError](err); {
		case unknown:
			c.unknown = append(c.unknown, entry{raw, line, err})
		case err != nil:
			return content{}, &lineError{line, err}
		default:
			c.disabled = append(c.disabled, t)
		}
	}
	slices.SortStableFunc(c.disabled, compare)
	c.disabled = slices.CompactFunc(c.disabled, func(a, b ToggleEntry) bool { return compare(a, b) == 0 })
	return c, nil
}

// write keeps entries of unknown kinds. was is the error of the last load.
func (s *ToggleStore) write(off []ToggleEntry, was error) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "{\"version\": %d, \"off\": [", togglesVersion)
	between := "\n  "
	for _, t := range off {
		line, err := json.Marshal(t)
		if err != nil {
			return err
		}
		text.WriteString(between)
		text.Write(line)
		between = ",\n  "
	}
	for _, e := range s.unknown {
		text.WriteString(between)
		text.Write(e.text)
		between = ",\n  "
	}
	text.WriteString("\n]}\n")
	if text.Len() > maxToggles {
		return fmt.Errorf("%s would exceed the limit of %d bytes", s.path, maxToggles)
	}
	return Save(s.path, text.Bytes(), was)
}

// Equal reports whether two toggles are for the same entry and clients.
func (t *ToggleEntry) Equal(o *ToggleEntry) bool { return compare(*t, *o) == 0 }
