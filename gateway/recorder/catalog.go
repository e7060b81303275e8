package recorder

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/registry/recording"
)

// view is the catalog and the sessions at a moment. It is immutable.
type view struct {
	at       time.Time
	lists    *registry.Snapshot
	servers  []registry.ServerState
	sessions []registry.Session
	profiles map[string]string // of all sessions
	changes  uint64            // number of the next change of a list
}

// newView returns the current view. before is the previous one, or nil.
func newView(o *Options, before *view) *view {
	v := &view{at: time.Now(), lists: o.Registry.Load(), sessions: o.Registry.Sessions(), profiles: make(map[string]string)}
	v.changes = o.Registry.ListChanges().Stats().Next
	v.servers = o.Registry.StatesIn(v.lists)
	known := make(map[string]*registry.Session)
	if before != nil {
		for i := range before.sessions {
			known[before.sessions[i].ID] = &before.sessions[i]
		}
	}
	for i := range v.sessions {
		s := &v.sessions[i]
		switch old := known[s.ID]; {
		case old != nil && sameClient(old, s):
			v.profiles[s.ID] = before.profiles[s.ID]
		case o.Profile != nil:
			v.profiles[s.ID] = o.Profile(s.ID)
		default:
			v.profiles[s.ID] = ""
		}
	}
	return v
}

// A catalog contains the servers and sessions that the current file describes. It writes
// lines about later changes. Only the writer uses it.
type catalog struct {
	o        *Options
	view     *view // the described one
	changes  map[listOf][]recording.Change
	versions [registry.Kinds]uint64 // of the lists
	servers  map[string]*serverLines
	sessions map[string]registry.Session
	closed   map[string]bool // sessions without a line about their end
	running  map[uint64]bool // requests with a line of their own
}

type serverLines struct {
	handshake string
	state     registry.State
	problem   string
	lists     [registry.Kinds]knownList
}

// listOf is a list of a server.
type listOf struct {
	server string
	kind   registry.Kind
}

// A knownList contains the entries of an immutable list by the server's own names.
type knownList struct {
	first   *registry.Entry
	count   int
	entries map[string]*registry.Entry
}

func firstOf(lists *registry.Snapshot, server string, k registry.Kind) *registry.Entry {
	for e := range lists.Server(server, k) {
		return e
	}
	return nil
}

// Head returns the lines that begin a recording: the header, servers with their lists, and
// sessions. They have the time of the process's start, because traffic of the past follows.
// Options need no Folder.
func Head(o Options) (lines []recording.Line, err error) {
	c := &catalog{o: &o, view: newView(&o, nil)}
	c.view.at = processStart
	text, err := c.appendHead(processStart, o.Settings)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var l recording.Line
		if err := json.Unmarshal(line, &l); err != nil {
			return nil, err
		}
		lines = append(lines, l)
	}
	return lines, nil
}

func (c *catalog) appendHead(now time.Time, settings json.RawMessage) ([]byte, error) {
	head, err := appendLine(nil, &recording.Line{
		Type: recording.TypeRecording, Time: now, Version: recording.Version, Goblin: c.o.Version, Config: c.o.Config,
		Bodies: c.o.Bodies, Settings: settings, Started: processStart,
	})
	if err != nil {
		return nil, err
	}
	return c.appendAll(head)
}

// appendAll appends the lines that begin a file, after the header.
func (c *catalog) appendAll(dst []byte) ([]byte, error) {
	c.servers, c.sessions, c.running = make(map[string]*serverLines), make(map[string]registry.Session), make(map[uint64]bool)
	c.versions = [registry.Kinds]uint64{}
	return c.appendChanges(dst, c.view)
}

// appendChanges appends lines about servers, lists and new sessions. appendClosed follows
// the traffic that was recorded meanwhile.
func (c *catalog) appendChanges(dst []byte, v *view) (_ []byte, err error) {
	c.readChanges(c.view.changes, v.changes)
	c.view = v
	lists := v.lists
	changed := false
	for k := range registry.Kind(registry.Kinds) {
		changed = changed || lists.Version(k) != c.versions[k]
		c.versions[k] = lists.Version(k)
	}
	for i := range v.servers {
		if dst, err = c.appendServer(dst, v.at, lists, &v.servers[i], changed); err != nil {
			return dst, err
		}
	}
	return c.appendSessions(dst)
}

// readChanges reads the meaning of changes from the registry's journal.
func (c *catalog) readChanges(from, next uint64) {
	c.changes = nil
	if next <= from {
		return
	}
	c.changes = make(map[listOf][]recording.Change)
	for _, one := range c.o.Registry.ListChanges().Window(from, int(next-from)) {
		change := recording.Change{Name: c.o.Mask.String(one.Name), Op: one.Op}
		for _, text := range one.What {
			change.What = append(change.What, c.o.Mask.String(text))
		}
		of := listOf{one.Server, one.Kind}
		c.changes[of] = append(c.changes[of], change)
	}
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
			known.lists[k] = newKnownList(lists, s.Name, k)
			for e := range lists.Server(s.Name, k) {
				l.Lists[listName(k)] = append(l.Lists[listName(k)], c.hide(e.Own()))
			}
		}
		dst, err = appendLine(dst, &l) // readers compare the lists
	case changed || len(c.changes) > 0:
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
		l := recording.Line{Type: recording.TypeList, Time: now, Server: server, List: listName(k), Changes: c.changes[listOf{server, k}]}
		before := known.lists[k]
		if before.first != firstOf(lists, server, k) || before.count != lists.ServerCount(server, k) {
			known.lists[k] = newKnownList(lists, server, k)
			c.compare(&l, before, lists.Server(server, k), known.lists[k])
		}
		if len(l.Added)+len(l.Removed)+len(l.Changes) == 0 {
			continue
		}
		if dst, err = appendLine(dst, &l); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func newKnownList(lists *registry.Snapshot, server string, k registry.Kind) knownList {
	list := knownList{first: firstOf(lists, server, k), count: lists.ServerCount(server, k), entries: make(map[string]*registry.Entry)}
	for e := range lists.Server(server, k) {
		list.entries[e.Name] = e
	}
	return list
}

// compare sets the difference of two lists.
func (c *catalog) compare(l *recording.Line, before knownList, all iter.Seq[*registry.Entry], now knownList) {
	for e := range all {
		own := e.Own()
		if old := before.entries[e.Name]; old == nil || !bytes.Equal(old.Own(), own) {
			l.Added = append(l.Added, c.hide(own))
		}
	}
	for name := range before.entries {
		if now.entries[name] == nil {
			l.Removed = append(l.Removed, c.o.Mask.String(name))
		}
	}
	slices.Sort(l.Removed)
}

func sameClient(a, b *registry.Session) bool {
	return a.Client == b.Client && a.Version == b.Version && a.Protocol == b.Protocol && a.Transport == b.Transport
}

func (c *catalog) appendSessions(dst []byte) (_ []byte, err error) {
	c.closed = make(map[string]bool, len(c.sessions))
	for id := range c.sessions {
		c.closed[id] = true
	}
	for _, s := range c.view.sessions {
		delete(c.closed, s.ID)
		if known, ok := c.sessions[s.ID]; ok && sameClient(&known, &s) {
			continue
		}
		c.sessions[s.ID] = s
		l := recording.Line{
			Type: recording.TypeClient, Time: s.Since, Session: s.ID, Client: s.Client, ClientVersion: s.Version,
			Transport: s.Transport, Protocol: s.Protocol, Profile: c.view.profiles[s.ID],
		}
		if dst, err = appendLine(dst, &l); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// appendClosed appends lines about the sessions that the last appendChanges missed.
func (c *catalog) appendClosed(dst []byte, now time.Time) (_ []byte, err error) {
	for id := range c.closed {
		delete(c.sessions, id)
		if dst, err = appendLine(dst, &recording.Line{Type: recording.TypeClosed, Time: now, Session: id}); err != nil {
			return dst, err
		}
	}
	c.closed = nil
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
