package registry

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"

	"goblin/registry/definition"
	"goblin/registry/names"
)

// UnapprovedTool is a tool that changed, or that a known server added.
type UnapprovedTool struct {
	Server string `json:"serverId"`
	Name   string `json:"name"` // its server's name for it
	New    bool   `json:"new"`  // no tool of this name was approved
	Hidden bool   `json:"withheld"`
	// Approved and Offered are the definitions as compact JSON with sorted keys. Approved
	// is nil for a new tool and if it was too large to store.
	Approved json.RawMessage `json:"approved,omitempty"`
	Offered  json.RawMessage `json:"offered,omitempty"`
	Hash     string          `json:"sha256"` // hash of Offered, used to approve it
	// Risks are set by the registry.
	Risks []definition.Risk `json:"risks,omitempty"`
}

type unapprovedTable struct {
	mu   sync.RWMutex
	rows map[string][]UnapprovedTool
}

func (t *unapprovedTable) drop(server string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.rows, server)
}

// SetUnapproved replaces the unapproved tools of a server.
func (r *Registry) SetUnapproved(server string, tools []UnapprovedTool) {
	tools = slices.Clone(tools)
	for i := range tools {
		tools[i].Risks = tools[i].risks()
	}
	t := &r.pinned
	t.mu.Lock()
	had := len(t.rows[server]) > 0
	if t.rows == nil {
		t.rows = map[string][]UnapprovedTool{}
	}
	if len(tools) == 0 {
		delete(t.rows, server)
	} else {
		slices.SortFunc(tools, func(a, b UnapprovedTool) int { return cmp.Compare(a.Name, b.Name) })
		t.rows[server] = tools
	}
	t.mu.Unlock()
	if had || len(tools) > 0 {
		r.feed.publish(Pins)
	}
}

// UnapprovedTools returns the unapproved tools of a server by name; for "", of all
// servers in the config's order.
func (r *Registry) UnapprovedTools(server string) []UnapprovedTool {
	if server != "" {
		return r.pinned.forServer(server)
	}
	var all []UnapprovedTool
	for _, t := range r.Load().tables {
		all = append(all, r.pinned.forServer(t.name)...)
	}
	return all
}

func (t *unapprovedTable) forServer(server string) []UnapprovedTool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.rows[server]
}

// UnapprovedTool returns an unapproved tool, or nil.
func (r *Registry) UnapprovedTool(server, name string) *UnapprovedTool {
	tools := r.pinned.forServer(server)
	i, ok := slices.BinarySearchFunc(tools, name, func(p UnapprovedTool, name string) int { return cmp.Compare(p.Name, name) })
	if !ok {
		return nil
	}
	return &tools[i]
}

// UnapprovedTool returns the hidden unapproved tool that a client means by name, in any
// spelling, or nil.
func (s *Snapshot) UnapprovedTool(name string) *UnapprovedTool {
	owner, rest, _ := s.owner(Tool, name)
	for _, t := range s.tables[1:] {
		if p := s.unapprovedOf(t, name); p != nil {
			return p
		}
		if owner != nil && t != owner {
			continue
		}
		for _, p := range s.pinned.forServer(t.name) {
			if given := t.rule.configName(p.Name); (given == name || given == rest) && p.Hidden && s.IsVisible(t.name, Tool, p.Name) {
				return &p
			}
		}
	}
	return nil
}

// unapprovedOf returns the hidden unapproved tool of a server that could be listed as
// name.
func (s *Snapshot) unapprovedOf(t *table, name string) *UnapprovedTool {
	tools := s.pinned.forServer(t.name)
	if len(tools) == 0 {
		return nil
	}
	able := []*names.Rule{t.rule.Rule}
	for _, rules := range s.dir.spellings.ForName(name) {
		able = append(able, rules[t.name])
	}
	for i := range tools {
		p := &tools[i]
		if p.Hidden && s.IsVisible(t.name, Tool, p.Name) && slices.ContainsFunc(able, func(u *names.Rule) bool { return u.IsToolSpelling(name, t.rule.configName(p.Name), s.ownTool) }) {
			return p
		}
	}
	return nil
}

// Meaning describes the change as of [definition.Meaning]. It returns nil for a new tool
// and without both definitions.
func (p *UnapprovedTool) Meaning() []string {
	if p.New || p.Approved == nil || p.Offered == nil {
		return nil
	}
	return definition.Meaning(Tool.String(), p.Approved, p.Offered)
}

func (p *UnapprovedTool) risks() []definition.Risk {
	if p.Offered == nil || !p.New && p.Approved == nil {
		return nil
	}
	return definition.Risks(p.Approved, p.Offered)
}

// Diff returns the change of the definition as of [definition.Difference], or the
// definition of a new tool. It is untrusted text.
func (p *UnapprovedTool) Diff() string {
	switch {
	case p.Offered == nil:
		return "(the definition is too large to show)"
	case p.New:
		return definition.Format(p.Offered)
	case p.Approved == nil:
		return "(the approved definition was too large to store)\n" + definition.Format(p.Offered)
	}
	return definition.Difference(p.Approved, p.Offered)
}
