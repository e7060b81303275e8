// Package extensions knows the extensions of the protocol (SEP-2133) that servers and
// clients declare in their capabilities: what Goblin says to one side of what the other
// side has, within bounds, and when a request that Goblin does not know belongs to an
// extension of both.
//
// It owns no state but which complaints were logged last: all functions are pure and
// take raw JSON that is valid. It knows neither connections nor names; whose a name is,
// the caller finds out.
package extensions

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"goblin/registry/rawjson"
)

// The extensions that Goblin takes part in. Tasks it serves itself, see gateway/tasks.
const (
	UI     = "io.modelcontextprotocol/ui"
	Skills = "io.modelcontextprotocol/skills"
	Tasks  = "io.modelcontextprotocol/tasks"
)

// Default is declared to servers over connections that clients share: else servers
// hide their apps from the lists.
const Default = `{"` + UI + `":{"mimeTypes":["text/html;profile=mcp-app"]}}`

const ofClients = `{"elicitation":{"form":{},"url":{}},"extensions":` + Default +
	`,"roots":{"listChanged":true},"sampling":{"context":{},"tools":{}}}`

// OfClients is declared to servers as the abilities of clients, with or without roots.
// Each client's own capabilities decide when one is really asked.
func OfClients(roots bool) []byte {
	if roots {
		return []byte(ofClients)
	}
	return rawjson.Without([]byte(ofClients), "roots")
}

// Bounds of what a server may declare, and of what clients get of all servers.
const (
	maxName     = 200 // bytes
	maxSettings = 16 << 10
	maxOfServer = 64
	maxOfAll    = 256
	maxBytes    = 256 << 10
)

// own reports whether an extension is not a server's to declare to clients.
func own(name string) bool {
	return name == Tasks || name == "goblin" || strings.HasPrefix(name, "goblin/")
}

// Bounded is a server's capabilities without the extensions that are beyond the bounds;
// complaint says which, "" for none. Tasks stays for clients that follow tasks.
func Bounded(capabilities []byte) (kept []byte, complaint string) {
	declared := rawjson.Get(capabilities, "extensions")
	if declared == nil {
		return capabilities, ""
	}
	some := []byte{'{'}
	var large []string
	n, over := 0, 0
	for k, settings := range rawjson.Members(declared) {
		name, _ := rawjson.String(k)
		switch {
		case n >= maxOfServer:
			over++
			continue
		case len(name) > maxName || len(settings) > maxSettings || !rawjson.IsObject(settings):
			large = append(large, name[:min(len(name), maxName)])
			continue
		}
		n++
		some = rawjson.AppendMember(some, k, settings)
	}
	if over > 0 {
		complaint = fmt.Sprintf("%d of its extensions are left out: a server may declare %d", over, maxOfServer)
	}
	if len(large) > 0 {
		complaint += fmt.Sprintf("%sextension %q and %d more are left out: the settings of each must be an object of at most %d KiB, its name %d bytes",
			strings.Repeat("; ", min(len(complaint), 1)), large[0], len(large)-1, maxSettings>>10, maxName)
	}
	if complaint == "" && rawjson.IsObject(declared) {
		return capabilities, ""
	}
	return rawjson.SetMember(rawjson.Without(capabilities, "extensions"), "extensions", append(some, '}')), complaint
}

// Declared holds the extensions that one server declares.
type Declared struct {
	Server       string
	Capabilities []byte
}

// setting is a member of an extension's settings.
type setting struct {
	server string // that declared it first
	key    rawjson.Key
	value  []byte // nil when servers differ
	same   string // the value in its canonical form
}

// Union joins the declarations of all servers into a raw object, with complaints about
// members that are left out: those on which two servers differ, and those that servers
// have no right to declare.
func Union(all []Declared) (union []byte, complaints []string) {
	found := map[string]map[string]*setting{}
	size := 0
	for _, d := range all {
		for k, settings := range rawjson.Members(rawjson.Get(d.Capabilities, "extensions")) {
			name, _ := rawjson.String(k)
			if own(name) {
				if name != Tasks {
					complaints = append(complaints, fmt.Sprintf("extension %q of server %q is left out: the name is Goblin's own", name, d.Server))
				}
				continue
			}
			if size += len(k) + len(settings); size > maxBytes || found[name] == nil && len(found) >= maxOfAll {
				complaints = append(complaints, fmt.Sprintf("extension %q of server %q is left out: all together have at most %d, of %d KiB", name, d.Server, maxOfAll, maxBytes>>10))
				continue
			}
			if found[name] == nil {
				found[name] = map[string]*setting{}
			}
			complaints = append(complaints, merge(found[name], name, d.Server, settings)...)
		}
	}
	union = []byte{'{'}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		settings := []byte{'{'}
		for _, key := range slices.Sorted(maps.Keys(found[name])) {
			if s := found[name][key]; s.value != nil {
				settings = rawjson.AppendMember(settings, s.key, s.value)
			}
		}
		union = rawjson.AppendMember(union, rawjson.Quote(name), append(settings, '}'))
	}
	return append(union, '}'), complaints
}

// merge adds one server's settings of an extension.
func merge(into map[string]*setting, name, server string, settings []byte) (complaints []string) {
	for k, value := range rawjson.Members(settings) {
		key, _ := rawjson.String(k)
		same := string(rawjson.AppendCanonical(nil, value))
		switch s := into[key]; {
		case s == nil:
			into[key] = &setting{server, k, value, same}
		case name == Skills && key == "directoryRead":
			// Clients without it are not asked: each URI is one server's.
			if same == "true" {
				s.value = value
			}
		case s.value != nil && s.same != same:
			s.value = nil
			complaints = append(complaints, fmt.Sprintf("member %q of extension %q is left out: servers %q and %q differ in it",
				key[:min(len(key), maxName)], name, s.server, server))
		}
	}
	return complaints
}

// Has reports whether capabilities declare an extension.
func Has(capabilities []byte, name string) bool {
	return rawjson.IsObject(rawjson.Path(capabilities, "extensions", name))
}

// Of returns the part of a client's capabilities that servers get, a raw object; nil for
// nothing. Tasks is left out: package tasks adds it.
func Of(capabilities []byte) []byte {
	declared := rawjson.Get(capabilities, "extensions")
	if !rawjson.IsObject(declared) {
		return nil
	}
	rest := rawjson.Without(declared, Tasks)
	for range rawjson.Members(rest) {
		return rest
	}
	return nil
}

// Beyond returns the declaration of a connection that is a client's own, nil when that is
// no more than shared ones declare. UI is always in it, since the lists are those of all.
func Beyond(capabilities []byte) []byte {
	declared := Of(capabilities)
	for k := range rawjson.Members(declared) {
		if k.Is(UI) {
			continue
		}
		if !Has(capabilities, UI) {
			declared = rawjson.SetMember(declared, UI, rawjson.Get([]byte(Default), UI))
		}
		return declared
	}
	return nil
}

// Shared reports whether a client and a server declare an extension in common that is
// not Goblin's own.
func Shared(client, server []byte) bool {
	for k := range rawjson.Members(Of(client)) {
		if name, _ := rawjson.String(k); !own(name) && rawjson.Path(server, "extensions", name) != nil {
			return true
		}
	}
	return false
}

// members are those of params by which an extension's request says what it is about, in
// the order in which they count.
var members = [...]string{"uri", "name", "taskId"}

// maxValue is how long such a member may be, in bytes.
const maxValue = 64 << 10

// Route finds the server that owns what a request is about: that of the first member
// that has an owner, "" for none. edits put the server's own spelling into params,
// wherever a member is that server's. owner says whose a member is and how the server
// spells it; its error ends the search.
func Route(params []byte, owner func(member, value string) (server, own string, err error)) (server string, edits []rawjson.Edit, err error) {
	for _, member := range members {
		raw := rawjson.Get(params, member)
		value, ok := rawjson.String(raw)
		if !ok || len(value) > maxValue {
			continue
		}
		whose, own, err := owner(member, value)
		switch {
		case err != nil && server == "":
			return "", nil, err
		case err != nil, whose == "", server != "" && whose != server:
			continue
		}
		server = whose
		edits = append(edits, rawjson.Replace(params, raw, rawjson.Quote(own)))
	}
	slices.SortFunc(edits, func(a, b rawjson.Edit) int { return cmp.Compare(a.Start, b.Start) })
	return server, edits, nil
}

// Complaints remembers which complaints of [Union] were logged last.
type Complaints struct {
	mu   sync.Mutex
	last []string
}

// New returns those that were not among the last ones.
func (c *Complaints) New(all []string) (fresh []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range all {
		if !slices.Contains(c.last, one) {
			fresh = append(fresh, one)
		}
	}
	c.last = all
	return fresh
}
