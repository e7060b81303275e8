package views

import (
	"fmt"
	"time"

	"goblin/gateway/fleet"
	"goblin/gateway/switches"
	"goblin/registry"
)

// Off is something that clients do not see.
type Off struct {
	Kind   registry.Kind
	Server string
	Name   string          // the server's own
	Entry  *registry.Entry // nil: it is not in the catalog
	By     By
	Why    string
	Since  time.Time // when the user turned it off
}

// By says who keeps something from clients.
type By string

// In the order in which they count: what the config leaves out nobody can turn on.
const (
	ByConfig  By = "config"
	ByPin     By = "pin"
	ByYou     By = "you"
	ByProfile By = "profile"
)

// Look is what a profile's clients see, "" for those who have none, or the default one.
// ok is false when there is no such profile.
func (v *Views) Look(profile string) (seen *registry.Snapshot, ok bool) {
	one, ok := v.set.Load().look(profile)
	if !ok {
		return nil, false
	}
	return one.load(v.registry), true
}

func (t *set) look(profile string) (one *view, ok bool) {
	if profile == "" {
		return t.others, true
	}
	one = t.named[profile]
	return one, one != nil
}

// Why says why clients of a profile, as of [Views.Look], do not see something of the
// catalog; nil: they do.
func (v *Views) Why(profile string, e *registry.Entry) *Off {
	set := v.set.Load()
	one, ok := set.look(profile)
	if one == nil || !ok {
		return nil
	}
	c := one.choice.(*choice)
	off := &Off{Kind: e.Kind, Server: e.Server, Name: e.Name, Entry: e}
	switch {
	case c.Has(e.Server, e.Kind, e.Name):
		return nil
	case c.off.has(e.Server, e.Kind, e.Name):
		off.By, off.Why = ByYou, "turned off for all clients"
		if c.off.things[thing{place{e.Server, e.Kind}, e.Name}] {
			off.Why = fmt.Sprintf("turned off in profile %q", c.profile.Name)
		}
	case !c.Server(e.Server):
		off.By, off.Why = ByProfile, fmt.Sprintf("profile %q does not have server %q", c.profile.Name, e.Server)
	default:
		off.By, off.Why = ByProfile, fmt.Sprintf("left out by %q of profile %q", part(e), c.profile.Name)
	}
	return off
}

// part is the key of a profile that decides about an entry.
func part(e *registry.Entry) string {
	switch {
	case e.Server == registry.Local && e.Kind == registry.Tool:
		return "meta_tools"
	case e.Kind == registry.Tool:
		return "tools"
	case e.Kind == registry.Prompt:
		return "prompts"
	}
	return "resources"
}

// Lacking is all of one kind that clients of a profile, as of [Views.Look], do not see: what
// servers' filters leave out first, then what awaits approval, then the rest in the order of
// the catalog, and last what is off without being in it.
func (v *Views) Lacking(profile string, kind registry.Kind) (all []Off) {
	set := v.set.Load()
	for _, s := range v.servers.All() {
		for _, name := range s.Denied(kind) {
			all = append(all, Off{Kind: kind, Server: s.Name(), Name: name, By: ByConfig, Why: fmt.Sprintf("left out by %q of server %q", part(&registry.Entry{Kind: kind}), s.Name())})
		}
	}
	if kind == registry.Tool {
		for _, p := range v.registry.Pinned("") {
			if p.Withheld {
				all = append(all, Off{Kind: kind, Server: p.Server, Name: p.Name, By: ByPin, Why: fleet.Withheld(&p)})
			}
		}
	}
	since, there := make(map[thing]switches.Switch), make(map[thing]bool)
	for i := range set.off {
		if t, ok := thingOf(&set.off[i]); ok && t.kind == kind && (set.off[i].Profile == "" || set.off[i].Profile == profile) {
			since[t] = set.off[i]
		}
	}
	for e := range v.registry.Load().All(kind) {
		t := thing{place{e.Server, kind}, e.Name}
		if off := v.Why(profile, e); off != nil {
			off.Since, there[t] = since[t].Since, true
			all = append(all, *off)
		}
	}
	for i := range set.off {
		t, _ := thingOf(&set.off[i])
		if s, ok := since[t]; ok && !there[t] {
			there[t] = true
			all = append(all, Off{Kind: kind, Server: s.Server, Name: s.Name, By: ByYou, Why: "turned off; its server does not list it now", Since: s.Since})
		}
	}
	return all
}
