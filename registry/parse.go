package registry

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"unicode/utf8"

	"goblin/registry/definition"
	"goblin/registry/members"
	"goblin/registry/rawjson"
	"goblin/registry/urimatch"
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
	item   []byte // without outer space
	key    []byte // the value to rename, a part of item
	name   string
	given  string // name, or what an override makes of it
	listed string
	flat   string             // of resources
	links  []link             // of tools: what points to resources
	tpl    *urimatch.Template // of templates
	order  int                // place in the list as received
	tailed bool               // renamed beyond the prefix
	full   bool               // of tools: no other of the server has more right to its whole name
	tail   uint8              // bytes of the tail of the flat id
	over   *definition.Applied
	raw    []byte // the item before that
}

// link is a URI of the server's own inside a tool's definition.
type link struct {
	value []byte // part of the item
	uri   string
}

// problems collects what is odd about a list, as much as anyone would read.
type problems struct {
	kind   Kind
	server string
	list   []Problem
	more   int
}

func (p *problems) add(level slog.Level, name, text string) {
	if len(p.list) >= maxProblems {
		p.more++
		return
	}
	p.list = append(p.list, Problem{level, p.kind, p.server, clip(name), text})
}

func (p *problems) all() []Problem {
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
	return bounded(s, maxField) + "…"
}

// definitions name the members of an entry that decide.
var definitions = [Kinds]*members.Tree{members.Tool, members.Prompt, members.Resource, members.Template, members.Skill}

// keyOf is the member that names an entry of a kind.
func keyOf(k Kind) string {
	switch k {
	case Resource, Skill:
		return "uri"
	case Template:
		return "uriTemplate"
	}
	return "name"
}

// longest is how long the name of an entry of a kind may be, in bytes.
func (k Kind) longest() int {
	if k == Tool || k == Prompt {
		return MaxName
	}
	return MaxURI
}

// parse reads a list as received and drops what cannot be listed. The result
// is in byte order of the names.
func parse(kind Kind, items [][]byte, limit int, ps *problems) []draft {
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
		d, err := parseOne(kind, item)
		if err != nil {
			ps.add(slog.LevelWarn, d.name, fmt.Sprintf("entry %d dropped: %v", i, err))
			continue
		}
		if d.tpl != nil && d.tpl.Prefix() == "" {
			if anywhere++; anywhere > maxAnywhere {
				ps.add(slog.LevelWarn, d.name, fmt.Sprintf("entry %d dropped: a list may have %d templates that begin with a variable", i, maxAnywhere))
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
		ps.add(slog.LevelWarn, d.name, fmt.Sprintf("entry %d dropped: listed before", d.order))
		return true
	})
}

func parseOne(kind Kind, item []byte) (draft, error) {
	if err := rawjson.Valid(item); err != nil {
		return draft{}, err
	}
	if !rawjson.IsObject(item) {
		return draft{}, fmt.Errorf("not an object")
	}
	d := draft{item: bytes.Trim(item, " \t\r\n")}
	d.raw = d.item
	key := keyOf(kind)
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
	d.given = d.name
	if most := kind.longest(); len(d.name) > most {
		return d, fmt.Errorf("%q is longer than %d bytes", key, most)
	}
	switch kind {
	case Tool:
		d.links = linksOf(d.item)
	case Skill:
		if d.links, err = skillLinks(d.item); err != nil {
			return d, err
		}
	}
	if kind == Template {
		if d.tpl, err = urimatch.Parse(d.name); err != nil {
			return d, fmt.Errorf("invalid URI template: %w", err)
		}
	}
	return d, nil
}

// linksOf finds the resource that a tool says shows its results:
// _meta.ui.resourceUri and its older spelling.
func linksOf(item []byte) (links []link) {
	meta := rawjson.Get(item, "_meta")
	for _, v := range [][]byte{rawjson.Path(meta, "ui", "resourceUri"), rawjson.Get(meta, "ui/resourceUri")} {
		if uri, ok := rawjson.String(v); ok && uri != "" && len(uri) <= MaxURI && utf8.ValidString(uri) {
			links = append(links, link{v, uri})
		}
	}
	slices.SortFunc(links, func(a, b link) int {
		return rawjson.Offset(item, a.value) - rawjson.Offset(item, b.value)
	})
	return links
}
