// Package pins remembers the tool definitions that a user has seen, so that a
// server that changes one later, or slips one in, is found out.
//
// It owns a state file per config and the comparison. A server's tools are
// pinned when it first lists any: what a user connects to for the first time,
// he trusts. From then on every definition that is new or another one waits
// until it is approved; what becomes of it meanwhile is not this package's
// business. It knows neither clients nor connections.
//
// All methods may be called from any goroutine. They write the file before they
// return; failing to is an error, and what was pinned counts nevertheless until
// the end of the process.
package pins

import (
	"bytes"
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

	"goblin/registry/rawjson"
)

const (
	// maxKept is the size of a definition, in bytes, up to which it is kept
	// beside its hash, to show what changed.
	maxKept = 32 << 10
	// maxTools bounds what is pinned of one server. Tools beyond it are not
	// watched.
	maxTools = 20_000
	// maxFile bounds the file.
	maxFile = 256 << 20
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

// Change is a tool whose definition is not the approved one.
type Change struct {
	Name string
	New  bool
	// Approved and Offered are canonical JSON; nil for none, and for one that
	// is larger than 32 KiB.
	Approved, Offered []byte
}

// Store is the pins of one config. Make one with [Open].
type Store struct {
	path string

	mu      sync.Mutex
	servers map[string]map[string]pin
	offered map[string]map[string]pin // as listed last
}

// Open reads the pins at path; a file that is not there has none. The file and
// its folder are private to the user.
func Open(path string) (*Store, error) {
	s := &Store{path: path, offered: make(map[string]map[string]pin)}
	var err error
	s.servers, err = read(path)
	return s, err
}

func read(path string) (map[string]map[string]pin, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return make(map[string]map[string]pin), nil
	}
	if err == nil && info.Size() > maxFile {
		err = fmt.Errorf("it is larger than %d bytes", maxFile)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	var f file
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err == nil && f.Version != version {
		err = fmt.Errorf("it has version %d, not %d", f.Version, version)
	}
	if err != nil {
		return nil, fmt.Errorf("read pinned tools: %s: %w; remove the file to pin all tools anew", path, err)
	}
	if f.Servers == nil {
		f.Servers = make(map[string]map[string]pin)
	}
	return f.Servers, nil
}

// Check compares a server's tools with what is pinned. items are the
// definitions as the server sent them; those without a name are ignored. A
// server without pins gets these.
func (s *Store) Check(server string, items [][]byte) ([]Change, error) {
	offered := make(map[string]pin, len(items))
	for _, item := range items {
		name := Name(item)
		if _, twice := offered[name]; name != "" && !twice && len(offered) < maxTools {
			offered[name] = pinOf(item)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offered[server] = offered
	if _, known := s.servers[server]; !known && len(offered) > 0 {
		s.servers[server] = maps.Clone(offered)
		return nil, s.save(server)
	}
	return s.changes(server), nil
}

// Changes is what a server listed last compared with what is pinned.
func (s *Store) Changes(server string) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes(server)
}

func (s *Store) changes(server string) (changes []Change) {
	offered, approved := s.offered[server], s.servers[server]
	for _, name := range slices.Sorted(maps.Keys(offered)) {
		was, seen := approved[name]
		if now := offered[name]; !seen || was.Hash != now.Hash {
			changes = append(changes, Change{Name: name, New: !seen, Approved: was.Definition, Offered: now.Definition})
		}
	}
	return changes
}

// Name is the name in a definition, "" for none.
func Name(item []byte) string {
	name, _ := rawjson.String(rawjson.Get(item, "name"))
	return name
}

// Approve pins tools of a server as they were listed last; all of them when
// none is named. It returns the names of those that a server does not offer.
func (s *Store) Approve(server string, names ...string) (unknown []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	offered := s.offered[server]
	if len(names) == 0 {
		names = slices.Collect(maps.Keys(offered))
	}
	approved := maps.Clone(s.servers[server])
	if approved == nil {
		approved = make(map[string]pin)
	}
	for _, name := range names {
		p, ok := offered[name]
		if !ok {
			unknown = append(unknown, name)
			continue
		}
		approved[name] = p
	}
	if len(unknown) > 0 {
		return unknown, nil
	}
	s.servers[server] = approved
	return nil, s.save(server)
}

// save writes the pins of a server. Those of others may have been changed by
// another process of the config, such as a command.
func (s *Store) save(server string) error {
	all, err := read(s.path)
	if err != nil {
		return err
	}
	all[server] = s.servers[server]
	text, err := json.Marshal(file{version, all})
	if err != nil {
		return fmt.Errorf("save pinned tools: %w", err)
	}
	dir := filepath.Dir(s.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("save pinned tools: %w", err)
	}
	temp, err := os.CreateTemp(dir, ".pins-*") // with mode 0600
	if err != nil {
		return fmt.Errorf("save pinned tools: %w", err)
	}
	_, err = temp.Write(text)
	err = errors.Join(err, temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), s.path)
	}
	if err != nil {
		_ = os.Remove(temp.Name()) // it is of no use
		return fmt.Errorf("save pinned tools: %w", err)
	}
	return nil
}

// matters are the members of a definition that tell a model or a user what the
// tool does and takes. Icons and _meta may change freely.
var matters = []string{"annotations", "description", "execution", "inputSchema", "name", "outputSchema", "title"}

// pinOf is the pin of a definition: of the members that matter, with sorted
// keys, so that the order in which a server writes them is of no consequence.
func pinOf(item []byte) pin {
	text := []byte{'{'}
	for _, member := range matters {
		if v := rawjson.Get(item, member); v != nil {
			if len(text) > 1 {
				text = append(text, ',')
			}
			text = append(rawjson.AppendString(text, member), ':')
			text = append(text, canonical(v)...)
		}
	}
	text = append(text, '}')
	sum := sha256.Sum256(text)
	p := pin{Hash: hex.EncodeToString(sum[:])}
	if len(text) <= maxKept {
		p.Definition = text
	}
	return p
}

// canonical is a JSON value with sorted keys and without blanks; numbers keep
// their text.
func canonical(v []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(v))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return rawjson.Quote(string(v)) // odd, but the same again the next time
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(value) != nil {
		return rawjson.Quote(string(v))
	}
	return bytes.TrimSpace(out.Bytes())
}

// Path is where the pins of a config are kept: in goblin/pins of
// $XDG_STATE_HOME, else of ~/.local/state. config is the absolute path of its
// file.
func Path(config string, getenv func(string) string) (string, error) {
	dir := getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home := getenv("HOME")
		if home == "" {
			var err error
			if home, err = os.UserHomeDir(); err != nil {
				return "", fmt.Errorf("find the folder for pinned tools: %w; set XDG_STATE_HOME", err)
			}
		}
		dir = filepath.Join(home, ".local", "state")
	}
	sum := sha256.Sum256([]byte(config))
	return filepath.Join(dir, "goblin", "pins", hex.EncodeToString(sum[:8])+".json"), nil
}
