package secrets

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"goblin/gateway/atomicfile"
	"goblin/gateway/state"
)

const (
	// MaxValue is the maximum size of a secret in bytes.
	MaxValue = 64 << 10

	service     = Keyring("goblin secrets") // "goblin" is the service of logins
	keyringNote = "the system's keyring"

	maxFile = 4 << 20
)

// ErrNotFound reports a name without a secret.
var ErrNotFound = errors.New("no secret with this name")

var name = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./@-]{0,127}$`) })

// ValidName reports whether s is a valid name of a secret.
func ValidName(s string) bool { return name().MatchString(s) }

// Store keeps secrets in the system's keyring, otherwise in a file with mode 0600. The
// file also lists the names in the keyring. Several processes may share a Store.
type Store struct{ path string }

// Open returns the Store of a state directory, or one without a file for "". It accesses
// nothing yet.
func Open(stateDir string) *Store {
	s := &Store{}
	if stateDir != "" {
		s.path = filepath.Join(stateDir, "secrets.json")
	}
	return s
}

type record struct {
	Keyring bool   `json:"keyring,omitempty"`
	Value   string `json:"value,omitempty"`
}

// Set stores a secret and returns its place: the keyring, or the file with the reason.
func (s *Store) Set(name, value string) (place string, err error) {
	if err := check(name, value); err != nil {
		return "", err
	}
	why := service.TrySet(name, value)
	place = keyringNote
	if why != "" {
		place = fmt.Sprintf("%s, which only you can read (%s)", s.path, why)
	}
	err = s.edit(func(all map[string]record) error {
		if why == "" {
			all[name] = record{Keyring: true}
			return nil
		}
		if all[name].Keyring && service.IsAvailable() {
			_ = service.Delete(name) // best effort: remove the older value
		}
		all[name] = record{Value: value}
		return nil
	})
	if err != nil {
		return "", err
	}
	return place, nil
}

func check(name, value string) error {
	switch {
	case !ValidName(name):
		return errors.New(`invalid name of a secret; use up to 128 letters, digits, "_", "-", ".", "/" and "@", starting with a letter, a digit or "_"`)
	case value == "":
		return errors.New("the secret is empty")
	case len(value) > MaxValue:
		return fmt.Errorf("the secret is longer than %d KiB", MaxValue>>10)
	case !utf8.ValidString(value), strings.ContainsRune(value, 0):
		return errors.New("the secret is not text")
	}
	return nil
}

// Get returns a secret, or [ErrNotFound]. It also finds secrets that other programs
// stored under the service "goblin secrets".
func (s *Store) Get(name string) (string, error) {
	if !ValidName(name) {
		return "", ErrNotFound
	}
	all, err := s.load()
	if err != nil {
		return "", err
	}
	here, known := all[name]
	if known && !here.Keyring {
		return here.Value, nil
	}
	if !service.IsAvailable() {
		if known {
			return "", errors.New("it is in the keyring, which is not available here")
		}
		return "", ErrNotFound
	}
	value, err := service.Get(name)
	switch {
	case err == nil || errors.Is(err, ErrNotFound):
		return value, err
	case known:
		return "", fmt.Errorf("the keyring did not return it: %s", truncate(err.Error()))
	}
	return "", ErrNotFound // maybe it is in an unknown keyring
}

// List returns the sorted names of stored secrets.
func (s *Store) List() ([]string, error) {
	all, err := s.load()
	return slices.Sorted(maps.Keys(all)), err
}

// Destination returns where Set would store a secret, and whether that is the system's
// keyring.
func (s *Store) Destination() (place string, keyring bool) {
	if service.IsAvailable() {
		return keyringNote, true
	}
	return s.path + ", which only you can read", false
}

// Location returns the place of a stored secret.
func (s *Store) Location(name string) string {
	if all, err := s.load(); err == nil && all[name].Keyring {
		return keyringNote
	}
	return s.path
}

// Remove deletes a secret, or returns [ErrNotFound].
func (s *Store) Remove(name string) error {
	return s.edit(func(all map[string]record) error {
		here, known := all[name]
		if service.IsAvailable() {
			err := service.Delete(name)
			switch {
			case err == nil:
				known = true
			case here.Keyring && !errors.Is(err, ErrNotFound):
				return fmt.Errorf("the keyring did not delete it: %s", truncate(err.Error()))
			}
		} else if here.Keyring {
			return errors.New("it is in the keyring, which is not available here")
		}
		if !known {
			return ErrNotFound
		}
		delete(all, name)
		return nil
	})
}

func (s *Store) load() (map[string]record, error) {
	all := make(map[string]record)
	if s.path == "" {
		return all, nil
	}
	text, err := state.Read(s.path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil && (json.Unmarshal(text, &all) != nil || all == nil) {
		err = errors.New("invalid content")
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w; move it away and set the secrets again", s.path, err)
	}
	return all, nil
}

// edit changes the file under a lock that all processes share.
func (s *Store) edit(change func(all map[string]record) error) error {
	if s.path == "" {
		return errors.New("no folder for secrets; set HOME or XDG_STATE_HOME")
	}
	unlock, err := atomicfile.Lock(s.path)
	if err != nil {
		return err
	}
	defer unlock()
	all, err := s.load()
	if err != nil {
		return err
	}
	if err := change(all); err != nil {
		return err
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if len(text) > maxFile {
		return fmt.Errorf("%s would become too large", s.path)
	}
	return atomicfile.Write(s.path, append(text, '\n'))
}

// truncate shortens an untrusted text and removes control characters.
func truncate(text string) string {
	const limit = 200
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "?"), func(c rune) bool { return c <= ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 }), " ")
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return text
}
