// Package extensions merges and filters the protocol extensions of clients and servers.
//
// All functions are pure, except [Complaints], and take raw valid JSON. The package must
// not know connections.
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

// Extensions that Goblin supports itself.
const (
	UI     = "io.modelcontextprotocol/ui"
	Skills = "io.modelcontextprotocol/skills"
	Tasks  = "io.modelcontextprotocol/tasks"
)

// defaultSet is declared to servers on shared connections; otherwise they don't list their
// apps.
const defaultSet = `{"` + UI + `":{"mimeTypes":["text/html;profile=mcp-app"]}}`

const ofClients = `{"elicitation":{"form":{},"url":{}},"extensions":` + defaultSet +
	`,"roots":{"listChanged":true},"sampling":{"context":{},"tools":{}}}`

// ForClients returns the client capabilities that servers get. Requests are still sent
// only to clients that support them.
func ForClients(roots bool) []byte {
	if roots {
		return []byte(ofClients)
	}
	return rawjson.RemoveMember([]byte(ofClients), "roots")
}

// Limits of declarations: the first three per server, the others for all servers.
const (
	maxName     = 200 // bytes
	maxSettings = 16 << 10
	maxOfServer = 64
	maxOfAll    = 256
	maxBytes    = 256 << 10
	// maxJoined is the merge depth. Each level costs a scan of the values below.
	maxJoined = 4
)

func isOwn(name string) bool {
	return name == Tasks || name == "goblin" || strings.HasPrefix(name, "goblin/")
}

// LimitExtensions drops extensions over the limits from a server's capabilities.
// complaint names them, or is "". Tasks is kept for clients with tasks.
func LimitExtensions(capabilities []byte) (limited []byte, complaint string) {
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
		complaint = fmt.Sprintf("%d extensions dropped: at most %d per server", over, maxOfServer)
	}
	if len(large) > 0 {
		complaint += fmt.Sprintf("%sextension %q and %d more dropped: settings must be an object of at most %d KiB, names at most %d bytes",
			strings.Repeat("; ", min(len(complaint), 1)), large[0], len(large)-1, maxSettings>>10, maxName)
	}
	if complaint == "" && rawjson.IsObject(declared) {
		return capabilities, ""
	}
	return rawjson.SetMember(rawjson.RemoveMember(capabilities, "extensions"), "extensions", append(some, '}')), complaint
}

// Declared holds what a server declared.
type Declared struct {
	Server       string
	Capabilities []byte
}

type offer struct {
	server, name string
	settings     []byte
	level        int // server's use of the limits up to here
	refused      bool
}

// Union merges the extensions of all servers, in config order, with complaints about
// dropped ones and members.
//
// A server within its equal share of the limits keeps all. Unused shares are divided, so
// that no server displaces another. Lists are concatenated and objects merged, so that
// clients see the abilities of any server. Other members that differ are dropped, since
// no client could rely on them. The first list or object determines a member's type, so
// no server can remove another's list.
func Union(all []Declared) (union []byte, complaints []string) {
	var offers []*offer
	for _, d := range all {
		n, size := 0, 0
		for k, settings := range rawjson.Members(rawjson.Get(d.Capabilities, "extensions")) {
			name, _ := rawjson.String(k)
			if isOwn(name) {
				if name != Tasks {
					complaints = append(complaints, fmt.Sprintf("extension %q of server %q dropped: the name is reserved for Goblin", name, d.Server))
				}
				continue
			}
			if !rawjson.IsObject(settings) {
				continue // from a cached list that was edited
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
			complaints = append(complaints, fmt.Sprintf("extension %q of server %q dropped: at most %d extensions with %d KiB in total, shared equally between servers", o.name, o.server, maxOfAll, maxBytes>>10))
			continue
		}
		found[o.name] = append(found[o.name], serverValue{o.server, o.settings})
	}
	union = []byte{'{'}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		j := merger{extension: name}
		union = rawjson.AppendMember(union, rawjson.Quote(name), j.merge("", 0, found[name]))
		if more := len(j.complaints) - 1; more > 0 {
			j.complaints = []string{fmt.Sprintf("%s; %d more of its members dropped", j.complaints[0], more)}
		}
		complaints = append(complaints, j.complaints...)
	}
	return append(union, '}'), complaints
}

// admit refuses offers over the limits. Low levels have priority, so an equal share is
// never refused.
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

type serverValue struct {
	server string
	value  []byte
}

type merger struct {
	extension  string
	complaints []string
}

func (j *merger) complain(member, format string, args ...any) {
	what := fmt.Sprintf("member %q of extension %q", member[:min(len(member), maxName)], j.extension)
	j.complaints = append(j.complaints, what+fmt.Sprintf(format, args...))
}

// merge merges a member's values, or returns nil if they differ. Settings have depth 0.
func (j *merger) merge(member string, depth int, all []serverValue) []byte {
	if len(all) == 1 {
		return all[0].value
	}
	var kind func([]byte) bool // nil if not mergeable
	different := map[string]bool{}
	var other string // first server with a different value
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
		// Each request is about one server's URI.
		if different["true"] {
			return []byte("true")
		}
		return all[0].value
	case kind == nil:
		j.complain(member, " dropped: servers %q and %q differ", all[0].server, other)
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
			j.complain(member, " of server %q dropped: %q has another type", s.server, same[0].server)
		}
	}
	if rawjson.IsArray(same[0].value) {
		return mergeLists(same)
	}
	return j.mergeObjects(member, depth, same)
}

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
			if n := len(e.values); n == 0 || e.values[n-1].server != s.server { // skip duplicate keys
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

// has reports whether capabilities declare an extension.
func has(capabilities []byte, name string) bool {
	return rawjson.IsObject(rawjson.Path(capabilities, "extensions", name))
}

// ServerCapabilities returns a client's extensions for servers, or nil. Package tasks
// adds Tasks.
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

// ExtraCapabilities returns the extensions for a client's own connection, or nil if they
// equal those on shared ones. UI is always included, because lists are the same for all
// clients.
func ExtraCapabilities(capabilities []byte) []byte {
	declared := ServerCapabilities(capabilities)
	for k := range rawjson.Members(declared) {
		if k.Is(UI) {
			continue
		}
		if !has(capabilities, UI) {
			declared = rawjson.SetMember(declared, UI, rawjson.Get([]byte(defaultSet), UI))
		}
		return declared
	}
	return nil
}

// Shared reports whether client and server share an extension that is not Goblin's.
func Shared(client, server []byte) bool {
	for k := range rawjson.Members(ServerCapabilities(client)) {
		if name, _ := rawjson.String(k); !isOwn(name) && rawjson.Path(server, "extensions", name) != nil {
			return true
		}
	}
	return false
}

// members lists the params that determine the owner of a request, by precedence.
var members = [...]string{"uri", "name", "taskId"}

// maxValue is the maximum length of a member, in bytes.
const maxValue = 64 << 10

// Route returns the server that owns a request by the first member with an owner, or "".
// edits replace that server's values in params by original names. owner returns a value's
// server and original name; an error stops the search.
func Route(params []byte, owner func(member, value string) (server, own string, err error)) (server string, edits []rawjson.Edit, err error) {
	for _, member := range members {
		raw := rawjson.Get(params, member)
		value, ok := rawjson.String(raw)
		if !ok || len(value) > maxValue {
			continue
		}
		of, own, err := owner(member, value)
		switch {
		case err != nil && server == "":
			return "", nil, err
		case err != nil, of == "", server != "" && of != server:
			continue
		}
		server = of
		edits = append(edits, rawjson.ReplaceEdit(params, raw, rawjson.Quote(own)))
	}
	slices.SortFunc(edits, func(a, b rawjson.Edit) int { return cmp.Compare(a.Start, b.Start) })
	return server, edits, nil
}

// Complaints filters out complaints of [Union] that were logged already. It is safe for
// concurrent use.
type Complaints struct {
	mu   sync.Mutex
	last []string
}

// New returns the new complaints.
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
