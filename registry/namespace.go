package registry

import (
	"cmp"
	"slices"
	"strings"

	"goblin/registry/names"
)

// InNamespace returns the catalog with resources, templates and links to them listed in a
// namespace, flat or not. It returns s if s already uses it. Unchanged lists are shared
// with before, an earlier result for the namespace or nil. Only definitions of tools with
// links to resources are copied.
func (s *Snapshot) InNamespace(flat bool, before *Snapshot) *Snapshot {
	if s.flat == flat {
		return s
	}
	next := *s
	next.flat = flat
	next.tables = make([]*table, len(s.tables))
	for i, t := range s.tables {
		var was *table
		if before != nil {
			was = before.table(t.name)
		}
		next.tables[i] = next.translate(t, was)
	}
	for k := range Kind(Kinds) {
		next.lists[k] = next.narrowed(k, s, before)
	}
	return &next
}

// UsesFlatIDs reports whether resources are listed by flat ids.
func (s *Snapshot) UsesFlatIDs() bool { return s.flat }

// was is the previous result, or nil.
func (s *Snapshot) translate(t, was *table) *table {
	switch {
	case t.rule == nil: // same in all namespaces
		return t
	case was != nil && was.original == t:
		return was
	case was == nil:
		was = &table{original: &table{}}
	}
	u := *t
	u.original = t
	for _, k := range []Kind{Resource, Template} {
		u.runs[k] = was.runs[k]
		if was.original.runs[k] == t.runs[k] {
			continue
		}
		if run, ok := t.runs[k].translate(s.flat); ok {
			u.runs[k] = run
		} else {
			u.runs[k], _ = build(s.buildOptions(&u, k), t.runs[k].definitions())
		}
	}
	switch tools := t.runs[Tool]; {
	case !tools.hasForeignLinks():
	case was.original.runs[Tool] == tools && was.runs[Resource] == u.runs[Resource]:
		u.runs[Tool] = was.runs[Tool]
	default:
		if u.runs[Tool], _ = build(s.buildOptions(&u, Tool), tools.definitions()); u.runs[Tool].same(was.runs[Tool]) {
			u.runs[Tool] = was.runs[Tool]
		}
	}
	return &u
}

func (r *run) hasForeignLinks() bool {
	if r == nil {
		return false
	}
	for uri := range r.links {
		if names.NativeScheme(uri) == "" {
			return true
		}
	}
	return false
}

// translate returns a run of resources or templates in another namespace, possibly
// reordered. It returns false if two names would collide.
func (r *run) translate(flat bool) (_ *run, ok bool) {
	if r == nil {
		return nil, true
	}
	listed := r.namesIn(flat)
	order := make([]int32, len(listed)) // old positions
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(listed[a], listed[b]) })
	next := *r
	next.whole, next.part, next.rendering, next.legacy = r, order, rendering{}, nil
	next.entries = make([]Entry, len(order))
	places := make([]int32, len(order)) // by old position
	for to, from := range order {
		if to > 0 && listed[from] == listed[order[to-1]] {
			return nil, false
		}
		e := &next.entries[to]
		*e = r.entries[from]
		e.Listed, e.respelled = listed[from], listed[from] != e.Listed
		places[from] = int32(to)
	}
	if !slices.IsSorted(order) {
		next.rearrange(places)
	}
	return &next, true
}

func (r *run) namesIn(flat bool) []string {
	listed := make([]string, len(r.entries))
	size := 0
	for i := range r.entries {
		e := &r.entries[i]
		switch {
		case names.NativeScheme(e.Name) != "":
			listed[i] = e.Listed
		case flat && e.Kind == Resource:
			listed[i] = e.Flat
		case flat:
			listed[i] = e.Name
		default:
			size += len(names.Scheme) + len(r.server) + 1 + len(e.Name)
		}
	}
	var all strings.Builder // one allocation for all
	all.Grow(size)
	for i := range r.entries {
		if listed[i] == "" {
			from := all.Len()
			all.WriteString(names.Scheme)
			all.WriteString(r.server)
			all.WriteByte('/')
			all.WriteString(r.entries[i].Name)
			listed[i] = all.String()[from:]
		}
	}
	return listed
}

// rearrange updates the indexes after entries moved. places maps old positions to new
// ones.
func (r *run) rearrange(places []int32) {
	for _, x := range []*hashIndex{&r.byName, &r.byFlat, &r.byPlain, &r.byNorm} {
		*x = x.reordered(places)
	}
	r.order = slices.Clone(r.order)
	for i, was := range r.order {
		r.order[i] = places[was]
	}
}
