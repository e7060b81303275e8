// Pins are the tool definitions that a user has approved, used to detect changed and
// added tools.
//
// There is a state file per config. A server's tools are pinned automatically when it
// first lists any. Later, each new or changed definition is unapproved until the user
// approves it. The caller decides what that means for clients.
//
// All methods are safe for concurrent use. They write the file before they return; if
// that fails, nothing is approved. Several processes may share a file: each changes it
// under a lock (a file with the suffix ".lock") and reads the changes of others. After
// the file was written, callers must check for changes again.

package state

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"goblin/gateway/atomicfile"
	"goblin/registry/definition"
)

// MaxTools is the maximum number of pinned tools of one server. Their names and hashes
// also have a limit of 4 MiB. Tools over the limits are never approved.
const MaxTools = 20_000

const (
	// maxKept is the maximum size of a definition that is stored with its hash, to show
	// changes, in bytes.
	maxKept = 32 << 10
	// Limits for one server's definitions, and names and hashes, in bytes. They leave
	// space in the file for other servers.
	maxServerKept = 4 << 20
	maxServer     = 4 << 20
	perTool       = 128 // bytes of a tool in the file, except its name and definition
	// maxPins is the maximum size of the file, in bytes.
	maxPins = 256 << 20
	version = 1
)

type pin struct {
	Hash       string          `json:"sha256"`
	Definition json.RawMessage `json:"definition,omitempty"`
}

type file struct {
	Version int                       `json:"version"`
	Servers map[string]map[string]pin `json:"servers"`
}

// PinnedTool is a tool as served to clients. Names are unique.
type PinnedTool struct {
	Name       string
	Definition []byte // raw
}

// Verdict is the result of [PinStore.Check] for a server's tools.
type Verdict struct {
	Changes  []DefinitionChange
	Approved []bool // by tool
	// Unwatched is the number of tools over the limits.
	Unwatched int
}

// DefinitionChange is a tool whose definition is not approved.
type DefinitionChange struct {
	Name string
	New  bool
	// Approved and Offered are canonical JSON, or nil if missing or larger than 32 KiB.
	Approved, Offered []byte
	Hash              string // of Offered
}

// PinStore holds the pins of one config. Open it with [OpenPins].
type PinStore struct {
	path string

	mu      sync.Mutex
	servers map[string]map[string]pin
	unsaved map[string]bool           // servers whose pins could not be written
	offered map[string]map[string]pin // the last lists
	seen    fs.FileInfo               // state of the file when read; nil if missing
	damaged error                     // problem of the file, or nil
}

// OpenPins reads the pins at path; a missing file means none. The file and its folder are
// private to the user. If the file is damaged, the store uses its last good copy and
// [PinStore.Damaged] returns the problem. Without a copy, OpenPins returns an error, and
// the store stays empty until the user fixes or removes the file.
func OpenPins(path string) (*PinStore, error) {
	s := &PinStore{path: path, offered: make(map[string]map[string]pin), unsaved: make(map[string]bool)}
	err := s.load()
	return s, err
}

// Damaged returns an error if the file is damaged, even if the last good copy is used.
func (s *PinStore) Damaged() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.damaged
}

// Refresh reads changes by other processes. It returns the errors of [OpenPins].
func (s *PinStore) Refresh() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refresh()
}

// UpdateCopy updates the last good copy of the file.
func (s *PinStore) UpdateCopy() error {
	return UpdateCopy(s.path, maxPins, func(text []byte) error {
		_, err := parse(text)
		return err
	})
}

// load reads the file or its last good copy. It keeps pins that could not be written, and
// all pins if the file was removed or damaged.
func (s *PinStore) load() error {
	seen, err := os.Stat(s.path) // before reading, so that later writes are noticed
	if errors.Is(err, fs.ErrNotExist) && s.servers != nil && s.damaged == nil {
		return nil
	}
	servers, err := Load(s.path, maxPins, parse)
	s.seen, s.damaged = seen, s.explain(err)
	if s.isUnreadable() {
		if s.servers == nil {
			s.servers = make(map[string]map[string]pin)
		}
		return s.damaged
	}
	if servers == nil {
		servers = make(map[string]map[string]pin)
	}
	for name := range s.unsaved {
		servers[name] = s.servers[name]
	}
	s.servers = servers
	return nil
}

func (s *PinStore) isUnreadable() bool {
	damaged, ok := errors.AsType[*DamagedError](s.damaged)
	return ok && !damaged.Restored
}

func (s *PinStore) explain(err error) error {
	damaged, ok := errors.AsType[*DamagedError](err)
	if !ok {
		return err
	}
	until := "no tool can be approved"
	if damaged.Restored {
		until = "its last good copy is used"
	}
	return fmt.Errorf("read pinned tools: %s: %w; remove the file to pin all tools again, or %s; until then %s", s.path, err, damaged.Repair(), until)
}

// Writable returns an error if the pins cannot be written.
func (s *PinStore) Writable() error {
	unlock, err := atomicfile.Lock(s.path)
	if err != nil {
		return fmt.Errorf("save pinned tools: %w", err)
	}
	unlock()
	return nil
}

func (s *PinStore) refresh() error {
	now, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) && s.damaged != nil { // the user removed it
		return s.load()
	}
	if err == nil && s.damaged != nil { // a fixed owner or mode leaves no other trace
		return s.load()
	}
	if err != nil || s.seen != nil && os.SameFile(now, s.seen) && now.ModTime().Equal(s.seen.ModTime()) && now.Size() == s.seen.Size() {
		return nil
	}
	return s.load()
}

func parse(text []byte) (map[string]map[string]pin, error) {
	var f file
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, err
	}
	switch {
	case f.Version != version:
		return nil, fmt.Errorf("version %d, expected %d: %w", f.Version, version, ErrVersion)
	case f.Servers == nil:
		return nil, errors.New("servers missing")
	}
	return f.Servers, nil
}

// Check compares a server's tools with the pins, and pins all tools of a server without
// pins. With provisional, new pins that cannot be written count until the process exits.
// The verdict is valid even with an error.
func (s *PinStore) Check(server string, tools []PinnedTool, provisional bool) (Verdict, error) {
	offered, hashes := offer(tools)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offered[server] = offered
	err := s.refresh()
	if _, known := s.servers[server]; !known && len(offered) > 0 {
		err = cmp.Or(err, s.save(server, provisional, func(approved map[string]pin, known bool) {
			if !known { // another process may have been first
				maps.Copy(approved, offered)
			}
		}))
	}
	v := Verdict{Changes: s.changes(server), Approved: make([]bool, len(tools))}
	for i, hash := range hashes {
		if hash == "" {
			v.Unwatched++
			continue
		}
		v.Approved[i] = hash == s.servers[server][tools[i].Name].Hash
	}
	return v, err
}

// offer returns the pins of a list up to the limits, and each hash (empty over the
// limits).
func offer(tools []PinnedTool) (offered map[string]pin, hashes []string) {
	offered, hashes = make(map[string]pin, min(len(tools), MaxTools)), make([]string, len(tools))
	size, kept := 0, 0
	for i, tool := range tools {
		if size += len(tool.Name) + perTool; size > maxServer || len(offered) == MaxTools {
			break
		}
		p := pinOf(tool.Definition)
		if kept += len(p.Definition); kept > maxServerKept {
			p.Definition = nil
		}
		offered[tool.Name], hashes[i] = p, p.Hash
	}
	return offered, hashes
}

// ForEach calls f for each stored approved definition, sorted by server and tool.
func (s *PinStore) ForEach(f func(server, tool string, definition []byte)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, server := range slices.Sorted(maps.Keys(s.servers)) {
		tools := s.servers[server]
		for _, tool := range slices.Sorted(maps.Keys(tools)) {
			if definition := tools[tool].Definition; definition != nil {
				f(server, tool, definition)
			}
		}
	}
}

// Digest returns the hash by which a definition is approved.
func Digest(item []byte) string { return definition.Digest(item) }

// Approves reports whether the approved definition of a tool has this digest. It does not
// read changes by other processes.
func (s *PinStore) Approves(server, tool, digest string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return digest != "" && s.servers[server][tool].Hash == digest
}

// Forget drops the last list of a server that was removed from the config, but keeps its
// approvals.
func (s *PinStore) Forget(server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.offered, server)
	delete(s.offered, SkillsName(server))
}

// SkillsName returns the key of a server's pinned skills, which no server can have as its
// name.
func SkillsName(server string) string { return server + "/skills" }

// WasListed reports whether a server's last list contains the name.
func (s *PinStore) WasListed(server, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.offered[server][name]
	return ok
}

// Changes compares a server's last list with the pins.
func (s *PinStore) Changes(server string) ([]DefinitionChange, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.refresh()
	return s.changes(server), err
}

func (s *PinStore) changes(server string) (changes []DefinitionChange) {
	offered, approved := s.offered[server], s.servers[server]
	for _, name := range slices.Sorted(maps.Keys(offered)) {
		was, seen := approved[name]
		if now := offered[name]; !seen || was.Hash != now.Hash {
			changes = append(changes, DefinitionChange{Name: name, New: !seen, Approved: was.Definition, Offered: now.Definition, Hash: now.Hash})
		}
	}
	return changes
}

// ChangedError is the error for a tool that changed since the user saw it.
type ChangedError struct{ Server, Tool string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("tool %q of server %q changed again; review it again", e.Tool, e.Server)
}

// Approve pins tools of a server as last listed, or all if names is empty. seen has the
// hashes that the user saw, by name; nil skips that check. If a definition changed since,
// or an unapproved one is missing in seen, it approves nothing and returns a
// *[ChangedError]. unknown are names that the server does not list; then it approves
// nothing either.
func (s *PinStore) Approve(server string, seen map[string]string, names ...string) (unknown []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	offered := s.offered[server]
	if len(names) == 0 {
		names = slices.Collect(maps.Keys(offered))
	}
	for _, name := range names {
		now, ok := offered[name]
		hash := seen[name]
		switch {
		case !ok:
			unknown = append(unknown, name)
		case hash != "" && hash != now.Hash, hash == "" && seen != nil && now.Hash != s.servers[server][name].Hash:
			return nil, &ChangedError{server, name}
		}
	}
	if len(unknown) > 0 {
		return unknown, nil
	}
	return nil, s.save(server, false, func(approved map[string]pin, _ bool) {
		for _, name := range names {
			approved[name] = offered[name]
		}
	})
}

// save changes the pins of a server in the file and in memory. If the file cannot be
// written, it changes only the memory, and only if provisional is set. change receives
// the current pins, including those of other processes, and whether the server has any.
func (s *PinStore) save(server string, provisional bool, change func(approved map[string]pin, known bool)) error {
	unlock, err := atomicfile.Lock(s.path)
	if err == nil {
		defer unlock()
		err = s.load()
	}
	was, known := s.servers[server]
	now := maps.Clone(was)
	if now == nil {
		now = make(map[string]pin)
	}
	change(now, known)
	s.servers[server] = now
	if err == nil {
		err = s.write()
	}
	switch {
	case err == nil:
		clear(s.unsaved)
		return nil
	case provisional:
		s.unsaved[server] = true
	case known:
		s.servers[server] = was
	default:
		delete(s.servers, server)
	}
	return fmt.Errorf("save pinned tools: %w", err)
}

func (s *PinStore) write() error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false) // or an approved "<" would differ from an offered one
	err := enc.Encode(file{version, s.servers})
	if err == nil && text.Len() > maxPins {
		err = fmt.Errorf("%s would exceed the limit of %d bytes", s.path, maxPins)
	}
	if err != nil {
		return err
	}
	if err := Save(s.path, text.Bytes(), s.damaged); err != nil {
		return err
	}
	s.damaged = nil
	s.seen, _ = os.Stat(s.path)
	return nil
}

// pinOf returns the pin of a definition.
func pinOf(item []byte) pin {
	text := definition.Canonical(item)
	sum := sha256.Sum256(text)
	p := pin{Hash: hex.EncodeToString(sum[:])}
	if len(text) <= maxKept {
		p.Definition = text
	}
	return p
}

// PinsPath returns the path of a config's pins in the state folder. config must be the
// canonical path of the config file.
func PinsPath(folder, config string) string {
	return atomicfile.ConfigPath(filepath.Join(folder, "pins"), config)
}
