// Package extensions merges and filters the protocol extensions that clients and servers
// declare.
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

// ForClients is declared to servers as the abilities of clients, with or without roots.
// Each client's own capabilities decide when one is really asked.
func ForClients(roots bool) []byte {
	if roots {
		return []byte(ofClients)
	}
	return rawjson.RemoveMember([]byte(ofClients), "roots")
}

// Bounds of what a server may declare, and of what clients get of all servers.
const (
	maxName     = 200 // bytes
	maxSettings = 16 << 10
	maxOfServer = 64
	maxOfAll    = 256
	maxBytes    = 256 << 10
	// maxJoined is how deep in the settings members are joined: each level costs another
	// look at all below.
	maxJoined = 4
)

// isOwn reports whether Goblin itself decides about an extension, so that servers cannot declare it to
// clients.
func isOwn(name string) bool {
	return name == Tasks || name == "goblin" || strings.HasPrefix(name, "goblin/")
}

// LimitExtensions returns a server's capabilities without the extensions that exceed the limits; complaint
// names them, "" for none. Tasks stays for clients that follow tasks.
func LimitExtensions(capabilities []byte) (kept []byte, complaint string) {
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
	return rawjson.SetMember(rawjson.RemoveMember(capabilities, "extensions"), "extensions", append(some, '}')), complaint
}

// Declared holds the extensions that one server declares.
type Declared struct {
	Server       string
	Capabilities []byte
}

// offer is an extension that a server declares.
type offer struct {
	server, name string
	settings     []byte
	level        int // how much of the room the server needs for what it declares up to here
	refused      bool
}

// Union joins the declarations of all servers, in the order of the config, into a raw
// object, with complaints about what is left out: what servers have no right to declare,
// what finds no room, and members on which servers differ.
//
// A server's extensions find room if it declares no more than its equal part of that; what
// others do not need is shared alike, so that nobody takes the place of another. Of an
// extension that several declare, lists are joined, and so are objects, by their members:
// clients hear what any of the servers can do. Other members that differ are left out: no
// client can go by them. Beside a list or an object they do not count, and of these two the
// first does: no server takes another's list away.
func Union(all []Declared) (union []byte, complaints []string) {
	var offers []*offer
	for _, d := range all {
		n, size := 0, 0
		for k, settings := range rawjson.Members(rawjson.Get(d.Capabilities, "extensions")) {
			name, _ := rawjson.String(k)
			if isOwn(name) {
				if name != Tasks {
					complaints = append(complaints, fmt.Sprintf("extension %q of server %q is left out: the name is Goblin's own", name, d.Server))
				}
				continue
			}
			if !rawjson.IsObject(settings) {
				continue // of a catalog that is no longer what Goblin wrote
			}
			n++
			size += len(k) + len(settings)
			offers = append(offers, &offer{server: d.Server, name: name, settings: settings, level: max(n*(maxBytes/maxOfAll), size)})
		}
	}
	admit(offers)
	found := map[string][]serverValue{}
	for _, o := range offers {
		if o.refused {
			complaints = append(complaints, fmt.Sprintf("extension %q of server %q is left out: all together have at most %d, of %d KiB, and each server its share", o.name, o.server, maxOfAll, maxBytes>>10))
			continue
		}
		found[o.name] = append(found[o.name], serverValue{o.server, o.settings})
	}
	union = []byte{'{'}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		j := merger{extension: name}
		union = rawjson.AppendMember(union, rawjson.Quote(name), j.merge("", 0, found[name]))
		if more := len(j.complaints) - 1; more > 0 {
			j.complaints = []string{fmt.Sprintf("%s; so are %d more of its members", j.complaints[0], more)}
		}
		complaints = append(complaints, j.complaints...)
	}
	return append(union, '}'), complaints
}

// admit refuses the offers for which there is no room. Those of low levels come first: of
// n servers, one that needs no more than the n-th part has all others' behind its own.
func admit(offers []*offer) {
	inLine := slices.SortedStableFunc(slices.Values(offers), func(a, b *offer) int { return cmp.Compare(a.level, b.level) })
	size := 0
	names := map[string]bool{}
	for _, o := range inLine {
		needs := len(o.name) + len(o.settings)
		if o.refused = size+needs > maxBytes || !names[o.name] && len(names) >= maxOfAll; !o.refused {
			size += needs
			names[o.name] = true
		}
	}
}

// serverValue is a value as one server declares it.
type serverValue struct {
	server string
	value  []byte
}

// merger merges the declarations of one extension by several servers.
type merger struct {
	extension  string
	complaints []string
}

func (j *merger) complain(member, format string, args ...any) {
	what := fmt.Sprintf("member %q of extension %q", member[:min(len(member), maxName)], j.extension)
	j.complaints = append(j.complaints, what+fmt.Sprintf(format, args...))
}

// merge merges the values of a member at a depth, which is 0 for the settings. It returns nil if they
// differ.
func (j *merger) merge(member string, depth int, all []serverValue) []byte {
	if len(all) == 1 {
		return all[0].value
	}
	var kind func([]byte) bool // nil when there is nothing to join
	different := map[string]bool{}
	var other string // server that differs from the first
	for _, s := range all {
		if different[string(rawjson.AppendCanonical(nil, s.value))] = true; len(different) == 2 && other == "" {
			other = s.server
		}
		switch {
		case kind != nil || depth > maxJoined:
		case rawjson.IsArray(s.value):
			kind = rawjson.IsArray
		case rawjson.IsObject(s.value):
			kind = rawjson.IsObject
		}
	}
	switch {
	case len(different) == 1:
		return all[0].value
	case j.extension == Skills && member == "directoryRead":
		// Clients without it are not asked: each URI is one server's.
		if different["true"] {
			return []byte("true")
		}
		return all[0].value
	case kind == nil:
		j.complain(member, " is left out: servers %q and %q differ in it", all[0].server, other)
		return nil
	}
	var same []serverValue
	for _, s := range all {
		if kind(s.value) {
			same = append(same, s)
		}
	}
	for _, s := range all {
		if !kind(s.value) {
			j.complain(member, " of server %q is left out: %q has another kind of value", s.server, same[0].server)
		}
	}
	if rawjson.IsArray(same[0].value) {
		return mergeLists(same)
	}
	return j.mergeObjects(member, depth, same)
}

// mergeLists returns the elements of all lists, each once.
func mergeLists(all []serverValue) []byte {
	joined := []byte{'['}
	there := map[string]bool{}
	for _, s := range all {
		for e := range rawjson.Elements(s.value) {
			same := string(rawjson.AppendCanonical(nil, e))
			if there[same] {
				continue
			}
			if len(there) > 0 {
				joined = append(joined, ',')
			}
			there[same] = true
			joined = append(joined, e...)
		}
	}
	return append(joined, ']')
}

// mergeObjects merges the members of all objects.
func (j *merger) mergeObjects(member string, depth int, all []serverValue) []byte {
	type entry struct {
		key    rawjson.Key
		values []serverValue
	}
	found := map[string]*entry{}
	for _, s := range all {
		for k, v := range rawjson.Members(s.value) {
			name, _ := rawjson.String(k)
			e := found[name]
			if e == nil {
				e = &entry{key: k}
				found[name] = e
			}
			if n := len(e.values); n == 0 || e.values[n-1].server != s.server { // else it is there twice
				e.values = append(e.values, serverValue{s.server, v})
			}
		}
	}
	joined := []byte{'{'}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		path := name
		if member != "" {
			path = member + "." + name
		}
		if v := j.merge(path, depth+1, found[name].values); v != nil {
			joined = rawjson.AppendMember(joined, found[name].key, v)
		}
	}
	return append(joined, '}')
}

// Has reports whether capabilities declare an extension.
func Has(capabilities []byte, name string) bool {
	return rawjson.IsObject(rawjson.Path(capabilities, "extensions", name))
}

// ServerCapabilities returns the part of a client's capabilities that servers get, a raw object; nil for
// nothing. Tasks is left out: package tasks adds it.
func ServerCapabilities(capabilities []byte) []byte {
	declared := rawjson.Get(capabilities, "extensions")
	if !rawjson.IsObject(declared) {
		return nil
	}
	rest := rawjson.RemoveMember(declared, Tasks)
	for range rawjson.Members(rest) {
		return rest
	}
	return nil
}

// ExtraCapabilities returns the declaration of a connection that is a client's own, nil when that is
// no more than shared ones declare. UI is always in it, since the lists are those of all.
func ExtraCapabilities(capabilities []byte) []byte {
	declared := ServerCapabilities(capabilities)
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
	for k := range rawjson.Members(ServerCapabilities(client)) {
		if name, _ := rawjson.String(k); !isOwn(name) && rawjson.Path(server, "extensions", name) != nil {
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
		edits = append(edits, rawjson.ReplaceEdit(params, raw, rawjson.Quote(own)))
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
