// Pins remembers the tool definitions that a user has seen, so that a
// server that changes one later, or slips one in, is found out.
//
// It owns a state file per config and the comparison. A server's tools are
// pinned when it first lists any: what a user connects to for the first time,
// he trusts. From then on every definition that is new or another one waits
// until it is approved; what becomes of it meanwhile is not this package's
// business. It knows neither clients nor connections.
//
// All methods may be called from any goroutine. They write the file before they
// return; failing to is an error, and nothing is approved by it. Several processes may use one file: each changes it
// under a lock (beside it, with ".lock" for its ending) and sees what the others
// wrote. Who shows changes has to look again when the file was written.

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
	"strings"
	"sync"

	"goblin/gateway/atomicfile"
	"goblin/registry/rawjson"
)

// MaxTools bounds what is pinned of one server, and so do 4 MiB of names and
// hashes. Tools beyond that are not watched, and never approved.
const MaxTools = 20_000

const (
	// maxKept is the size of a definition, in bytes, up to which it is kept
	// beside its hash, to show what changed.
	maxKept = 32 << 10
	// maxServerKept bounds the definitions that are kept of one server, and
	// maxServer their names and hashes, in bytes, so that none can make the file
	// too large for the others.
	maxServerKept = 4 << 20
	maxServer     = 4 << 20
	perTool       = 128 // bytes of a tool in the file, beside its name and definition
	// maxSorted is the size of a definition, in bytes, up to which the order of
	// the keys inside its members does not count.
	maxSorted = 1 << 20
	// maxPins bounds the file.
	maxPins = 256 << 20
	version = 1
)

// pin is an approved definition.
type pin struct {
	Hash       string          `json:"sha256"`
	Definition json.RawMessage `json:"definition,omitempty"`
}

// file is the state file.
type file struct {
	Version int                       `json:"version"`
	Servers map[string]map[string]pin `json:"servers"`
}

// PinnedTool is a tool as clients would get it: names are those by which it is served,
// so no two are equal.
type PinnedTool struct {
	Name       string
	Definition []byte // raw
}

// Verdict is the result of [PinStore.Check] on the tools of a server.
type Verdict struct {
	Changes  []DefinitionChange
	Approved []bool // for each tool, whether its definition is the approved one
	// Unwatched is how many tools are beyond the bounds.
	Unwatched int
}

// DefinitionChange is a tool whose definition is not the approved one.
type DefinitionChange struct {
	Name string
	New  bool
	// Approved and Offered are canonical JSON; nil for none, and for one that
	// is larger than 32 KiB.
	Approved, Offered []byte
	Hash              string // of what is offered
}

// PinStore is the pins of one config. Make one with [Open].
type PinStore struct {
	path string

	mu      sync.Mutex
	servers map[string]map[string]pin
	unsaved map[string]bool           // servers whose pins could not be written
	offered map[string]map[string]pin // as listed last
	seen    fs.FileInfo               // of the file that servers were read from; nil for none
	damaged error                     // what is wrong with that; nil for nothing
}

// OpenPins reads the pins at path; a missing file has none. The file and its folder are private
// to the user. If the file is damaged, its last good copy counts, and [PinStore.Damaged] says so.
// The error is that there is no such copy either. Then the store has no pins, and gets none
// until the user repairs or removes the file.
func OpenPins(path string) (*PinStore, error) {
	s := &PinStore{path: path, offered: make(map[string]map[string]pin), unsaved: make(map[string]bool)}
	err := s.load()
	return s, err
}

// Damaged returns an error if the file is damaged, whether its last good copy counts or not.
func (s *PinStore) Damaged() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.damaged
}

// Refresh takes over what other processes have written. The error is that of [Open].
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

// load reads the file, or its last good copy. What is known only here stays: because it
// could not be written, or because the file was removed or damaged.
func (s *PinStore) load() error {
	seen, err := os.Stat(s.path) // before it is read: what is written meanwhile is read again
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

// isUnreadable reports whether neither the file nor its last good copy could be read.
func (s *PinStore) isUnreadable() bool {
	damaged, ok := errors.AsType[*DamagedError](s.damaged)
	return ok && !damaged.Restored
}

// explain adds to the error about a damaged file what counts until it is repaired.
func (s *PinStore) explain(err error) error {
	damaged, ok := errors.AsType[*DamagedError](err)
	if !ok {
		return err
	}
	until := "no tool can be approved"
	if damaged.Restored {
		until = "its last good copy counts"
	}
	return fmt.Errorf("read pinned tools: %s: %w; remove the file to pin all tools anew, or %s; until then %s", s.path, err, damaged.Repair(), until)
}

// Writable fails when the pins cannot be written.
func (s *PinStore) Writable() error {
	unlock, err := atomicfile.Lock(s.path)
	if err != nil {
		return fmt.Errorf("pinned tools could not be saved: %w", err)
	}
	unlock()
	return nil
}

// refresh takes over what other processes have written.
func (s *PinStore) refresh() error {
	now, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) && s.damaged != nil { // the user removed it
		return s.load()
	}
	if err == nil && s.damaged != nil { // a repair of its owner or mode leaves no other trace
		return s.load()
	}
	if err != nil || s.seen != nil && os.SameFile(now, s.seen) && now.ModTime().Equal(s.seen.ModTime()) && now.Size() == s.seen.Size() {
		return nil
	}
	return s.load()
}

// parse reads the text of a file.
func parse(text []byte) (map[string]map[string]pin, error) {
	var f file
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, err
	}
	switch {
	case f.Version != version:
		return nil, fmt.Errorf("it has version %d, not %d: %w", f.Version, version, ErrVersion)
	case f.Servers == nil:
		return nil, errors.New("it has no servers")
	}
	return f.Servers, nil
}

// Check compares a server's tools with what is pinned. A server without pins gets
// these. If they cannot be written, provisional says that they count nevertheless
// until the end of the process. The verdict counts even if there is an error.
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

// offer makes the pins of a list, as far as there is room, and tells the hash of
// each tool, "" for those beyond that.
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

// ForEach calls f for each approved definition that is kept, in the order of names.
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

// Digest returns the digest by which a definition is approved.
func Digest(definition []byte) string { return pinOf(definition).Hash }

// Approves reports whether a definition with that digest is the approved one of a tool.
// It does not look for what other processes wrote.
func (s *PinStore) Approves(server, tool, digest string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return digest != "" && s.servers[server][tool].Hash == digest
}

// Forget drops what a server listed last, but not what was approved of it: the
// config has it no more.
func (s *PinStore) Forget(server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.offered, server)
	delete(s.offered, SkillsName(server))
}

// SkillsName returns the key under which a server's skills are pinned: no server has that
// name.
func SkillsName(server string) string { return server + "/skills" }

// WasListed reports whether a server listed something of that name last.
func (s *PinStore) WasListed(server, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.offered[server][name]
	return ok
}

// Changes compares a server's last list with the pinned definitions.
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

// ChangedError is a tool whose definition is not the one that the user saw.
type ChangedError struct{ Server, Tool string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("tool %q of server %q has changed again; look at it anew", e.Tool, e.Server)
}

// Approve pins tools of a server as they were listed last; all of them when
// none is named. seen has the hashes of those that the user saw, by name, nil if
// that does not matter; if one is another by now, or awaits approval and was not
// seen, nothing is approved, and the error is a *[ChangedError]. It
// returns the names of those that a server does not offer.
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

// save changes the pins of a server, in the file and then here; if the file cannot
// be written, here alone and only if provisional is set. change gets what is pinned
// by now, also by other processes, and whether that is anything.
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

// write makes the file what is pinned, by another one in its place.
func (s *PinStore) write() error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false) // else an approved "<" differs from an offered one where users compare them
	err := enc.Encode(file{version, s.servers})
	if err == nil && text.Len() > maxPins {
		err = fmt.Errorf("%s would be larger than %d bytes, and could not be read again", s.path, maxPins)
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

// pinOf is the pin of a definition: of all its members but icons and _meta,
// which may change freely, in a form in which the order that a server writes
// them in is of no consequence. What readers may take for one of these members
// counts, too: others than those that are known, in other case or twice.
func pinOf(item []byte) pin {
	if rawjson.Valid(item) != nil || !rawjson.IsObject(item) {
		return pinned(rawjson.Quote(string(item))) // odd, but the same again the next time
	}
	type member struct {
		name  string
		value []byte
	}
	var members []member
	for k, v := range rawjson.Members(item) {
		if name, _ := rawjson.String(k); name != "icons" && name != "_meta" {
			members = append(members, member{name, v})
		}
	}
	slices.SortStableFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	text := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(rawjson.AppendString(text, m.name), ':')
		if len(item) <= maxSorted {
			text = rawjson.AppendCanonical(text, m.value)
		} else {
			text = append(text, m.value...)
		}
	}
	return pinned(append(text, '}'))
}

// pinned is the pin of a definition in the form that is compared.
func pinned(text []byte) pin {
	sum := sha256.Sum256(text)
	p := pin{Hash: hex.EncodeToString(sum[:])}
	if len(text) <= maxKept {
		p.Definition = text
	}
	return p
}

// PinsPath is where the pins of a config are kept, in the folder for what is remembered.
// config is the one path by which its file is known.
func PinsPath(folder, config string) string {
	return atomicfile.ConfigPath(filepath.Join(folder, "pins"), config)
}
