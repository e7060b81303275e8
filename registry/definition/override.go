// Package definition overrides, compares and describes definitions of tools, prompts and
// resources.
//
// Definitions are raw JSON, of which all that need not change stays byte for byte. It knows
// neither servers nor names of a catalog, nor who asks.
package definition

import (
	"maps"
	"slices"
)

// Override replaces parts of a thing's definition for clients. Those that are empty or nil
// stay the server's. It is immutable.
type Override struct {
	Name        string // of a tool or prompt, instead of the server's own
	Label       string // the "name" of a resource or template
	Title       *string
	Description *string
	Annotations []Member // of tools: they are merged with the server's
	Arguments   []Member // of tools and prompts: they are filled in, and hidden
}

// Member is a name with a raw value.
type Member struct {
	Name  string
	Value []byte
}

// withDefaults returns o with its empty parts taken from below, which may be nil.
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

// mergeMembers returns the members of both lists, sorted by name. On conflicts those of a win.
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

// Set are the overrides of a server, by its own names and URIs. Those of resources are
// those of templates, too. A nil one has none.
type Set struct {
	Tools, Prompts, Resources map[string]*Override
}

// Merge is the set with what it leaves open taken from below.
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

// WithoutName is an override without its name.
func (a *AppliedOverride) WithoutName() *AppliedOverride {
	o := *a.Override
	o.Name = ""
	return &AppliedOverride{Override: &o, Fill: a.Fill, Problems: a.Problems}
}

// CheckRenames says who of several things cannot have the name that it is given, and keeps its own,
// so that no two have one: for each, who has the name. No two have one name of their own.
// Of things that are given one, the first has it.
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
