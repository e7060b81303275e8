package recorder

import (
	"encoding/json"
	"hash/maphash"
	"slices"
	"time"

	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/registry/recording"
)

// A catalog contains the servers and sessions that the current file describes. It writes
// lines about later changes. Only the writer uses it.
type catalog struct {
	o        *Options
	seed     maphash.Seed
	versions [registry.Kinds]uint64 // of the lists
	servers  map[string]*serverLines
	sessions map[string]registry.Session
	running  map[uint64]bool // requests with a line of their own
}

type serverLines struct {
	handshake string
	state     registry.State
	problem   string
	lists     [registry.Kinds]knownList
}

// knownList contains the hashes of definitions by the server's own names.
type knownList struct {
	first  *registry.Entry // of an immutable list
	count  int
	hashes map[string]uint64
}

func firstOf(lists *registry.Snapshot, server string, k registry.Kind) *registry.Entry {
	for e := range lists.Server(server, k) {
		return e
	}
	return nil
}

func newCatalog(o *Options) *catalog { return &catalog{o: o, seed: maphash.MakeSeed()} }

// appendAll appends the lines that begin a file, after the header.
func (c *catalog) appendAll(dst []byte) ([]byte, error) {
	c.servers, c.sessions, c.running = make(map[string]*serverLines), make(map[string]registry.Session), make(map[uint64]bool)
	c.versions = [registry.Kinds]uint64{}
	return c.appendChanges(dst)
}

// appendChanges appends lines about servers, lists and sessions.
func (c *catalog) appendChanges(dst []byte) (_ []byte, err error) {
	now, lists := time.Now(), c.o.Registry.Load()
	changed := false
	for k := range registry.Kind(registry.Kinds) {
		changed = changed || lists.Version(k) != c.versions[k]
		c.versions[k] = lists.Version(k)
	}
	for _, s := range c.o.Registry.StatesIn(lists) {
		if dst, err = c.appendServer(dst, now, lists, &s, changed); err != nil {
			return dst, err
		}
	}
	return c.appendSessions(dst, now)
}

func (c *catalog) appendServer(dst []byte, now time.Time, lists *registry.Snapshot, s *registry.ServerState, changed bool) (_ []byte, err error) {
	known := c.servers[s.Name]
	shake := c.handshake(s)
	switch {
	case known == nil || s.State == registry.StateReady && known.handshake != string(shake):
		if known == nil {
			known = new(serverLines)
			c.servers[s.Name] = known
		}
		known.handshake = string(shake)
		l := recording.Line{
			Type: recording.TypeServer, Time: now, Server: s.Name, Transport: s.Transport, Protocol: s.ProtocolVersion,
			Handshake: shake, Lists: make(map[string][]json.RawMessage),
		}
		for k := range registry.Kind(registry.Kinds) {
			all, _ := c.compare(lists, s.Name, k, &knownList{})
			known.lists[k] = c.list(lists, s.Name, k)
			if len(all) > 0 {
				l.Lists[listName(k)] = all
			}
		}
		dst, err = appendLine(dst, &l)
	case changed:
		dst, err = c.appendLists(dst, now, lists, s.Name, known)
	}
	if err != nil || s.State == known.state && s.LastError == known.problem {
		return dst, err
	}
	known.state, known.problem = s.State, s.LastError
	return appendLine(dst, &recording.Line{
		Type: recording.TypeState, Time: now, Server: s.Name, State: string(s.State), Error: c.o.Mask.String(s.LastError),
	})
}

// handshake returns the server's part of the handshake, or nil before the first one.
func (c *catalog) handshake(s *registry.ServerState) json.RawMessage {
	if s.ServerName == "" && s.ProtocolVersion == "" && len(s.Capabilities) == 0 {
		return nil
	}
	info := rawjson.Object("name", s.ServerName, "version", s.ServerVersion)
	if s.ServerTitle != "" {
		info = rawjson.SetMember(info, "title", rawjson.Quote(s.ServerTitle))
	}
	all := []byte{'{'}
	all = rawjson.AppendMember(all, rawjson.Quote("serverInfo"), info)
	if len(s.Capabilities) > 0 {
		all = rawjson.AppendMember(all, rawjson.Quote("capabilities"), s.Capabilities)
	}
	if s.Instructions != "" {
		all = rawjson.AppendMember(all, rawjson.Quote("instructions"), rawjson.Quote(s.Instructions))
	}
	all = rawjson.AppendMember(all, rawjson.Quote("protocolVersion"), rawjson.Quote(s.ProtocolVersion))
	return c.hide(append(all, '}'))
}

func (c *catalog) hide(text []byte) json.RawMessage {
	return repairJSON(c.o.Mask.Head(text, len(text)))
}

func listName(k registry.Kind) string { return k.String() + "s" }

func (c *catalog) appendLists(dst []byte, now time.Time, lists *registry.Snapshot, server string, known *serverLines) (_ []byte, err error) {
	for k := range registry.Kind(registry.Kinds) {
		if known.lists[k].first == firstOf(lists, server, k) && known.lists[k].count == lists.ServerCount(server, k) {
			continue
		}
		next := c.list(lists, server, k)
		l := recording.Line{Type: recording.TypeList, Time: now, Server: server, List: listName(k)}
		l.Added, l.Changes = c.compare(lists, server, k, &known.lists[k])
		for name := range known.lists[k].hashes {
			if _, ok := next.hashes[name]; !ok {
				l.Removed = append(l.Removed, name)
			}
		}
		slices.Sort(l.Removed)
		for _, name := range l.Removed {
			l.Changes = append(l.Changes, recording.Change{Name: name, Op: "removed"})
		}
		known.lists[k] = next
		if len(l.Changes) == 0 {
			continue
		}
		if dst, err = appendLine(dst, &l); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func (c *catalog) list(lists *registry.Snapshot, server string, k registry.Kind) knownList {
	next := knownList{first: firstOf(lists, server, k), count: lists.ServerCount(server, k), hashes: make(map[string]uint64)}
	for e := range lists.Server(server, k) {
		next.hashes[e.Name] = maphash.Bytes(c.seed, e.Own())
	}
	return next
}

// compare returns the masked definitions that are new or changed.
func (c *catalog) compare(lists *registry.Snapshot, server string, k registry.Kind, known *knownList) (added []json.RawMessage, changes []recording.Change) {
	for e := range lists.Server(server, k) {
		own := e.Own()
		hash, ok := known.hashes[e.Name]
		if ok && hash == maphash.Bytes(c.seed, own) {
			continue
		}
		op := "added"
		if ok {
			op = "changed"
		}
		added = append(added, c.hide(own))
		changes = append(changes, recording.Change{Name: e.Name, Op: op})
	}
	return added, changes
}

func (c *catalog) appendSessions(dst []byte, now time.Time) (_ []byte, err error) {
	seen := make(map[string]bool)
	for _, s := range c.o.Registry.Sessions() {
		seen[s.ID] = true
		s.IdleTime = nil // for the comparison
		known, ok := c.sessions[s.ID]
		same := ok && known.Client == s.Client && known.Version == s.Version && known.Protocol == s.Protocol && known.Transport == s.Transport
		if same {
			continue
		}
		c.sessions[s.ID] = s
		l := recording.Line{
			Type: recording.TypeClient, Time: s.Since, Session: s.ID, Client: s.Client, ClientVersion: s.Version,
			Transport: s.Transport, Protocol: s.Protocol,
		}
		if c.o.Profile != nil {
			l.Profile = c.o.Profile(s.ID)
		}
		if dst, err = appendLine(dst, &l); err != nil {
			return dst, err
		}
	}
	for id := range c.sessions {
		if !seen[id] {
			delete(c.sessions, id)
			if dst, err = appendLine(dst, &recording.Line{Type: recording.TypeClosed, Time: now, Session: id}); err != nil {
				return dst, err
			}
		}
	}
	return dst, nil
}

// appendRunning appends a line for each request that has just become slow.
func (c *catalog) appendRunning(dst []byte, now time.Time) []byte {
	if c.o.InFlight == nil {
		return dst
	}
	still := make(map[uint64]bool)
	for _, r := range c.o.InFlight() {
		if r.Number == 0 || now.Sub(r.Time) < slowRequest {
			continue
		}
		still[r.Number] = true
		if c.running[r.Number] {
			continue
		}
		var b encodedBodies
		if c.o.Bodies && r.RequestSize <= recording.MaxInline && len(r.Request) > 0 {
			b.params = repairJSON(r.Request)
		}
		r.Duration = 0 // not known yet
		dst = appendRecord(dst, &r.TrafficRecord, false, b)
	}
	c.running = still
	return dst
}
