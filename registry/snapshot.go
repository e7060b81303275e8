package registry

import (
	"container/heap"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"iter"
	"slices"
	"sort"
	"strings"

	"goblin/registry/cache"
	"goblin/registry/names"
)

// ErrBadCursor reports a cursor that is not from a page of that kind.
var ErrBadCursor = errors.New("bad cursor")

// Snapshot is the catalog at one moment. It is immutable.
type Snapshot struct {
	dir        *directory
	tables     []*table // Goblin's own, then the servers in the config's order
	lists      [Kinds]mergedList
	flat       bool
	repair     bool
	pageSize   int
	own        []string
	tools      map[string]*LocalTool
	handlers   map[string]*LocalResource
	pinned     *unapprovedTable // has its own lock
	filter     Visibility       // filter of Narrow; nil for everything
	visibility Visibility       // argument of Narrow
	full       *directory       // directory of the narrowed catalog
}

func (s *Snapshot) ownTool(name string) bool {
	return s.tools[name] != nil || slices.Contains(s.own, name)
}

// table holds the lists of one server. It is immutable; a change makes a new one, which
// shares the unchanged lists.
type table struct {
	name       string
	rule       *listingRule // nil for Goblin's own
	runs       [Kinds]*run
	hidden     bool
	open       bool
	skills     bool             // serves skills, listed or not
	overridden [Kinds]bool      // runs built from overrides of a visibility
	links      *cache.LinkCache // has its own lock; nil for Goblin's own
	whole      *table           // nil if this is the full one
	original   *table           // in the registry's own namespace; nil if this is that table
}

// directory finds tables by name. It changes only with the set of servers.
type directory struct {
	byName map[string]int
	byHead map[string][]int // by prefix of listed tool names
	byTool map[string]int   // sanitized name: the first such server in the config
	byFlat map[string][]int // by collapsed name
	// Bytes of the longest server name and the longest prefix.
	longest, longestHead int
	most                 int // maximum bytes of a listed tool name
	spellings            *names.RuleSet
}

func newDirectory(tables []*table, servers []string, most int) *directory {
	d := &directory{
		most: most, spellings: names.NewRuleSet(servers),
		byName:  map[string]int{Local: 0},
		byHead:  map[string][]int{},
		byTool:  map[string]int{},
		byFlat:  map[string][]int{Local: {0}},
		longest: len(Local),
	}
	for i, t := range tables[1:] {
		i++
		d.byName[t.name] = i
		d.byHead[t.rule.Prefix] = append(d.byHead[t.rule.Prefix], i)
		d.byFlat[names.Collapse(t.name)] = append(d.byFlat[names.Collapse(t.name)], i)
		if name := names.Sanitize(t.name); d.byTool[name] == 0 {
			d.byTool[name] = i
		}
		d.longest = max(d.longest, len(t.name))
		d.longestHead = max(d.longestHead, len(t.rule.Prefix))
	}
	return d
}

type mergedList struct {
	version  uint64
	segments []segment
}

// segment is the entries [from, to) of a run, all before those of the next segment. end
// is the number of entries up to the end of this segment.
type segment struct {
	run      *run
	from, to int
	end      int
}

func (m *mergedList) len() int {
	if len(m.segments) == 0 {
		return 0
	}
	return m.segments[len(m.segments)-1].end
}

// merge sorts runs into one list by less. It takes all entries of a run before the next
// run's head at once. So a server's resources are usually one segment.
func merge(runs []*run) []segment {
	var h mergeHeap
	for _, r := range runs {
		if r.len() > 0 {
			h = append(h, mergeHead{r, 0})
		}
	}
	heap.Init(&h)
	var segments []segment
	end := 0
	for len(h) > 0 {
		top := &h[0]
		to := len(top.run.entries)
		if next := h.second(); next != nil {
			to = top.at + sort.Search(to-top.at, func(i int) bool {
				return !less(&top.run.entries[top.at+i], &next.run.entries[next.at])
			})
		}
		end += to - top.at
		segments = append(segments, segment{top.run, top.at, to, end})
		top.at = to
		if to == len(top.run.entries) {
			heap.Pop(&h)
		} else {
			heap.Fix(&h, 0)
		}
	}
	return segments
}

// less puts Goblin's own tools first: clients that cut long lists keep the tools that
// find the others.
func less(a, b *Entry) bool {
	if own := a.Server == Local; a.Kind == Tool && own != (b.Server == Local) {
		return own
	}
	if a.Listed != b.Listed {
		return a.Listed < b.Listed
	}
	return a.Server < b.Server
}

type mergeHead struct {
	run *run
	at  int
}

type mergeHeap []mergeHead

func (h mergeHeap) Len() int { return len(h) }
func (h mergeHeap) Less(i, j int) bool {
	return less(&h[i].run.entries[h[i].at], &h[j].run.entries[h[j].at])
}
func (h mergeHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *mergeHeap) Push(x any)   { *h = append(*h, x.(mergeHead)) }
func (h *mergeHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// second returns the smallest head except the top one.
func (h mergeHeap) second() *mergeHead {
	switch {
	case len(h) < 2:
		return nil
	case len(h) > 2 && h.Less(2, 1):
		return &h[2]
	}
	return &h[1]
}

// Version returns a number that changes exactly when the visible list of a kind changes:
// its members or their content.
func (s *Snapshot) Version(k Kind) uint64 { return s.lists[k].version }

// Count returns the number of visible entries.
func (s *Snapshot) Count(k Kind) int { return s.lists[k].len() }

// All yields the visible entries in listed order: Goblin's own tools, then byte order of
// the listed name, then of the server's name.
func (s *Snapshot) All(k Kind) iter.Seq[*Entry] { return s.AllFrom(k, 0) }

// AllFrom is All without the first entries. Its cost does not depend on their number.
func (s *Snapshot) AllFrom(k Kind, first int) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		segments := s.lists[k].segments
		first := max(first, 0)
		for i := sort.Search(len(segments), func(i int) bool { return segments[i].end > first }); i < len(segments); i++ {
			g := &segments[i]
			begin := g.end - (g.to - g.from) // of its first entry
			for j := g.from + max(0, first-begin); j < g.to; j++ {
				if !yield(&g.run.entries[j]) {
					return
				}
			}
		}
	}
}

// Server yields the visible entries of one server in listed order.
func (s *Snapshot) Server(server string, k Kind) iter.Seq[*Entry] {
	return s.ServerFrom(server, k, 0)
}

// ServerFrom is Server without the first entries.
func (s *Snapshot) ServerFrom(server string, k Kind, first int) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		es := s.visible(server, k)
		for i := max(first, 0); i < len(es); i++ {
			if !yield(&es[i]) {
				return
			}
		}
	}
}

// ServerCount returns the number of visible entries of one server.
func (s *Snapshot) ServerCount(server string, k Kind) int { return len(s.visible(server, k)) }

// ByServerName returns a visible entry by its server's own name, or nil.
func (s *Snapshot) ByServerName(server string, k Kind, name string) *Entry {
	t := s.table(server)
	if t == nil || t.hidden {
		return nil
	}
	return t.runs[k].name(hashKey(name), name)
}

func (s *Snapshot) visible(server string, k Kind) []Entry {
	t := s.table(server)
	if t == nil || t.hidden || t.runs[k] == nil {
		return nil
	}
	return t.runs[k].entries
}

func (s *Snapshot) table(server string) *table {
	if i, ok := s.dir.byName[server]; ok {
		return s.tables[i]
	}
	return nil
}

// Page is a part of a list.
type Page struct {
	// Chunks are, concatenated, the content of the JSON array, including commas. They
	// alias the snapshot and must not be modified.
	Chunks [][]byte
	Next   string // of the next page; "" on the last
}

var comma = []byte{','}

// Page returns the page after the cursor, or the first one for "". A cursor stays valid
// when the list changes: the page starts after the last entry that the client saw. The
// cost does not depend on the size of the list. An invalid cursor returns [ErrBadCursor].
func (s *Snapshot) Page(k Kind, cursor string) (Page, error) { return s.page(k, cursor, false) }

// LegacyPage is Page for clients with protocol 2025-11-25 or older, whose SDKs refuse
// some output schemas.
func (s *Snapshot) LegacyPage(k Kind, cursor string) (Page, error) { return s.page(k, cursor, true) }

func (s *Snapshot) page(k Kind, cursor string, legacy bool) (Page, error) {
	m := &s.lists[k]
	at := 0 // number of the page's first entry
	if cursor != "" {
		listed, server, err := openCursor(k, cursor)
		if err != nil {
			return Page{}, err
		}
		at = m.after(&Entry{Kind: k, Listed: listed, Server: server})
	}
	end := min(at+s.pageSize, m.len())
	if at >= end {
		return Page{}, nil
	}
	first := sort.Search(len(m.segments), func(i int) bool { return m.segments[i].end > at })
	last := first + sort.Search(len(m.segments)-first, func(i int) bool { return m.segments[first+i].end >= end })
	p := Page{Chunks: make([][]byte, 0, 2*(last-first)+1)}
	var tip *Entry
	for i := first; i <= last; i++ {
		g := &m.segments[i]
		begin := g.end - (g.to - g.from) // of its first entry
		from, to := g.from+max(0, at-begin), g.from+min(end, g.end)-begin
		if i > first {
			p.Chunks = append(p.Chunks, comma)
		}
		p.Chunks = append(p.Chunks, g.run.json(from, to, legacy))
		tip = &g.run.entries[to-1]
	}
	if end < m.len() {
		p.Next = newCursor(k, tip)
	}
	return p, nil
}

func (m *mergedList) after(e *Entry) int {
	i := sort.Search(len(m.segments), func(i int) bool {
		g := &m.segments[i]
		return less(e, &g.run.entries[g.to-1])
	})
	if i == len(m.segments) {
		return m.len()
	}
	g := &m.segments[i]
	n := sort.Search(g.to-g.from, func(j int) bool { return less(e, &g.run.entries[g.from+j]) })
	return g.end - (g.to - g.from) + n
}

// A cursor is base64url of: a byte for version and kind, the last entry's name, a zero
// byte, its server, and a checksum. It is neither secret nor authenticated.
const cursorVersion = 0x10

func newCursor(k Kind, e *Entry) string {
	b := make([]byte, 0, len(e.Listed)+len(e.Server)+6)
	b = append(b, cursorVersion|byte(k))
	b = append(b, e.Listed...)
	b = append(b, 0)
	b = append(b, e.Server...)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return base64.RawURLEncoding.EncodeToString(b)
}

func openCursor(k Kind, cursor string) (listed, server string, err error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || strings.ContainsAny(cursor, "\r\n") || len(b) < 6 || b[0] != cursorVersion|byte(k) {
		return "", "", ErrBadCursor
	}
	body, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if crc32.ChecksumIEEE(body) != sum {
		return "", "", ErrBadCursor
	}
	key := string(body[1:])
	at := strings.LastIndexByte(key, 0)
	if at < 0 {
		return "", "", ErrBadCursor
	}
	return key[:at], key[at+1:], nil
}

// Part is the non-empty visible list of one server and kind. Parts are equal (==) across
// snapshots as long as the list did not change. So callers with data per list need to
// process only changed parts.
type Part struct {
	kind Kind
	run  *run
}

// Parts yields the visible lists by kind, Goblin's own before the servers in the config's
// order.
func (s *Snapshot) Parts() iter.Seq[Part] {
	return func(yield func(Part) bool) {
		for k := range Kind(Kinds) {
			for _, t := range s.tables {
				if !t.hidden && t.runs[k].len() > 0 && !yield(Part{k, t.runs[k]}) {
					return
				}
			}
		}
	}
}

// Kind returns the kind of the list.
func (p Part) Kind() Kind { return p.kind }

// Server returns the server of the list.
func (p Part) Server() string { return p.run.server }

// Len returns the number of entries, 0 for the zero Part.
func (p Part) Len() int { return p.run.len() }

// At returns entry i in byte order of listed names.
func (p Part) At(i int) *Entry { return &p.run.entries[i] }
