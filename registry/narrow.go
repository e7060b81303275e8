package registry

import (
	"slices"

	"goblin/registry/urimatch"
)

// Choice says what of a catalog some clients see. What it answers must not change, and
// two of them are compared with ==.
type Choice interface {
	// Server reports whether clients see anything of a server, [Local] among them.
	Server(name string) bool
	// All reports whether they see all that it has of a kind: then nothing is asked about
	// its entries.
	All(server string, k Kind) bool
	// Has reports whether they see one thing, listed or not, by its server's own name for
	// it.
	Has(server string, k Kind, name string) bool
	// Within is the choice where so much of servers is listed: it differs in Goblin's own
	// tools, if at all.
	Within(listed [Kinds]int) Choice
}

// Narrow is the catalog with nothing in it but what was chosen: what is left out is as
// unknown as what never was, by whatever name. The names of all else are the same.
//
// before is an earlier result or nil: what did not change since is shared with it, and
// versions of lists go on from its. Definitions are never copied.
func (s *Snapshot) Narrow(c Choice, before *Snapshot) *Snapshot {
	next := *s
	next.asked, next.whole = c, s.dir
	next.tables = append(make([]*table, 0, len(s.tables)), new(table)) // Goblin's own come when the rest is known
	same, listed := before != nil && before.asked == c, [Kinds]int{}
	for _, t := range s.tables[1:] {
		if !c.Server(t.name) {
			continue
		}
		var was *table
		if same {
			was = before.table(t.name)
		}
		next.tables = append(next.tables, t.narrow(c, was))
	}
	for k := range Kind(Kinds) {
		for _, r := range next.visibleRuns(k) {
			listed[k] += len(r.entries)
		}
	}
	next.choice = c.Within(listed)
	var was *table
	if same && before.choice == next.choice {
		was = before.tables[0]
	}
	next.tables[0] = s.tables[0].narrow(next.choice, was)
	if same && before.whole == s.dir {
		next.dir = before.dir
	} else {
		next.dir = newDirectory(next.tables, nil, s.dir.most)
		next.dir.spellings = s.dir.spellings // names do not depend on what is chosen
	}
	for k := range Kind(Kinds) {
		next.lists[k] = next.narrowed(k, s, before)
	}
	return &next
}

// narrow is a table with what is chosen of it; was is the one before, or nil.
func (t *table) narrow(c Choice, was *table) *table {
	if was != nil && was.from == t {
		return was
	}
	u := *t
	u.from = t
	for k := range Kind(Kinds) {
		if was != nil && was.from.runs[k] == t.runs[k] {
			u.runs[k] = was.runs[k]
			continue
		}
		u.runs[k] = t.runs[k].narrow(k, c)
	}
	return &u
}

// narrowed is the list of a kind: that of before if nothing in it changed.
func (s *Snapshot) narrowed(k Kind, whole, before *Snapshot) merged {
	is, all := s.visibleRuns(k), whole.lists[k]
	if before != nil {
		was := before.visibleRuns(k)
		if slices.Equal(was, is) {
			return before.lists[k]
		}
		if all.version = before.lists[k].version; !slices.EqualFunc(was, is, (*run).looksLike) {
			all.version++
		}
	}
	if !slices.Equal(is, whole.visibleRuns(k)) {
		all.segments = merge(is)
	}
	return all
}

// narrow is a run of the entries that are chosen.
func (r *run) narrow(k Kind, c Choice) *run {
	if r == nil || c.All(r.server, k) {
		return r
	}
	kept := make([]int32, 0, len(r.entries))
	for i := range r.entries {
		if c.Has(r.server, k, r.entries[i].Name) {
			kept = append(kept, int32(i))
		}
	}
	switch len(kept) {
	case 0:
		return nil
	case len(r.entries):
		return r
	}
	n := &run{server: r.server, links: r.links, entries: make([]Entry, len(kept)), part: kept, whole: r}
	places := r.places(k)
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
	n.index(k, drafts)
	return n
}

// gather is json of a part. Pages are small, and copies of all of it would be as large as
// the catalog, for each view.
func (r *run) gather(from, to int) []byte {
	var out []byte
	for at := from; at < to; {
		first := r.part[at]
		next := at + 1
		for next < to && r.part[next] == first+int32(next-at) {
			next++
		}
		if at > from {
			out = append(out, ',')
		}
		out = append(out, r.whole.json(int(first), int(first)+next-at)...)
		at = next
	}
	return out
}

// places are, of templates, the places of entries in the list as received.
func (r *run) places(k Kind) []int {
	if k != Template {
		return nil
	}
	at := make([]int, len(r.entries))
	for place, i := range r.order {
		at[i] = place
	}
	return at
}

// draft is what the tables are made from that entries do not have.
func (r *run) draft(k Kind, i int, places []int) (d draft) {
	e := &r.entries[i]
	switch {
	case k == Template:
		d.tpl, _ = urimatch.Parse(e.Name) // it was parsed before
		d.order = places[i]
	case k == Tool && len(r.byFull.slots) > 0:
		full := byFull(e)
		first, second := r.byFull.find(r.entries, hashKey(full), full, byFull)
		d.full = first == e || second == e
		d.tailed = d.full
	}
	return d
}

// visibleRuns are the runs of a kind that are listed.
func (s *Snapshot) visibleRuns(k Kind) []*run {
	runs := make([]*run, 0, len(s.tables))
	for _, t := range s.tables {
		if !t.hidden && t.runs[k] != nil {
			runs = append(runs, t.runs[k])
		}
	}
	return runs
}

// Sees reports whether one thing of a server, listed or not, is part of this catalog if it
// is anywhere.
func (s *Snapshot) Sees(server string, k Kind, name string) bool {
	return s.choice == nil || s.choice.Has(server, k, name)
}

// Choice is what Narrow was given, nil for a whole catalog.
func (s *Snapshot) Choice() Choice { return s.asked }

// Knows reports whether there is such a server.
func (s *Snapshot) Knows(server string) bool { return s.table(server) != nil }

// Only are those of the names that are servers here. It writes over names.
func (s *Snapshot) Only(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return !s.Knows(name) })
}
