package servers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/state"
	"goblin/registry"
	"goblin/registry/termtext"
)

// checkPins compares listed tools or skills of a server with the approved ones. It
// reports differences and returns whether each is approved.
func (f *Manager) checkPins(server string, kind registry.Kind, tools []registry.Definition) []bool {
	offered := make([]state.PinnedTool, len(tools))
	for i, t := range tools {
		offered[i] = state.PinnedTool{Name: t.Name, Definition: t.JSON}
	}
	of, other := server, state.SkillsName(server)
	if kind == registry.Skill {
		of, other = other, of
	}
	v, err := f.o.Pins.Check(of, offered, !f.requiresApproval())
	if err != nil {
		f.log.Error("cannot read or save pinned tools", "server", server, "withheld", f.requiresApproval(), "err", err)
	}
	more, otherErr := f.o.Pins.Changes(other)
	if otherErr != nil {
		f.log.Error("cannot read pinned tools", "server", server, "err", otherErr)
	}
	f.publishUnapproved(server, append(v.Changes, more...))
	if v.Unwatched > 0 {
		f.log.Warn("tools over the limit are not checked for changes", "server", server, "count", v.Unwatched, "withheld", f.requiresApproval())
	}
	if !f.requiresApproval() {
		return slices.Repeat([]bool{true}, len(tools))
	}
	if err != nil {
		f.retryPins(server)
	}
	return v.Approved
}

// pinRetry is the delay before a server lists again because its pins could not be saved.
// Its unapproved tools stay hidden meanwhile.
const pinRetry = 30 * time.Second

func (f *Manager) retryPins(server string) {
	b := f.Get(server)
	f.mu.Lock()
	run := f.run
	f.mu.Unlock()
	if b == nil || run == nil || !b.retryingPins.CompareAndSwap(false, true) {
		return
	}
	f.work.Go(func() {
		select {
		case <-time.After(pinRetry):
			b.retryingPins.Store(false) // before relisting, which may fail again
			b.RelistPinned()
		case <-run.Done():
		case <-b.done:
		}
	})
}

func (f *Manager) unapprovedChanges(server string) ([]state.DefinitionChange, error) {
	changes, err := f.o.Pins.Changes(server)
	more, skillErr := f.o.Pins.Changes(state.SkillsName(server))
	return append(changes, more...), cmp.Or(err, skillErr)
}

// approve pins tools and skills of a server. A name means a skill if only a skill with it
// was listed.
func (f *Manager) approve(server string, seen map[string]string, names []string) (unknown []string, err error) {
	of := map[string][]string{}
	for _, name := range names {
		key := server
		if skills := state.SkillsName(server); !f.o.Pins.WasListed(server, name) && f.o.Pins.WasListed(skills, name) {
			key = skills
		}
		of[key] = append(of[key], name)
	}
	for _, key := range slices.Sorted(maps.Keys(of)) {
		more, failed := f.o.Pins.Approve(key, seen, of[key]...)
		unknown, err = append(unknown, more...), cmp.Or(err, failed)
	}
	return unknown, err
}

// PinsChanged applies approvals of other processes. Call it when the file of pinned tools
// was written.
func (f *Manager) PinsChanged() {
	damaged := f.o.Pins.Damaged() != nil
	if err := f.o.Pins.Refresh(); err != nil {
		f.log.Error("cannot read pinned tools", "err", err)
		return
	}
	repaired := damaged && f.o.Pins.Damaged() == nil // or removed: approvals may differ
	for _, b := range f.All() {
		before := f.o.Registry.UnapprovedTools(b.Name())
		changes, err := f.unapprovedChanges(b.Name())
		if err != nil {
			f.log.Error("cannot read pinned tools", "err", err)
			return
		}
		f.publishUnapproved(b.Name(), changes)
		if f.requiresApproval() && (repaired || !slices.EqualFunc(before, f.o.Registry.UnapprovedTools(b.Name()), func(a, b registry.UnapprovedTool) bool { return a.Name == b.Name })) {
			b.relistPinned()
		}
	}
}

func (s *Server) relistPinned() {
	s.Wake()
	s.RelistPinned()
}

func (f *Manager) requiresApproval() bool { return f.o.Config.Gateway.Pin == config.PinStrict }

func (f *Manager) publishUnapproved(server string, changes []state.DefinitionChange) {
	rows := make([]registry.UnapprovedTool, len(changes))
	for i, c := range changes {
		rows[i] = registry.UnapprovedTool{
			Server: server, Name: c.Name, New: c.New, Hidden: f.requiresApproval(), Approved: c.Approved, Offered: c.Offered,
			Hash: c.Hash,
		}
		if old := f.o.Registry.UnapprovedTool(server, c.Name); old != nil && old.Hash == c.Hash {
			continue
		}
		args := []any{"server", server, "tool", c.Name, "withheld", f.requiresApproval(), "approve", approvalCommand(server, c.Name)}
		if c.New {
			f.log.Warn("tool is new on a known server", args...)
		} else {
			f.log.Warn("tool changed since approval", args...)
		}
	}
	f.o.Registry.SetUnapproved(server, rows)
}

// ApprovalReason explains why a tool is hidden from clients.
func ApprovalReason(p *registry.UnapprovedTool) string {
	why := fmt.Sprintf("unapproved since server %q changed it", p.Server)
	if p.New {
		why = fmt.Sprintf("unapproved: new on server %q", p.Server)
	}
	if !termtext.CanQuote(p.Server, p.Name) {
		return why + `; see "goblin approve"`
	}
	return why + `; run "` + termtext.Goblin("approve", p.Server, p.Name) + `"`
}

// approvalCommand returns the command that approves a tool. It avoids names that need
// quotes, which logs would escape.
func approvalCommand(server, tool string) string {
	if command := termtext.Goblin("approve", server, tool); !strings.ContainsAny(command, `'"`) {
		return command
	}
	return "see: goblin approve"
}

// Approve permanently approves the named tools of a server, or all that await approval.
// It returns the names that awaited it.
//
// seen maps names to the hashes that the user saw, or is nil. Tools that are not in seen
// are not approved, and nothing is approved if a hash is outdated. The error names
// unknown tools.
func (f *Manager) Approve(server string, seen map[string]string, names ...string) ([]string, error) {
	b := f.Get(server)
	if b == nil {
		return nil, &UnknownError{Name: server, Known: f.Names()}
	}
	if f.o.Pins == nil {
		return nil, fmt.Errorf("tools are not pinned (see gateway.pin)")
	}
	var awaiting []string
	for _, p := range f.o.Registry.UnapprovedTools(server) {
		awaiting = append(awaiting, p.Name)
	}
	if len(names) == 0 {
		names = slices.DeleteFunc(slices.Clone(awaiting), func(name string) bool { return seen != nil && seen[name] == "" })
	}
	if len(names) == 0 {
		return nil, nil
	}
	unknown, err := f.approve(server, seen, names)
	if len(unknown) > 0 {
		hint := "; no tools await approval"
		if len(awaiting) > 0 {
			hint = "; tools awaiting approval: " + strings.Join(awaiting, ", ")
		}
		return nil, fmt.Errorf("server %q does not offer %s%s", server, strings.Join(unknown, ", "), hint)
	}
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(awaiting, name) })
	if len(names) == 0 {
		return nil, nil
	}
	f.log.Info("tools approved", "server", server, "tools", names)
	changes, err := f.unapprovedChanges(server)
	if err != nil {
		return nil, err
	}
	f.publishUnapproved(server, changes)
	if f.requiresApproval() {
		b.relistPinned()
	}
	return names, nil
}
