// Package switches remembers what a user turned off: tools, prompts, resources and
// templates of servers, for all clients or for those of one profile.
//
// It owns a state file per config. It knows neither the catalog nor clients: what is off
// may not be there, and stays off for when it is.
//
// All methods may be called from any goroutine. What changes is in the file before they
// return, or it did not change. Several processes may use one file: each changes it under
// a lock and sees what the others wrote. Who shows switches has to look again when the
// file was written.
package switches

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"goblin/gateway/state"
	"goblin/gateway/wholefile"
)

const (
	// Max bounds what may be off in one config.
	Max = 10_000
	// maxName bounds a name, in bytes.
	maxName = 8 << 10
	// maxFile bounds the file, in bytes.
	maxFile = 16 << 20
	version = 1
)

// Switch is one thing that is off.
type Switch struct {
	Profile string    `json:"profile,omitempty"` // for whose clients; "" for all
	Server  string    `json:"server"`
	Kind    string    `json:"kind"` // tool, prompt, resource or template
	Name    string    `json:"name"` // the server's own, or its URI
	Since   time.Time `json:"since"`
}

// Kinds lists the things that can be turned off.
var Kinds = []string{"tool", "prompt", "resource", "template"}

// compare orders switches as they stand in the file. Two of one thing are equal.
func compare(a, b Switch) int {
	return cmp.Or(strings.Compare(a.Profile, b.Profile), strings.Compare(a.Server, b.Server),
		cmp.Compare(slices.Index(Kinds, a.Kind), slices.Index(Kinds, b.Kind)), strings.Compare(a.Name, b.Name))
}

// Store is the switches of one config. Make one with [Open].
type Store struct {
	path string // "" keeps them in this process alone

	mu  sync.Mutex
	off []Switch // sorted; never written to
}

// Path is where the switches of a config are kept, in the folder for what is remembered.
// config is the one path by which its file is known.
func Path(state, config string) string {
	return wholefile.For(filepath.Join(state, "off"), config)
}

// Open reads the switches at path; a file that is not there has none. The error names the
// file, and where in it the mistake is; then nothing is off, and the file stays as it is
// until somebody mends or removes it: turning something off or on fails.
func Open(path string) (*Store, error) {
	s := &Store{path: path}
	return s, s.Refresh()
}

// Off returns the switches that are off, sorted. It is not to be changed.
func (s *Store) Off() []Switch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.off
}

// Refresh takes over what other processes have written. The error is that of [Open]; then
// all stays as it was.
func (s *Store) Refresh() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.load()
}

func (s *Store) load() error {
	if s.path == "" {
		return nil
	}
	off, err := read(s.path)
	if err == nil {
		s.off = off
	}
	return err
}

// Set turns things off or on. Those that are so already stay as they are.
func (s *Store) Set(on bool, things ...Switch) error {
	for i := range things {
		if err := things[i].check(); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.path != "" {
		unlock, err := wholefile.Lock(s.path)
		if err != nil {
			return fmt.Errorf("save what is off: %w", err)
		}
		defer unlock()
		if err := s.load(); err != nil {
			return err
		}
	}
	off := slices.Clone(s.off)
	for _, t := range things {
		at, is := slices.BinarySearchFunc(off, t, compare)
		switch {
		case on && is:
			off = slices.Delete(off, at, at+1)
		case !on && !is:
			off = slices.Insert(off, at, t)
		}
	}
	if len(off) > Max {
		return fmt.Errorf("at most %d things can be off; the filters of servers and profiles in the config take globs", Max)
	}
	if s.path != "" {
		if err := write(s.path, off); err != nil {
			return fmt.Errorf("save what is off: %w", err)
		}
	}
	s.off = off
	return nil
}

func (t *Switch) check() error {
	switch {
	case t.Server == "" || t.Name == "":
		return errors.New("it has no server or no name")
	case !slices.Contains(Kinds, t.Kind):
		return fmt.Errorf("its kind is %q; known are %s", t.Kind, strings.Join(Kinds, ", "))
	case len(t.Name)+len(t.Server)+len(t.Profile) > maxName:
		return fmt.Errorf("its name is longer than %d bytes", maxName)
	}
	return nil
}

func read(path string) ([]Switch, error) {
	text, err := state.Read(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	line := 0
	var off []Switch
	if err == nil {
		off, line, err = Parse(text)
	}
	if err != nil {
		return nil, &FileError{path, line, fmt.Errorf("what is off cannot be read: %w; remove the file to turn everything on", err)}
	}
	return off, nil
}

// FileError is a mistake in a file.
type FileError struct {
	Path string
	Line int // from 1; 0: the file as a whole
	Err  error
}

func (e *FileError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.Path, e.Line, e.Err)
}

func (e *FileError) Unwrap() error { return e.Err }

// Parse reads the text of a file. Line is where a mistake is, 0 for anywhere.
func Parse(text []byte) (off []Switch, line int, err error) {
	var f struct {
		Version *int              `json:"version"`
		Off     []json.RawMessage `json:"off"`
	}
	at := func(offset int64) int {
		return 1 + bytes.Count(text[:min(max(offset, 0), int64(len(text)))], []byte("\n"))
	}
	if err := json.Unmarshal(text, &f); err != nil {
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		switch {
		case errors.As(err, &syntax):
			line = at(syntax.Offset)
		case errors.As(err, &kind):
			line = at(kind.Offset)
		}
		return nil, line, err
	}
	switch {
	case f.Version == nil:
		return nil, 0, errors.New("it has no version")
	case *f.Version != version:
		return nil, at(int64(bytes.Index(text, []byte(`"version"`)))), fmt.Errorf("it has version %d, not %d: another Goblin wrote it", *f.Version, version)
	case len(f.Off) > Max:
		return nil, 0, fmt.Errorf("it turns %d things off; %d are the most", len(f.Off), Max)
	}
	from := 0
	for _, raw := range f.Off {
		from += max(bytes.Index(text[from:], raw), 0)
		var t Switch
		err := json.Unmarshal(raw, &t)
		if err == nil {
			err = t.check()
		}
		if err != nil {
			return nil, at(int64(from)), err
		}
		from += len(raw)
		off = append(off, t)
	}
	slices.SortStableFunc(off, compare)
	return slices.CompactFunc(off, func(a, b Switch) bool { return compare(a, b) == 0 }), 0, nil
}

// write makes the file what is off, a thing a line, by another one in its place.
func write(path string, off []Switch) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "{\"version\": %d, \"off\": [", version)
	for i, t := range off {
		line, err := json.Marshal(t)
		if err != nil {
			return err
		}
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString("\n  ")
		text.Write(line)
	}
	text.WriteString("\n]}\n")
	return wholefile.Write(path, text.Bytes())
}

// Same reports whether two are of one thing and for the same clients.
func (t *Switch) Same(o *Switch) bool { return compare(*t, *o) == 0 }
