package servercheck

import (
	"context"
	"fmt"
	"slices"

	"goblin/registry"
	"goblin/registry/rawjson"
)

const codeMethodNotFound = -32601

// noName is a name that no server lists.
const noName = "goblin_check_no_such_name"

// checkRequests sends all requests of the check except initialize.
func (c *checker) checkRequests(ctx context.Context, l link) {
	for i := range kinds {
		k := &kinds[i]
		c.o.Progress(k.method)
		if c.has(k.capability) {
			c.fetch(ctx, l, k)
		} else {
			c.checkUndeclared(ctx, l, k)
		}
	}
	for i := range kinds {
		if k := &kinds[i]; len(c.entries[k.kind]) > 1 {
			c.compareOrder(ctx, l, k, "two requests")
		}
	}
	c.o.Progress("requests")
	c.checkUnknown(ctx, l)
	c.checkInvalid(ctx, l)
	if !c.modern {
		c.checkSession(ctx, l)
	}
	if c.has("completions") {
		ref := `{"ref":{"type":"ref/prompt","name":"` + noName + `"},"argument":{"name":"x","value":""}}`
		c.supports(ctx, l, "capability/completions", "completion/complete", []byte(ref))
	}
	if c.o.Read {
		c.readAll(ctx, l)
	}
	if p, local := l.(*process); local && !c.modern && !c.mute {
		p.notify("notifications/" + noName)
	}
	if a, ok := c.ask(ctx, l, "goblin/"+noName, nil); ok && a.code() != codeMethodNotFound {
		c.add("answer/unknown-method", "goblin/"+noName, "%s", outcome(&a))
	}
}

func outcome(a *answer) string {
	if a.fault != nil {
		return "answered with the error " + clip(string(a.fault))
	}
	return "answered with the result " + clip(string(a.result))
}

// supports adds a finding if the server refuses a method.
func (c *checker) supports(ctx context.Context, l link, rule, method string, params []byte) {
	if a, ok := c.ask(ctx, l, method, params); ok && a.code() == codeMethodNotFound {
		c.add(rule, method, "%s", outcome(&a))
	}
}

// checkUnknown requests names that the server does not list.
func (c *checker) checkUnknown(ctx context.Context, l link) {
	for _, one := range []struct{ capability, method, params string }{
		{"tools", "tools/call", `{"name":"` + noName + `","arguments":{}}`},
		{"prompts", "prompts/get", `{"name":"` + noName + `"}`},
		{"resources", "resources/read", `{"uri":"goblin-check://` + noName + `"}`},
	} {
		if !c.has(one.capability) {
			continue
		}
		a, ok := c.ask(ctx, l, one.method, []byte(one.params))
		if ok && a.fault == nil && string(rawjson.Get(objectOf(a.result), "isError")) != "true" {
			c.add("answer/unknown-name", one.method, "%s", outcome(&a))
		}
	}
}

// checkInvalid sends a request without its parameters.
func (c *checker) checkInvalid(ctx context.Context, l link) {
	switch {
	case c.has("prompts"):
		c.refuses(ctx, l, "prompts/get")
	case c.has("resources"):
		c.refuses(ctx, l, "resources/read")
	case c.has("tools"): // a call could have an effect
		c.ask(ctx, l, "tools/list", []byte(`{"cursor":{}}`))
	}
}

func (c *checker) refuses(ctx context.Context, l link, method string) {
	if a, ok := c.ask(ctx, l, method, []byte(`{}`)); ok && a.fault == nil {
		c.add("answer/invalid-params", method, "%s", outcome(&a))
	}
}

// checkSession sends requests of revisions with sessions.
func (c *checker) checkSession(ctx context.Context, l link) {
	if a, ok := c.ask(ctx, l, "ping", nil); ok && a.fault != nil {
		c.add("answer/ping", "ping", "%s", outcome(&a))
	}
	if c.has("logging") {
		c.supports(ctx, l, "capability/logging", "logging/setLevel", []byte(`{"level":"warning"}`))
	}
	if all := c.entries[registry.Resource]; c.has("resources", "subscribe") && len(all) > 0 {
		params := rawjson.Object("uri", rawjson.GetString(all[0], "uri"))
		c.supports(ctx, l, "capability/subscribe", "resources/subscribe", params)
		c.supports(ctx, l, "capability/subscribe", "resources/unsubscribe", params)
	}
}

// maxReads is the maximum number of resources that are read.
const maxReads = 100

func (c *checker) readAll(ctx context.Context, l link) {
	all := c.entries[registry.Resource]
	for i, entry := range all[:min(len(all), maxReads)] {
		uri := rawjson.GetString(entry, "uri")
		c.o.Progress(fmt.Sprintf("reading resource %d of %d", i+1, len(all)))
		a, ok := c.ask(ctx, l, "resources/read", rawjson.Object("uri", uri))
		switch {
		case !ok:
		case a.fault != nil:
			c.add("answer/read", "resource "+clip(uri), "%s", outcome(&a))
		case !rawjson.IsArray(rawjson.Get(objectOf(a.result), "contents")):
			c.add("answer/read", "resource "+clip(uri), "contents is not an array")
		}
	}
}

// checkNotified compares the notifications with the capabilities.
func (c *checker) checkNotified(p *process) {
	seen := p.out.methods()
	for _, one := range []struct {
		method string
		path   []string
	}{
		{"notifications/tools/list_changed", []string{"tools", "listChanged"}},
		{"notifications/prompts/list_changed", []string{"prompts", "listChanged"}},
		{"notifications/resources/list_changed", []string{"resources", "listChanged"}},
		{"notifications/resources/updated", []string{"resources", "subscribe"}},
		{"notifications/message", []string{"logging"}},
	} {
		if slices.Contains(seen, one.method) && !c.has(one.path...) {
			c.add("capability/unannounced", one.method, "sent without the capability %s", one.path[len(one.path)-1])
		}
	}
}

// objectOf returns an empty object for other values.
func objectOf(v []byte) []byte {
	if v == nil || !rawjson.IsObject(v) {
		return []byte(`{}`)
	}
	return v
}

// arrayOf returns an array member of an object, or an empty array.
func arrayOf(v []byte, name string) []byte {
	if all := rawjson.Get(objectOf(v), name); all != nil && rawjson.IsArray(all) {
		return all
	}
	return []byte(`[]`)
}
