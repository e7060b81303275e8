// Call approvals are the calls that a user approved permanently, although a rule stops
// them.
//
// There is a state file per config. All methods are safe for concurrent use. A change is
// in the file when they return, or did not happen. Several processes may share a file:
// each changes it under a lock and reads the changes of others.
//
// A damaged file approves nothing until the user fixes or removes it. So it needs no last
// good copy, unlike files that restrict clients.

package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"goblin/gateway/atomicfile"
	"goblin/registry"
)

const (
	// MaxCallApprovals is the maximum number of approvals of one config.
	MaxCallApprovals = 2000
	// maxCallApprovals is the maximum size of the file, in bytes.
	maxCallApprovals     = 8 << 20
	callApprovalsVersion = 1
)

// CallApprovalStore holds the approvals of one config. Open it with [OpenCallApprovals].
type CallApprovalStore struct {
	path string // "" keeps them in memory

	mu      sync.Mutex
	all     []registry.CallApproval // immutable
	seen    fs.FileInfo             // state of the file when read; nil if missing
	damaged error
}

// CallApprovalsPath returns the path of a config's call approvals in the state folder.
// config must be the canonical path of the config file.
func CallApprovalsPath(folder, config string) string {
	return atomicfile.ConfigPath(filepath.Join(folder, "approvals"), config)
}

// CallApprovalID returns the ID of an approval, which depends on all that it is bound to.
func CallApprovalID(a *registry.CallApproval) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{a.When, a.Client, a.Server, a.Kind, a.Name, a.Session, a.Definition}, "\x00")))
	return hex.EncodeToString(sum[:6])
}

// OpenCallApprovals reads the approvals at path; a missing file means none. A damaged file
// is an error. Then the store has no approvals until the user fixes or removes the file.
// With path "" the store is in memory.
func OpenCallApprovals(path string) (*CallApprovalStore, error) {
	s := &CallApprovalStore{path: path}
	return s, s.Refresh()
}

// All returns the approvals in the order of their creation. Callers must not modify them.
func (s *CallApprovalStore) All() []registry.CallApproval {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

// Refresh reads changes by other processes. It returns the errors of [OpenCallApprovals].
func (s *CallApprovalStore) Refresh() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.path == "" {
		return nil
	}
	now, err := os.Stat(s.path)
	if err == nil && s.damaged == nil && s.seen != nil && os.SameFile(now, s.seen) && now.ModTime().Equal(s.seen.ModTime()) && now.Size() == s.seen.Size() {
		return nil
	}
	return s.load()
}

func (s *CallApprovalStore) load() error {
	s.seen, _ = os.Stat(s.path) // before reading, so that later writes are noticed
	text, err := Read(s.path, maxCallApprovals)
	s.all, s.damaged = nil, nil
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		s.all, err = parseCallApprovals(text)
	}
	if err != nil {
		damaged := &DamagedError{Err: err}
		s.damaged = fmt.Errorf("read remembered approvals: %s: %w; %s, or remove it to revoke all; until then no approval applies", s.path, err, damaged.Repair())
	}
	return s.damaged
}

func parseCallApprovals(text []byte) ([]registry.CallApproval, error) {
	var f struct {
		Version   int
		Approvals []registry.CallApproval
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, err
	}
	switch {
	case f.Version != callApprovalsVersion:
		return nil, fmt.Errorf("version %d, expected %d: %w", f.Version, callApprovalsVersion, ErrVersion)
	case f.Approvals == nil:
		return nil, errors.New("list \"approvals\" missing")
	case len(f.Approvals) > MaxCallApprovals:
		return nil, fmt.Errorf("%d approvals exceed the limit of %d", len(f.Approvals), MaxCallApprovals)
	}
	for i := range f.Approvals {
		a := &f.Approvals[i]
		if a.Server == "" || a.Kind == "" || a.Name == "" || a.Client == "" || a.Session != "" {
			return nil, fmt.Errorf("approval %d: client, server, kind or name missing", i+1)
		}
		a.ID = CallApprovalID(a)
	}
	return f.Approvals, nil
}

// Add saves an approval and sets its ID. It keeps one with the same ID.
func (s *CallApprovalStore) Add(a registry.CallApproval) error {
	if len(a.When)+len(a.Client)+len(a.Server)+len(a.Name) > maxName {
		return fmt.Errorf("save the approval: rule and name have more than %d bytes", maxName)
	}
	a.ID = CallApprovalID(&a)
	return s.change(func(all []registry.CallApproval) ([]registry.CallApproval, error) {
		if i := slices.IndexFunc(all, func(b registry.CallApproval) bool { return a.ID == b.ID }); i >= 0 {
			return all, nil
		}
		if len(all) >= MaxCallApprovals {
			return nil, fmt.Errorf("there are %d approvals already; revoke one first", len(all))
		}
		return append(all, a), nil
	})
}

// Remove removes an approval.
func (s *CallApprovalStore) Remove(id string) (found bool, err error) {
	err = s.change(func(all []registry.CallApproval) ([]registry.CallApproval, error) {
		n := len(all)
		all = slices.DeleteFunc(all, func(a registry.CallApproval) bool { return a.ID == id })
		found = len(all) < n
		return all, nil
	})
	return found, err
}

func (s *CallApprovalStore) change(edit func(all []registry.CallApproval) ([]registry.CallApproval, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.path != "" {
		unlock, err := atomicfile.Lock(s.path)
		if err != nil {
			return fmt.Errorf("save approvals: %w", err)
		}
		defer unlock()
		if err := s.load(); err != nil {
			return err
		}
	}
	all, err := edit(slices.Clone(s.all))
	if err != nil {
		return fmt.Errorf("save approvals: %w", err)
	}
	if s.path != "" {
		if err := s.write(all); err != nil {
			return fmt.Errorf("save approvals: %w", err)
		}
	}
	s.all = all
	return nil
}

func (s *CallApprovalStore) write(all []registry.CallApproval) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if all == nil {
		all = []registry.CallApproval{}
	}
	if err := enc.Encode(map[string]any{"version": callApprovalsVersion, "approvals": all}); err != nil {
		return err
	}
	if text.Len() > maxCallApprovals {
		return fmt.Errorf("%s would exceed the limit of %d bytes", s.path, maxCallApprovals)
	}
	if err := atomicfile.Write(s.path, text.Bytes()); err != nil {
		return err
	}
	s.seen, _ = os.Stat(s.path)
	return nil
}
