// Package definition overrides, compares and describes definitions of tools, prompts and
// resources.
//
// Definitions are raw JSON; unchanged parts stay byte for byte.
package definition

import (
	"maps"
	"slices"
)

// Override replaces parts of a definition for clients. Empty or nil fields keep the
// server's value. It is immutable.
type Override struct {
	Name        string // of a tool or prompt
	Label       string // the "name" of a resource or template
	Title       *string
	Description *string
	Annotations []Member // of tools: merged with the server's
	Arguments   []Member // of tools and prompts: fixed and hidden
}

// Member is a name with a raw value.
type Member struct {
	Name  string
	Value []byte
}

// below may be nil.
func (o *Override) withDefaults(below *Override) *Override {
	switch {
	case o == nil:
		return below
	case below == nil:
		return o
	}
	both := *o
	if both.Name == "" {
		both.Name = below.Name
	}
	if both.Label == "" {
		both.Label = below.Label
	}
	if both.Title == nil {
		both.Title = below.Title
	}
	if both.Description == nil {
		both.Description = below.Description
	}
	both.Annotations = mergeMembers(both.Annotations, below.Annotations)
	both.Arguments = mergeMembers(both.Arguments, below.Arguments)
	return &both
}

// mergeMembers returns the members of both lists, sorted by name. On conflicts, a wins.
func mergeMembers(a, b []Member) []Member {
	if len(b) == 0 {
		return a
	}
	byName := make(map[string]Member, len(a)+len(b))
	for _, m := range slices.Concat(b, a) {
		byName[m.Name] = m
	}
	all := make([]Member, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all = append(all, byName[name])
	}
	return all
}

// Set holds the overrides of a server by its own names and URIs. Resources also contains
// templates.
type Set struct {
	Tools, Prompts, Resources map[string]*Override
}

// Merge returns the set with its empty parts taken from below. Both may be nil.
func (s *Set) Merge(below *Set) *Set {
	switch {
	case s == nil:
		return below
	case below == nil:
		return s
	}
	join := func(a, b map[string]*Override) map[string]*Override {
		if len(a) == 0 {
			return b
		}
		all := maps.Clone(a)
		for name, o := range b {
			all[name] = all[name].withDefaults(o)
		}
		return all
	}
	return &Set{join(s.Tools, below.Tools), join(s.Prompts, below.Prompts), join(s.Resources, below.Resources)}
}

// WithoutName returns a copy without the name.
func (a *AppliedOverride) WithoutName() *AppliedOverride {
	o := *a.Override
	o.Name = ""
	return &AppliedOverride{Override: &o, Fill: a.Fill, Problems: a.Problems}
}

// CheckRenames decides which renames are rejected because another item has the name. It
// maps the index of each rejected item, which keeps its own name, to the item with the
// name. Own names are unique. Of several items renamed to one name, the first gets it.
func CheckRenames(own, given []string) map[int]int {
	refused := make(map[int]int)
	for again := true; again; {
		again = false
		first := make(map[string]int, len(own))
		keeps := func(i int) bool {
			_, no := refused[i]
			return no || given[i] == own[i]
		}
		for i := range own {
			if keeps(i) {
				first[own[i]] = i
			}
		}
		for i := range own {
			if keeps(i) {
				continue
			}
			if other, taken := first[given[i]]; taken {
				refused[i], again = other, true
			} else {
				first[given[i]] = i
			}
		}
	}
	return refused
}
