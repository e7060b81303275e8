package registry

import (
	"slices"

	"goblin/registry/definition"
	"goblin/registry/names"
	"goblin/registry/rawjson"
)

// Visibility defines which part of a catalog some clients see. Its results must not
// change. Values are compared with ==.
type Visibility interface {
	// Server reports whether clients see anything of a server, including [Local].
	Server(name string) bool
	// All reports whether clients see all entries of a kind. Then Has is not called.
	All(server string, k Kind) bool
	// Has reports whether clients see an entry, listed or not, by its server's own name.
	Has(server string, k Kind, name string) bool
	// WithLists returns the visibility for lists with these numbers of entries. It may
	// differ only in Goblin's own tools.
	WithLists(listed [Kinds]int) Visibility
	// Overrides returns overrides for these clients in addition to the config's, or nil.
	Overrides(server string) *definition.Set
}

// Narrow returns the catalog restricted to c, with its overrides applied. Hidden entries
// behave exactly like unknown ones, under any name.
//
// before is an earlier result or nil. Unchanged parts are shared with it, and list
// versions continue from it. Definitions of resources and of lists without overrides are
// not copied.
func (s *Snapshot) Narrow(c Visibility, before *Snapshot) *Snapshot {
	next := *s
	next.visibility, next.full = c, s.dir
	next.tables = append(make([]*table, 0, len(s.tables)), new(table)) // Goblin's own, added below
	same, listed := before != nil && before.visibility == c, [Kinds]int{}
	for _, t := range s.tables[1:] {
		if !c.Server(t.name) {
			continue
		}
		var was *table
		if same {
			was = before.table(t.name)
		}
		next.tables = append(next.tables, s.narrowTable(t, c, was))
	}
	for k := range Kind(Kinds) {
		for _, r := range next.visibleRuns(k) {
			listed[k] += len(r.entries)
		}
	}
	next.filter = c.WithLists(listed)
	var was *table
	if same && before.filter == next.filter {
		was = before.tables[0]
	}
	next.tables[0] = s.narrowTable(s.tables[0], next.filter, was)
	if same && before.full == s.dir {
		next.dir = before.dir
	} else {
		next.dir = newDirectory(next.tables, nil, s.dir.most)
		next.dir.spellings = s.dir.spellings // names do not depend on visibility
	}
	for k := range Kind(Kinds) {
		next.lists[k] = next.narrowed(k, s, before)
	}
	return &next
}

// was is the previous result, or nil.
func (s *Snapshot) narrowTable(t *table, c Visibility, was *table) *table {
	if was != nil && was.whole == t {
		return was
	}
	u := *t
	u.whole = t
	over := listingRule{overrides: c.Overrides(t.name)}
	if over.overrides != nil && t.rule != nil {
		both := *t.rule
		both.overrides = over.overrides.Merge(both.overrides)
		u.rule = &both
	}
	for k := range Kind(Kinds) {
		if was != nil && was.whole.runs[k] == t.runs[k] {
			u.runs[k], u.overridden[k] = was.runs[k], was.overridden[k]
			continue
		}
		mine := t.rule != nil && t.runs[k].anyNamedIn(over.overridesOf(k))
		u.overridden[k] = mine || t.overridden[k]
		switch {
		case !mine:
			u.runs[k] = t.runs[k].narrow(k, c, nil)
		case k == Tool || k == Prompt:
			rebuilt := s.buildOptions(&u, k)
			rebuilt.admit = func(all []Definition) []bool {
				yes := make([]bool, len(all))
				for i := range all {
					yes[i] = c.Has(t.name, k, all[i].Name)
				}
				return yes
			}
			u.runs[k], _ = build(rebuilt, t.runs[k].definitions())
		default:
			u.runs[k] = t.runs[k].narrow(k, c, u.rule.overridesOf(k))
		}
	}
	return &u
}

func (s *Snapshot) narrowed(k Kind, whole, before *Snapshot) mergedList {
	is, all := s.visibleRuns(k), whole.lists[k]
	if before != nil {
		was := before.visibleRuns(k)
		if slices.Equal(was, is) {
			return before.lists[k]
		}
		all.version = before.lists[k].version
		if !slices.EqualFunc(was, is, (*run).looksLike) {
			all.version++
		}
	}
	if !slices.Equal(is, whole.visibleRuns(k)) {
		all.segments = merge(is)
	}
	return all
}

// narrow returns a run of the visible entries. The overrides must not rename entries.
func (r *run) narrow(k Kind, c Visibility, over map[string]*definition.Override) *run {
	if r == nil || over == nil && c.All(r.server, k) {
		return r
	}
	kept := make([]int32, 0, len(r.entries))
	for i := range r.entries {
		if c.Has(r.server, k, r.entries[i].Name) {
			kept = append(kept, int32(i))
		}
	}
	n := &run{server: r.server, links: r.links, entries: make([]Entry, len(kept)), part: kept, whole: r}
	switch {
	case len(kept) == 0:
		return nil
	case len(kept) < len(r.entries):
	case over == nil:
		return r
	default: // same entries, so the indexes stay valid
		all := *r
		all.part, all.whole, all.entries = kept, r, slices.Clone(r.entries)
		all.applyOverrides(over)
		return &all
	}
	places := r.receivedPlaces(k)
	var drafts []draft
	if k == Tool || k == Template {
		drafts = make([]draft, len(kept))
	}
	for to, i := range kept {
		n.entries[to] = r.entries[i]
		if drafts != nil {
			drafts[to] = r.draft(k, int(i), places)
		}
	}
	if k == Resource && 4*len(kept) > len(r.entries) {
		n.indexPart()
	} else {
		n.index(k, drafts)
	}
	n.applyOverrides(over)
	return n
}

// indexPart is index for a large part of a resource list. It derives the indexes from the
// whole list.
func (r *run) indexPart() {
	places := slices.Repeat([]int32{-1}, len(r.whole.entries))
	for to, from := range r.part {
		places[from] = int32(to)
	}
	r.byName, r.byFlat = r.whole.byName.reordered(places), r.whole.byFlat.reordered(places)
	if len(r.whole.byPlain.slots) > 0 {
		r.indexPlain()
	}
	if len(r.whole.byNorm.slots) > 0 {
		r.indexNorm()
	}
}

func (r *run) anyNamedIn(over map[string]*definition.Override) bool {
	for name := range over {
		if r.name(hashKey(name), name) != nil {
			return true
		}
	}
	return false
}

func (r *run) applyOverrides(over map[string]*definition.Override) {
	if over == nil {
		return
	}
	types := map[string]string{}
	for i := range r.entries {
		e := &r.entries[i]
		o := over[e.Name]
		if o == nil {
			continue
		}
		item := e.originalJSON()
		d := draft{item: item}
		if e.repaired != nil {
			_ = d.repair(e.Kind) // never fails for these kinds
		}
		json, applied := o.Resource(d.item)
		e.json, e.respelled = rawjson.OneLine(rawjson.SetMember(json, nameMember(e.Kind), rawjson.Quote(e.Listed))), false
		e.Original, e.Override = item, applied
		e.Label, e.Title, e.Description = "", "", ""
		e.describe(types)
		r.part[i] = -1
	}
}

// gatherJSON is json for a partial run. It copies only the requested entries: a copy of
// whole parts would be as large as the catalog for each view.
func (r *run) gatherJSON(from, to int, legacy bool) []byte {
	var out []byte
	for at := from; at < to; {
		first := r.part[at]
		next := at + 1
		if at > from {
			out = append(out, ',')
		}
		if first < 0 || r.entries[at].respelled { // differs from the definition in whole
			out = append(out, r.entries[at].definition(legacy)...)
			at = next
			continue
		}
		for next < to && r.part[next] == first+int32(next-at) && !r.entries[next].respelled {
			next++
		}
		out = append(out, r.whole.json(int(first), int(first)+next-at, legacy)...)
		at = next
	}
	return out
}

func (r *run) receivedPlaces(k Kind) []int {
	if k != Template {
		return nil
	}
	at := make([]int, len(r.entries))
	for place, i := range r.order {
		at[i] = place
	}
	return at
}

// draft recreates inputs of the indexes that entries do not store.
func (r *run) draft(k Kind, i int, places []int) (d draft) {
	e := &r.entries[i]
	switch {
	case k == Template:
		d.tpl, _ = names.ParseTemplate(e.Name) // parsed before, so valid
		d.order = places[i]
	case k == Tool && len(r.byFull.slots) > 0:
		full := byFull(e)
		first, second := r.byFull.find(r.entries, hashKey(full), full, byFull)
		d.ownsFullName = first == e || second == e
		d.suffixed = d.ownsFullName
	}
	return d
}

func (s *Snapshot) visibleRuns(k Kind) []*run {
	runs := make([]*run, 0, len(s.tables))
	for _, t := range s.tables {
		if !t.hidden && t.runs[k] != nil {
			runs = append(runs, t.runs[k])
		}
	}
	return runs
}

// IsVisible reports whether this catalog would include an entry of a server, listed or
// not.
func (s *Snapshot) IsVisible(server string, k Kind, name string) bool {
	return s.filter == nil || s.filter.Has(server, k, name)
}

// Visibility returns the argument of Narrow, or nil for a whole catalog.
func (s *Snapshot) Visibility() Visibility { return s.visibility }

// HasServer reports whether the catalog has the server.
func (s *Snapshot) HasServer(server string) bool { return s.table(server) != nil }

// KnownServers returns the names of existing servers. It overwrites names.
func (s *Snapshot) KnownServers(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return !s.HasServer(name) })
}
