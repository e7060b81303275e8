package registry

import (
	"bytes"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"goblin/registry/definition"
	"goblin/registry/names"
	"goblin/registry/rawjson"
)

// run is an immutable list of one server and kind, shared between snapshots. Nil means
// empty.
type run struct {
	server  string
	entries []Entry // sorted by Listed
	rendering
	legacy *rendering          // for clients up to 2025-11-25; nil if the same
	links  map[string]struct{} // of tools: linked resources

	renamed  map[string]int32 // by names from overrides
	byName   hashIndex
	byListed hashIndex // of tools; for other kinds derived from the name
	byFull   hashIndex // of suffixed tools: the full name
	byTail   hashIndex // of tools: short suffixes, used or not
	byFlat   hashIndex // of resources: flat ids with suffixes
	byPlain  hashIndex // of resources: plain flat ids of suffixed entries
	byNorm   hashIndex // of resources, templates and skills: differing alias keys

	templates *names.TemplateIndex
	flats     *names.FlatTemplateIndex
	order     []int32 // of templates: entry by received position
	part      []int32 // of a partial run, which has no arena: index in whole
	whole     *run
}

type rendering struct {
	arena []byte
	offs  []uint32 // starts, then the end plus a comma
}

func (r *rendering) add(i int, item []byte, edits ...rawjson.Edit) []byte {
	if i > 0 {
		r.arena = append(r.arena, ',')
	}
	start := len(r.arena)
	r.offs[i] = uint32(start)
	r.arena = rawjson.AppendEdited(r.arena, item, edits...)
	r.offs[i+1] = uint32(len(r.arena) + 1)
	return rawjson.OneLine(r.arena[start:len(r.arena):len(r.arena)])
}

type buildOptions struct {
	kind  Kind
	rule  *listingRule
	flat  bool // list flat ids
	limit int
	// changes definitions that client SDKs refuse
	repair bool
	own    func(tool string) bool    // whether a name is Goblin's own
	admit  func([]Definition) []bool // nil admits all
	// linkedURI returns the listed form of a URI in a tool's definition.
	linkedURI func(uri string) string
}

// The cost of build grows with the list, so call it without locks.
func build(c buildOptions, items [][]byte) (*run, *listProblems) {
	ps := &listProblems{kind: c.kind, server: c.rule.Server}
	drafts := filterDrafts(parse(c.kind, items, c.limit, c.repair, ps), c.admit)
	if len(drafts) == 0 {
		return nil, ps
	}
	applyOverrides(c, drafts, ps)
	r := &run{server: c.rule.Server}
	switch c.kind {
	case Tool:
		drafts = nameTools(c, drafts, ps)
	case Prompt:
		nameAll(drafts, func(d *draft) string { return c.rule.Server + "/" + d.configName })
		sortListed(drafts)
	case Resource:
		flatIDs(c.rule, drafts, ps)
		nameURIs(c, drafts, func(d *draft) string { return d.flat })
		drafts = dropEqual(drafts, ps)
	case Skill:
		nameAll(drafts, func(d *draft) string { return names.NamespacedURI(c.rule.Server, d.name) })
		sortListed(drafts)
	case Template:
		nameURIs(c, drafts, func(d *draft) string { return d.name })
	}
	r.render(c, drafts)
	r.index(c.kind, drafts)
	if c.kind == Tool {
		for i := range r.entries {
			if why := definition.LongDescription(r.entries[i].Description); why != "" {
				ps.add(slog.LevelWarn, r.entries[i].Name, why)
			}
		}
	}
	for i := range drafts {
		ps.changed(&drafts[i])
	}
	return r, ps
}

func filterDrafts(drafts []draft, admit func([]Definition) []bool) []draft {
	if admit == nil {
		return drafts
	}
	definitions := make([]Definition, len(drafts))
	for i, d := range drafts {
		definitions[i] = Definition{d.name, d.raw}
	}
	kept := drafts[:0]
	for i, yes := range admit(definitions) {
		if yes {
			kept = append(kept, drafts[i])
		}
	}
	return kept
}

func nameAll(drafts []draft, listed func(*draft) string) {
	for i := range drafts {
		drafts[i].listed = listed(&drafts[i])
	}
}

// nameURIs names URIs or templates below the server, or with flat, and sorts them. Native
// schemes sort last.
func nameURIs(c buildOptions, drafts []draft, flat func(*draft) string) {
	nameAll(drafts, func(d *draft) string {
		if c.flat && names.NativeScheme(d.name) == "" {
			return flat(d)
		}
		return names.NamespacedURI(c.rule.Server, d.name)
	})
	sortListed(drafts)
}

// nameTools sets the listed names of tools. A sanitized name that collides with another
// tool of the server gets a suffix. Unchanged names take precedence, then byte order.
func nameTools(c buildOptions, drafts []draft, ps *listProblems) []draft {
	taken := make(map[string]struct{}, len(drafts))
	for _, changed := range []bool{false, true} {
		for i := range drafts {
			d := &drafts[i]
			if names.IsToolName(d.configName) == changed {
				continue
			}
			listed, why := c.rule.ToolName(d.configName, c.own)
			full := listed
			if why != names.NoSuffix {
				full = c.rule.FullToolName(d.configName)
			}
			_, other := taken[full]
			taken[full] = struct{}{}
			if other && why == names.NoSuffix {
				listed, why = c.rule.SuffixedToolName(d.configName), names.ReservedForOwn
			}
			d.listed, d.suffixed, d.ownsFullName = listed, why != names.NoSuffix, !other
			if !d.suffixed {
				continue
			}
			level := slog.LevelInfo
			if why == names.ReservedForOwn || why == names.ReservedForGoblin {
				level = slog.LevelWarn
			}
			ps.add(level, d.name, fmt.Sprintf("listed as %q: %s", listed, why))
		}
	}
	sortListed(drafts)
	return dropEqual(drafts, ps)
}

// sortListed puts unsuffixed names before equal suffixed ones, which only a server that
// computes suffixes can cause.
func sortListed(drafts []draft) {
	slices.SortFunc(drafts, func(a, b draft) int {
		if c := strings.Compare(a.listed, b.listed); c != 0 || a.suffixed == b.suffixed {
			return c
		}
		if b.suffixed {
			return -1
		}
		return 1
	})
}

func dropEqual(drafts []draft, ps *listProblems) []draft {
	return slices.CompactFunc(drafts, func(kept, d draft) bool {
		if kept.listed != d.listed {
			return false
		}
		ps.dropped(d.order, d.name, fmt.Sprintf("%q already has the name %q", clip(kept.name), clip(d.listed)))
		return true
	})
}

// flatIDs sets the flat ids of resources, with suffixes for ambiguous plain ids, and
// marks the suffixed drafts.
func flatIDs(u *listingRule, drafts []draft, ps *listProblems) {
	size := 0
	for i := range drafts {
		size += len(drafts[i].name)
	}
	text := make([]byte, 0, size) // one allocation for all
	ends := make([]int, len(drafts))
	for i := range drafts {
		text = names.AppendFlat(text, drafts[i].name)
		ends[i] = len(text)
	}
	all := unsafe.String(unsafe.SliceData(text), len(text))
	plain := func(i int) string {
		if i == 0 {
			return all[:ends[0]]
		}
		return all[ends[i-1]:ends[i]]
	}
	first := make(map[string]int, len(drafts))
	for i := range drafts {
		key := strings.TrimLeft(plain(i), "_")
		if j, ok := first[key]; ok {
			drafts[i].suffixed, drafts[j].suffixed = true, true
			ps.add(slog.LevelInfo, drafts[i].name, fmt.Sprintf("%s as %q", names.SameFlatID, clip(drafts[j].name)))
			continue
		}
		first[key] = i
	}
	var b strings.Builder
	b.Grow(len(all) + len(drafts)*(len(u.Server)+1))
	starts := make([]int, len(drafts)+1)
	for i := range drafts {
		d := &drafts[i]
		b.WriteString(u.Server)
		b.WriteByte('_')
		b.WriteString(plain(i))
		if d.suffixed || u.FlatSuffixReason(plain(i)) != names.NoSuffix {
			tail := u.FlatSuffix(d.name, plain(i))
			b.WriteString(tail)
			d.suffixed, d.suffixLen = true, uint8(len(tail))
		}
		starts[i+1] = b.Len()
	}
	ids := b.String()
	for i := range drafts {
		drafts[i].flat = ids[starts[i]:starts[i+1]]
	}
}

// renameEdits returns the edits that give a definition its listed name and its links
// their listed URIs. It overwrites edits.
func (r *run) renameEdits(c buildOptions, item, key, listed []byte, links []definitionLink, edits []rawjson.Edit) []rawjson.Edit {
	edits = append(edits[:0], rawjson.ReplaceEdit(item, key, listed))
	edits = r.appendLinkEdits(c, item, links, edits)
	if len(edits) > 1 {
		slices.SortFunc(edits, func(a, b rawjson.Edit) int { return a.Start - b.Start })
	}
	return edits
}

func (r *run) appendLinkEdits(c buildOptions, item []byte, links []definitionLink, edits []rawjson.Edit) []rawjson.Edit {
	for _, l := range links {
		if c.kind == Skill {
			edits = append(edits, rawjson.ReplaceEdit(item, l.value, rawjson.Quote(names.NamespacedURI(r.server, l.uri))))
			continue
		}
		edits = append(edits, rawjson.ReplaceEdit(item, l.value, rawjson.Quote(c.linkedURI(l.uri))))
		if r.links == nil {
			r.links = map[string]struct{}{}
		}
		r.links[l.uri] = struct{}{}
	}
	return edits
}

func (r *run) render(c buildOptions, drafts []draft) {
	size := 0
	for i := range drafts {
		size += len(drafts[i].item) + len(drafts[i].listed) + 2*len(`"",`)
	}
	r.arena = make([]byte, 0, size)
	r.offs = make([]uint32, len(drafts)+1)
	r.entries = make([]Entry, len(drafts))
	var originals []byte
	if c.kind == Tool || c.kind == Skill {
		originals = make([]byte, 0, size)
	}
	types := map[string]string{}
	var edits []rawjson.Edit
	var quoted []byte
	for i := range drafts {
		d := &drafts[i]
		quoted = rawjson.AppendString(quoted[:0], d.listed)
		edits = r.renameEdits(c, d.item, d.key, quoted, d.links, edits)
		json := r.add(i, d.item, edits...)
		e := &r.entries[i]
		*e = Entry{Kind: c.kind, Server: c.rule.Server, Name: d.name, Listed: d.listed, Flat: d.flat, Size: -1, json: json, Override: d.override, repaired: d.repaired, suffixLen: d.suffixLen}
		e.describe(types)
		r.renderLegacy(c, i, d, quoted)
		if c.kind == Tool || c.kind == Skill || d.override != nil || d.repaired != nil {
			from := len(originals)
			originals = append(originals, d.raw...)
			e.Original = originals[from:len(originals):len(originals)]
		}
	}
}

// renderLegacy adds entry i to the rendering for legacy clients, which starts with the
// first entry that differs.
func (r *run) renderLegacy(c buildOptions, i int, d *draft, listed []byte) {
	differs := d.repaired != nil && d.repaired.legacy != nil
	if r.legacy == nil {
		if !differs {
			return
		}
		before := max(int(r.offs[i])-1, 0)
		r.legacy = &rendering{arena: append(make([]byte, 0, cap(r.arena)), r.arena[:before]...), offs: slices.Clone(r.offs)}
	}
	if !differs {
		r.legacy.add(i, r.entries[i].json)
		return
	}
	item := d.repaired.legacy
	edits := r.renameEdits(c, item, rawjson.Get(item, nameMember(c.kind)), listed, resourceLinks(item), nil)
	d.repaired.legacy = r.legacy.add(i, item, edits...)
}

// describe sets the display fields. types interns MIME types.
func (e *Entry) describe(types map[string]string) {
	key := nameMember(e.Kind)
	var hint string
	for k, v := range rawjson.Members(e.json) {
		switch {
		case k.Is(key):
			e.useArena(decodeShared(v))
			if key == "name" {
				e.Label = e.ClientName()
			}
		case e.Kind == Skill && k.Is("frontmatter"):
			e.Label, e.Description = decodeShared(rawjson.Get(v, "name")), decodeShared(rawjson.Get(v, "description"))
		case e.Kind == Skill:
		case k.Is("name"):
			e.Label = decodeShared(v)
		case k.Is("title"):
			e.Title = decodeShared(v)
		case k.Is("execution"):
			e.TaskOnly = decodeShared(rawjson.Get(v, "taskSupport")) == "required"
		case k.Is("description"):
			e.Description = decodeShared(v)
		case k.Is("mimeType"):
			s := decodeShared(v)
			if _, ok := types[s]; !ok {
				types[s] = s
			}
			e.MIME = types[s]
		case k.Is("size"):
			if n, ok := rawjson.Int(v); ok && n >= 0 {
				e.Size = n
			}
		case e.Kind == Tool && k.Is("annotations"):
			hint = decodeShared(rawjson.Get(v, "title"))
		}
	}
	if e.Title == "" {
		e.Title = hint
	}
}

func (e *Entry) useArena(listed string) {
	if listed != e.Listed {
		return
	}
	e.Listed = listed
	if strings.HasSuffix(listed, e.Name) {
		e.Name = listed[len(listed)-len(e.Name):]
	}
}

// decodeShared decodes the JSON string v, which is part of an immutable arena. Without
// escapes it shares the arena's bytes: copies would double the memory of a large catalog.
func decodeShared(v []byte) string {
	if len(v) < 2 || v[0] != '"' || bytes.IndexByte(v, '\\') >= 0 {
		s, _ := rawjson.String(v)
		return s
	}
	v = v[1 : len(v)-1]
	return unsafe.String(unsafe.SliceData(v), len(v))
}

func (r *run) index(kind Kind, drafts []draft) {
	es := r.entries
	r.byName = newHashIndex(len(es))
	for i := range es {
		r.byName.put(hashKey(es[i].Name), i)
		if given := es[i].ClientName(); given != es[i].Name {
			if r.renamed == nil {
				r.renamed = map[string]int32{}
			}
			r.renamed[given] = int32(i)
		}
	}
	if kind == Tool {
		r.byListed = newHashIndex(len(es))
		for i := range es {
			r.byListed.put(hashKey(es[i].Listed), i)
		}
		r.indexSpellings(drafts)
	}
	if kind == Resource {
		r.indexFlat()
	}
	if kind == Resource || kind == Template || kind == Skill {
		r.indexNorm()
	}
	if kind == Template {
		list := make([]*names.Template, len(drafts))
		r.order = make([]int32, len(drafts))
		for i := range r.order {
			r.order[i] = int32(i)
		}
		slices.SortFunc(r.order, func(a, b int32) int { return drafts[a].order - drafts[b].order })
		for i, n := range r.order {
			list[i] = drafts[n].tpl
		}
		r.templates = names.NewTemplateIndex(list)
		r.flats = names.NewFlatTemplateIndex(list, names.Flatten)
	}
}

func (r *run) indexFlat() {
	es := r.entries
	r.byFlat = newHashIndex(len(es))
	for i := range es {
		r.byFlat.add(es, i, byFlat(&es[i]), byFlat)
	}
	r.indexPlain()
}

func (r *run) indexPlain() {
	es := r.entries
	tailed := 0
	for i := range es {
		if es[i].suffixLen > 0 {
			tailed++
		}
	}
	r.byPlain = newHashIndex(tailed)
	for i := range es {
		if es[i].suffixLen > 0 {
			r.byPlain.add(es, i, byPlain(&es[i]), byPlain)
		}
	}
}

func (r *run) indexNorm() {
	es := r.entries
	var odd []int
	for i := range es {
		if !names.IsCleanURI(es[i].Name) && byNorm(&es[i]) != names.NamespacedURI(r.server, es[i].Name) {
			odd = append(odd, i)
		}
	}
	r.byNorm = newHashIndex(len(odd))
	for _, i := range odd {
		r.byNorm.add(es, i, byNorm(&es[i]), byNorm)
	}
}

func (r *run) name(h uint64, name string) *Entry {
	if r == nil {
		return nil
	}
	e, _ := r.byName.find(r.entries, h, name, byName)
	return e
}

func (r *run) byClientName(h uint64, given string) *Entry {
	if r == nil {
		return nil
	}
	if i, ok := r.renamed[given]; ok {
		return &r.entries[i]
	}
	if e := r.name(h, given); e != nil && e.ClientName() == given {
		return e
	}
	return nil
}

func (r *run) listed(h uint64, listed string) *Entry {
	if r == nil {
		return nil
	}
	e, _ := r.byListed.find(r.entries, h, listed, byListed)
	return e
}

// template returns the most specific template for a URI, or nil if there is none or the
// budget is spent.
func (r *run) template(uri string, budget *names.MatchBudget) *Entry {
	if r == nil {
		return nil
	}
	if i := r.templates.Match(uri, budget); i >= 0 {
		return &r.entries[r.order[i]]
	}
	return nil
}

// json returns the definitions in [from, to), joined by commas.
func (r *run) json(from, to int, legacy bool) []byte {
	if r.whole != nil {
		return r.gatherJSON(from, to, legacy)
	}
	text := &r.rendering
	if legacy && r.legacy != nil {
		text = r.legacy
	}
	end := text.offs[to] - 1
	return text.arena[text.offs[from]:end:end]
}

func (r *run) len() int {
	if r == nil {
		return 0
	}
	return len(r.entries)
}

func (r *run) looksLike(o *run) bool {
	if r == nil || o == nil {
		return r == o
	}
	if len(r.entries) != len(o.entries) || r == o {
		return r == o
	}
	if r.whole == nil && o.whole == nil {
		return bytes.Equal(r.arena, o.arena)
	}
	for i := range r.entries {
		if !r.entries[i].looksLike(&o.entries[i]) {
			return false
		}
	}
	return true
}

func (r *run) same(o *run) bool {
	if !r.looksLike(o) {
		return false
	}
	if r == nil {
		return true
	}
	for i := range r.entries {
		a, b := &r.entries[i], &o.entries[i]
		if a.Name != b.Name || a.Flat != b.Flat || !bytes.Equal(a.Original, b.Original) || !reflect.DeepEqual(a.Override, b.Override) {
			return false
		}
	}
	return slices.Equal(r.order, o.order)
}
