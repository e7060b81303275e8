package view

import (
	"fmt"
	"slices"
	"time"

	"goblin/gateway/servers"
	"goblin/gateway/state"
	"goblin/registry"
)

// HiddenEntry is an entry hidden from clients.
type HiddenEntry struct {
	Kind   registry.Kind
	Server string
	Name   string          // original name
	Entry  *registry.Entry // nil outside of the catalog
	By     Reason
	Why    string
	Since  time.Time // when the user disabled it
}

// Reason names the cause that hides an entry.
type Reason string

// By precedence: users cannot enable what the config filters.
const (
	ByConfig  Reason = "config"
	ByPin     Reason = "pin"
	ByUser    Reason = "you"
	ByProfile Reason = "profile"
	BySearch  Reason = "search" // not listed, but found and callable
)

// ProfileView is the visible part of the catalog, and the part in lists.
type ProfileView struct{ Visible, Lists *registry.Snapshot }

// ForProfile returns the view of a profile. "" means clients without one. ok is false for
// an unknown profile, which is empty.
func (v *Views) ForProfile(profile string) (seen ProfileView, ok bool) {
	set := v.set.Load()
	one := set.forProfile(profile)
	ok = one != nil
	if !ok {
		one = set.missing
	}
	m := one.snapshot(v.registry)
	return ProfileView{m.visible, m.lists}, ok
}

func (t *viewSet) forProfile(profile string) *view {
	if profile == "" {
		return t.defaultView
	}
	return t.profiles[profile]
}

const reasonUnknownState = "the file of disabled entries is damaged; run goblin doctor"

// HiddenBy returns why a profile's lists lack an entry, or nil. See [Views.ForProfile].
func (v *Views) HiddenBy(profile string, e *registry.Entry) *HiddenEntry {
	one := v.set.Load().forProfile(profile)
	if one == nil {
		return nil
	}
	c, seen := one.filter.(*profileFilter), one.snapshot(v.registry)
	off := &HiddenEntry{Kind: e.Kind, Server: e.Server, Name: e.Name, Entry: e}
	switch {
	case c.disabled.has(e.Server, e.Kind, e.Name):
		off.By, off.Why = ByUser, "disabled for all clients"
		if c.disabled.hidesServer(e.Server) {
			off.Why = "hidden because " + reasonUnknownState
		} else if c.disabled.entries[entryKey{serverKind{e.Server, e.Kind}, e.Name}] {
			off.Why = fmt.Sprintf("disabled in profile %q", c.profile.Name)
		}
	case !c.Server(e.Server):
		off.By, off.Why = ByProfile, fmt.Sprintf("server %q is not in profile %q", e.Server, c.profile.Name)
	case e.Server == registry.Local && !seen.visible.IsVisible(e.Server, e.Kind, e.Name):
		off.By, off.Why = c.whyMissing(e.Name)
	case !c.Has(e.Server, e.Kind, e.Name):
		off.By, off.Why = ByProfile, fmt.Sprintf("excluded by %q of profile %q", configKey(e.Kind), c.profile.Name)
	case !seen.lists.IsVisible(e.Server, e.Kind, e.Name):
		off.By, off.Why = BySearch, fmt.Sprintf(`found by search_tools and callable by name: "expose" of profile %q is search`, c.profile.Name)
	default:
		return nil
	}
	return off
}

// IsDisabled reports whether the user disabled an entry for all clients.
func (v *Views) IsDisabled(e *registry.Entry) bool {
	return v.set.Load().disabled.has(e.Server, e.Kind, e.Name)
}

// IsListed returns a function that reports whether any profile, or clients without one,
// lists an entry.
func (v *Views) IsListed() func(e *registry.Entry) bool {
	set := v.set.Load()
	lists := []*registry.Snapshot{set.defaultView.snapshot(v.registry).lists}
	for _, one := range set.profiles {
		lists = append(lists, one.snapshot(v.registry).lists)
	}
	return func(e *registry.Entry) bool {
		return slices.ContainsFunc(lists, func(l *registry.Snapshot) bool { return l.IsVisible(e.Server, e.Kind, e.Name) })
	}
}

func configKey(k registry.Kind) string {
	switch k {
	case registry.Tool:
		return "tools"
	case registry.Prompt:
		return "prompts"
	}
	return "resources"
}

// Hidden returns the hidden entries of a kind in a profile, as in [Views.ForProfile].
// Those filtered by servers come first, then unapproved tools, other entries, and
// disabled ones outside of the catalog. Goblin's own tools are included only if other
// clients see them.
func (v *Views) Hidden(profile string, kind registry.Kind) (all []HiddenEntry) {
	set := v.set.Load()
	for _, s := range v.servers.All() {
		for _, name := range s.DeniedNames(kind) {
			all = append(all, HiddenEntry{Kind: kind, Server: s.Name(), Name: name, By: ByConfig, Why: fmt.Sprintf("excluded by %q of server %q", configKey(kind), s.Name())})
		}
	}
	if kind == registry.Tool {
		for _, p := range v.registry.UnapprovedTools("") {
			if p.Hidden {
				all = append(all, HiddenEntry{Kind: kind, Server: p.Server, Name: p.Name, By: ByPin, Why: servers.ApprovalReason(&p)})
			}
		}
	}
	since, there := make(map[entryKey]state.ToggleEntry), make(map[entryKey]bool)
	for i := range set.off {
		if t, ok := entryKeyOf(&set.off[i]); ok && t.kind == kind && (set.off[i].Profile == "" || set.off[i].Profile == profile) {
			since[t] = set.off[i]
		}
	}
	for e := range v.Full().All(kind) {
		t := entryKey{serverKind{e.Server, kind}, e.Name}
		if off := v.HiddenBy(profile, e); off != nil && off.By != BySearch {
			off.Since, there[t] = since[t].Since, true
			all = append(all, *off)
		}
	}
	for i := range set.off {
		t, _ := entryKeyOf(&set.off[i])
		if s, ok := since[t]; ok && !there[t] {
			there[t] = true
			all = append(all, HiddenEntry{Kind: kind, Server: s.Server, Name: s.Name, By: ByUser, Why: "disabled; its server does not list it now", Since: s.Since})
		}
	}
	return all
}
