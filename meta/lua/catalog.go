package lua

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"goblin/meta/lua/worker"
	"goblin/registry"
	"goblin/registry/rawjson"
)

const maxCards = 1000 // limit of one list

func (s *session) catalog(q *worker.ScriptMessage) {
	snap := s.host.Snapshot()
	if q.Ask == worker.AskList {
		cards, err := s.cards(snap, q)
		s.answer(q, cards, err)
		return
	}
	t, err := findTool(snap, q.Server, q.Name)
	answer, _ := json.Marshal(t) // cannot fail
	s.answer(q, answer, err)
}

// findTool finds a tool of a server by its name for clients without the server's prefix,
// or by its identifier.
func findTool(snap *registry.Snapshot, server, name string) (worker.Tool, error) {
	if e := snap.ByClientName(server, registry.Tool, name); e != nil {
		return worker.Tool{Name: name, Listed: e.Listed}, nil
	}
	if e := snap.ByServerName(server, registry.Tool, name); e != nil { // renamed for clients
		return worker.Tool{}, fmt.Errorf("server %q has no tool %q; did you mean %q?", server, name, e.ClientName())
	}
	var found []worker.Tool
	var names, uses []string
	for e := range snap.Server(server, registry.Tool) {
		id := worker.ToIdentifier(e.ClientName())
		if id == name {
			found = append(found, worker.Tool{Name: e.ClientName(), Listed: e.Listed})
			uses = append(uses, fmt.Sprintf("%s[%q]", worker.Global(server), e.ClientName()))
		}
		names = append(names, id)
		if id != e.ClientName() {
			names = append(names, e.ClientName())
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return worker.Tool{}, fmt.Errorf("%s is the identifier of %d tools of server %q; use %s", name, len(found), server, strings.Join(uses, " or "))
	case len(names) == 0:
		return worker.Tool{Name: name, Listed: server + "/" + name}, nil
	}
	return worker.Tool{}, fmt.Errorf("server %q has no tool %q%s", server, name, worker.DidYouMean(name, names))
}

func (s *session) cards(snap *registry.Snapshot, q *worker.ScriptMessage) ([]byte, error) {
	kinds := map[string]registry.Kind{"tool": registry.Tool, "prompt": registry.Prompt, "resource": registry.Resource}
	kind, ok := kinds[q.Kind]
	if !ok {
		return nil, errProtocol
	}
	match, err := registry.MIMEFilter(q.MIME)
	if err != nil {
		return nil, fmt.Errorf("resources.list: %w; use a glob such as text/*", err)
	}
	entries := snap.All(kind)
	if q.Server != "" {
		entries = snap.Server(q.Server, kind)
	}
	out, offset, left := []byte{'['}, q.Offset, min(q.Limit, maxCards)
	for e := range entries {
		if left <= 0 || int64(len(out)) > s.limits.Memory || s.ctx.Err() != nil {
			break
		}
		if e.Server == registry.Local || match != nil && !match(e) {
			continue
		}
		if offset--; offset >= 0 {
			continue
		}
		left--
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = appendCard(out, e)
	}
	return append(out, ']'), nil
}

func appendCard(out []byte, e *registry.Entry) []byte {
	text := func(name, value string) {
		if value != "" {
			out = append(append(append(out, ',', '"'), name...), `":`...)
			out = rawjson.AppendString(out, value)
		}
	}
	first := "name"
	if e.Kind == registry.Resource {
		first = "uri"
	}
	out = append(append(append(out, `{"`...), first...), `":`...)
	out = rawjson.AppendString(out, e.Listed)
	switch e.Kind {
	case registry.Tool:
		text("tool", e.ClientName())
	case registry.Resource:
		text("name", e.Label)
		text("mimeType", e.MIME)
		if e.Size >= 0 {
			out = strconv.AppendInt(append(out, `,"size":`...), e.Size, 10)
		}
	}
	text("server", e.Server)
	text("title", e.Title)
	text("description", e.Description)
	return append(out, '}')
}
