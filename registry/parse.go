package registry

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"unicode/utf8"

	"goblin/registry/definition"
	"goblin/registry/names"
	"goblin/registry/rawjson"
	"goblin/registry/repair"
)

// Limits of one list.
const (
	maxRunBytes  = 1 << 30 // bytes of all definitions
	maxTemplates = 10_000  // an unlisted URI may be matched with many of them
	maxAnywhere  = 100     // templates without a literal prefix, tried for every URI
	maxProblems  = 100
)

type draft struct {
	item         []byte // without outer whitespace
	key          []byte // the value to rename; a slice of item
	name         string
	configName   string // name, or its override
	listed       string
	flat         string           // of resources
	links        []definitionLink // of tools: links to resources
	tpl          *names.Template  // of templates
	order        int              // index in the list as received
	suffixed     bool
	ownsFullName bool  // of tools: first claim to the full name on its server
	suffixLen    uint8 // bytes of the suffix of the flat id
	override     *definition.AppliedOverride
	raw          []byte // the item as received
	repaired     *repairedDefinition
}

type repairedDefinition struct {
	changes []string
	legacy  []byte // definition for clients up to 2025-11-25; nil if the same
}

type definitionLink struct {
	value []byte // a slice of the item
	uri   string
}

type listProblems struct {
	kind    Kind
	server  string
	list    []Problem
	more    int
	repairs Repairs
}

func (p *listProblems) add(level slog.Level, name, text string) {
	if len(p.list) >= maxProblems {
		p.more++
		return
	}
	p.list = append(p.list, Problem{level, p.kind, p.server, clip(name), text})
}

func (p *listProblems) dropped(i int, name string, why any) {
	text := fmt.Sprintf("dropped: %v", why)
	if name == "" { // an index would change with other entries
		text = fmt.Sprintf("entry %d %s", i, text)
	}
	p.add(slog.LevelWarn, name, text)
	p.repairs.Dropped++
	p.repairs.add(Repair{p.kind, clip(name), true, text})
}

func (p *listProblems) changed(d *draft) {
	if d.repaired == nil {
		return
	}
	text := strings.Join(d.repaired.changes, "; ")
	p.add(slog.LevelInfo, d.name, ChangedText+": "+text)
	p.repairs.Changed++
	p.repairs.add(Repair{p.kind, clip(d.name), false, text})
}

func (p *listProblems) all() []Problem {
	if p.more > 0 {
		text := fmt.Sprintf("%d more entries with problems", p.more)
		return append(p.list, Problem{slog.LevelWarn, p.kind, p.server, "", text})
	}
	return p.list
}

func clip(s string) string {
	if len(s) <= maxField {
		return s
	}
	return cutString(s, maxField) + "…"
}

var definitions = [Kinds]*rawjson.KeyTree{rawjson.Tool, rawjson.Prompt, rawjson.Resource, rawjson.Template, rawjson.Skill}

func nameMember(k Kind) string {
	switch k {
	case Resource, Skill:
		return "uri"
	case Template:
		return "uriTemplate"
	}
	return "name"
}

func (k Kind) maxNameLen() int {
	if k == Tool || k == Prompt {
		return MaxName
	}
	return MaxURI
}

// parse drops invalid entries. The result is sorted by name.
func parse(kind Kind, items [][]byte, limit int, repaired bool, ps *listProblems) []draft {
	if kind == Template {
		limit = min(limit, maxTemplates)
	}
	if len(items) > limit {
		ps.add(slog.LevelWarn, "", fmt.Sprintf("list cut: %d entries exceed the limit of %d", len(items), limit))
		items = items[:limit]
	}
	drafts := make([]draft, 0, len(items))
	total, anywhere := 0, 0
	for i, item := range items {
		if total += len(item); total > maxRunBytes {
			ps.add(slog.LevelWarn, "", fmt.Sprintf("list cut: more than %d bytes", maxRunBytes))
			break
		}
		d, err := parseOne(kind, item, repaired)
		if err != nil {
			ps.dropped(i, d.name, err)
			continue
		}
		if d.tpl != nil && d.tpl.Prefix() == "" {
			if anywhere++; anywhere > maxAnywhere {
				ps.dropped(i, d.name, fmt.Sprintf("more than %d templates begin with a variable", maxAnywhere))
				continue
			}
		}
		d.order = i
		drafts = append(drafts, d)
	}
	slices.SortFunc(drafts, func(a, b draft) int {
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return a.order - b.order
	})
	return slices.CompactFunc(drafts, func(kept, d draft) bool {
		if kept.name != d.name {
			return false
		}
		ps.dropped(d.order, d.name, "duplicate")
		return true
	})
}

func parseOne(kind Kind, item []byte, repaired bool) (draft, error) {
	if err := rawjson.Valid(item); err != nil {
		return draft{}, err
	}
	if !rawjson.IsObject(item) {
		return draft{}, fmt.Errorf("not an object")
	}
	d := draft{item: bytes.Trim(item, " \t\r\n")}
	d.raw = d.item
	key := nameMember(kind)
	if d.key = rawjson.Get(d.item, key); d.key == nil {
		return d, fmt.Errorf("no %q", key)
	}
	// With duplicate keys, another reader may see another server's entry or another
	// resource.
	err := definitions[kind].Check(d.item)
	if err != nil {
		return d, err
	}
	var ok bool
	if d.name, ok = rawjson.String(d.key); !ok {
		return d, fmt.Errorf("%q is not a string", key)
	}
	if d.name == "" {
		return d, fmt.Errorf("empty %q", key)
	}
	d.configName = d.name
	if most := kind.maxNameLen(); len(d.name) > most {
		return d, fmt.Errorf("%q is longer than %d bytes", key, most)
	}
	if repaired {
		if err = d.repair(kind); err != nil {
			return d, err
		}
	}
	switch kind {
	case Tool:
		d.links = resourceLinks(d.item)
	case Skill:
		if d.links, err = skillLinks(d.item); err != nil {
			return d, err
		}
	}
	if kind == Template {
		if d.tpl, err = names.ParseTemplate(d.name); err != nil {
			return d, fmt.Errorf("invalid URI template: %w", err)
		}
	}
	return d, nil
}

func (d *draft) repair(kind Kind) (err error) {
	var r repair.Definition
	switch kind {
	case Tool:
		r = repair.Tool(d.item)
	case Prompt:
		r, err = repair.Prompt(d.item)
	case Resource:
		r = repair.Resource(d.item)
	case Template:
		r = repair.Template(d.item)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	if len(r.Changes) > 0 {
		d.repaired = &repairedDefinition{r.Changes, r.Legacy}
		d.item = r.JSON
		d.key = rawjson.Get(d.item, nameMember(kind))
	}
	return nil
}

// resourceLinks returns the links to a tool's UI resource: _meta.ui.resourceUri and its
// older spelling.
func resourceLinks(item []byte) (links []definitionLink) {
	meta := rawjson.Get(item, "_meta")
	for _, v := range [][]byte{rawjson.Path(meta, "ui", "resourceUri"), rawjson.Get(meta, "ui/resourceUri")} {
		if uri, ok := rawjson.String(v); ok && uri != "" && len(uri) <= MaxURI && utf8.ValidString(uri) {
			links = append(links, definitionLink{v, uri})
		}
	}
	slices.SortFunc(links, func(a, b definitionLink) int {
		return rawjson.Offset(item, a.value) - rawjson.Offset(item, b.value)
	})
	return links
}
