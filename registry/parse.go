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

// Bounds of what one list may bring.
const (
	maxRunBytes  = 1 << 30 // bytes of all definitions
	maxTemplates = 10_000  // a URI that nobody lists may have to be matched with many of them
	maxAnywhere  = 100     // templates without a literal prefix, which all URIs are matched with
	maxProblems  = 100
)

// draft is a definition on its way into a run.
type draft struct {
	item         []byte // without outer space
	key          []byte // the value to rename, a part of item
	name         string
	configName   string // name, or the name that an override gives it
	listed       string
	flat         string           // of resources
	links        []definitionLink // of tools: what points to resources
	tpl          *names.Template  // of templates
	order        int              // place in the list as received
	suffixed     bool             // renamed beyond the prefix
	ownsFullName bool             // of tools: no other of the server has more right to its whole name
	suffixLen    uint8            // bytes of the suffix of the flat id
	override     *definition.AppliedOverride
	raw          []byte              // the item as received
	repaired     *repairedDefinition // how it was repaired; nil for not
}

// repairedDefinition holds the differences of a repaired definition.
type repairedDefinition struct {
	changes []string // in words
	legacy  []byte   // the definition for clients up to 2025-11-25; nil: the same
}

// definitionLink is a URI of the server in a tool's definition.
type definitionLink struct {
	value []byte // part of the item
	uri   string
}

// listProblems collects the problems of a list, up to a limit.
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

// dropped reports an entry that cannot be listed, the one at index i.
func (p *listProblems) dropped(i int, name string, why any) {
	text := fmt.Sprintf("dropped: %v", why)
	if name == "" { // else the index would make it another problem when others come and go
		text = fmt.Sprintf("entry %d %s", i, text)
	}
	p.add(slog.LevelWarn, name, text)
	p.repairs.Dropped++
	p.repairs.add(Repair{p.kind, clip(name), true, text})
}

// changed reports an entry that was repaired.
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

// definitions name the members of an entry that decide.
var definitions = [Kinds]*rawjson.KeyTree{rawjson.Tool, rawjson.Prompt, rawjson.Resource, rawjson.Template, rawjson.Skill}

// nameMember returns the member that names an entry of a kind.
func nameMember(k Kind) string {
	switch k {
	case Resource, Skill:
		return "uri"
	case Template:
		return "uriTemplate"
	}
	return "name"
}

// maxNameLen returns the longest name or URI of an entry of a kind, in bytes.
func (k Kind) maxNameLen() int {
	if k == Tool || k == Prompt {
		return MaxName
	}
	return MaxURI
}

// parse reads a list as received and drops what cannot be listed. The result
// is in byte order of the names.
func parse(kind Kind, items [][]byte, limit int, repaired bool, ps *listProblems) []draft {
	if kind == Template {
		limit = min(limit, maxTemplates)
	}
	if len(items) > limit {
		ps.add(slog.LevelWarn, "", fmt.Sprintf("list cut: %d entries are more than the limit of %d", len(items), limit))
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
				ps.dropped(i, d.name, fmt.Sprintf("a list may have %d templates that begin with a variable", maxAnywhere))
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
		ps.dropped(d.order, d.name, "listed before")
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
	// Another reader may take another name, and show it as that of another
	// server's entry, or another resource.
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

// repair makes the item one that client SDKs accept.
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

// resourceLinks returns the links to the resource that shows a tool's results: _meta.ui.resourceUri
// and its older spelling.
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
