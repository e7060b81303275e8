package servercheck

import (
	"context"
	"time"

	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/registry/termtext"
)

const (
	maxPages   = 1000     // of a list
	maxEntries = 100_000  // of a list
	maxList    = 64 << 20 // bytes of a list
	listTime   = time.Minute
)

// listKind is a kind of entries and its list.
type listKind struct {
	kind                 registry.Kind
	noun, method, member string
	key                  string // the member that identifies an entry
	capability           string
}

var kinds = []listKind{
	{registry.Tool, "tool", "tools/list", "tools", "name", "tools"},
	{registry.Prompt, "prompt", "prompts/list", "prompts", "name", "prompts"},
	{registry.Resource, "resource", "resources/list", "resources", "uri", "resources"},
	{registry.Template, "template", "resources/templates/list", "resourceTemplates", "uriTemplate", "resources"},
}

// fetch fetches all pages of a list and checks their order and shape.
func (c *checker) fetch(ctx context.Context, l link, k *listKind) {
	var entries [][]byte
	keys := make(map[string]bool)
	cursors := make(map[string]bool)
	var params []byte
	size, began := 0, time.Now()
	for page := 1; ; page++ {
		a, ok := c.ask(ctx, l, k.method, params)
		if !ok {
			break
		}
		c.r.ListMs[k.method] += millis(a.took)
		if a.took > c.o.SlowTime {
			c.add("list/slow", k.method, "page %d took %s", page, termtext.Duration(a.took))
		}
		if a.fault != nil {
			c.refusedList(k, page, &a)
			break
		}
		items := rawjson.Get(objectOf(a.result), k.member)
		if items == nil || !rawjson.IsArray(items) {
			c.add("list/shape", k.method, "the answer has no array %q: %s", k.member, clip(string(a.result)))
			break
		}
		c.checkMeta(k.method, a.result)
		size += len(a.result)
		before := len(entries)
		for e := range rawjson.Elements(items) {
			if len(entries) < maxEntries {
				entries = append(entries, e)
			}
			if key, named := rawjson.String(rawjson.Get(objectOf(e), k.key)); named && keys[key] {
				c.add("list/duplicate", k.noun+" "+clip(key), "listed twice by %s", k.method)
			} else if named {
				keys[key] = true
			}
		}
		cursor, more := c.cursor(k, a.result, page)
		switch {
		case !more:
		case cursors[cursor]:
			c.add("list/cursor-loop", k.method, "page %d repeats the cursor %q", page, clip(cursor))
			more = false
		case page == maxPages || len(entries) == maxEntries || size > maxList || time.Since(began) > listTime:
			c.add("list/endless", k.method, "still has a cursor after %d pages with %d entries", page, len(entries))
			more = false
		case len(entries) == before:
			c.add("list/empty-page", k.method, "page %d is empty and has a cursor", page)
		}
		if !more {
			break
		}
		cursors[cursor] = true
		params = rawjson.Object("cursor", cursor)
	}
	c.entries[k.kind] = entries
	c.r.Entries[k.noun] = len(entries)
}

func (c *checker) refusedList(k *listKind, page int, a *answer) {
	switch {
	case page > 1:
		c.add("list/cursor-refused", k.method, "page %d: %s", page, outcome(a))
	case a.code() == codeMethodNotFound && k.kind == registry.Template:
		c.add("capability/templates", k.method, "%s", outcome(a))
	case a.code() == codeMethodNotFound:
		c.add("capability/missing-method", k.method, "%s, although %s is declared", outcome(a), k.capability)
	default:
		c.add("list/failed", k.method, "%s", outcome(a))
	}
}

// cursor returns the cursor of the next page, and whether there is one.
func (c *checker) cursor(k *listKind, result []byte, page int) (cursor string, more bool) {
	next := rawjson.Get(result, "nextCursor")
	if next == nil {
		return "", false
	}
	cursor, ok := rawjson.String(next)
	if !ok || cursor == "" {
		c.add("list/cursor", k.method, "nextCursor of page %d is %s", page, clip(string(next)))
	}
	return cursor, ok && cursor != ""
}

// checkUndeclared looks for entries of a kind that the server does not declare.
func (c *checker) checkUndeclared(ctx context.Context, l link, k *listKind) {
	if c.stopped || ctx.Err() != nil || k.kind == registry.Template {
		return
	}
	a, ok := c.ask(ctx, l, k.method, nil)
	n := 0
	for range rawjson.Elements(arrayOf(a.result, k.member)) {
		n++
	}
	if ok && n > 0 {
		c.add("capability/undeclared", k.method, "lists %s without the capability %s", termtext.Count(n, k.noun), k.capability)
	}
}

// compareOrder fetches a list again and compares the order. It ignores entries that were
// added or removed.
func (c *checker) compareOrder(ctx context.Context, l link, k *listKind, between string) {
	key := func(e []byte) string { return rawjson.GetString(objectOf(e), k.key) }
	position := make(map[string]int)
	for i, e := range c.entries[k.kind] {
		position[key(e)] = i
	}
	last := -1
	cursors := make(map[string]bool)
	var params []byte
	began := time.Now()
	for page := 0; page < maxPages && time.Since(began) < listTime; page++ {
		a, ok := c.ask(ctx, l, k.method, params)
		if ok && a.fault != nil {
			c.add("list/failed", k.method, "%s, although the list was fetched before", outcome(&a))
		}
		if !ok || a.fault != nil {
			return
		}
		for e := range rawjson.Elements(arrayOf(a.result, k.member)) {
			at, known := position[key(e)]
			if known && at < last {
				c.add("list/order", k.method, "the order differs between %s, for example at %s %q", between, k.noun, clip(key(e)))
				return
			}
			last = max(last, at)
		}
		cursor, ok := rawjson.String(rawjson.Get(objectOf(a.result), "nextCursor"))
		if !ok || cursor == "" || cursors[cursor] {
			return
		}
		cursors[cursor] = true
		params = rawjson.Object("cursor", cursor)
	}
}

// names returns the names of the tools that have one, in the order of the list.
func (c *checker) names() (all []string) {
	seen := make(map[string]bool)
	for _, e := range c.entries[registry.Tool] {
		if name := rawjson.GetString(objectOf(e), "name"); name != "" && !seen[name] {
			seen[name] = true
			all = append(all, name)
		}
	}
	return all
}
