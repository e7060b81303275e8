package lua

import (
	"encoding/json"
	"fmt"
	"strconv"

	"goblin/meta/lua/wire"
	"goblin/registry"
	"goblin/registry/rawjson"
)

const (
	maxTools = 1000 // of a server in one answer
	maxCards = 1000 // of a list
)

// catalog answers what a script asks about what the servers list.
func (s *session) catalog(q *wire.ToGoblin) error {
	snap := s.host.Snapshot()
	var answer []byte
	var err error
	switch q.Ask {
	case wire.AskTool:
		t := wire.Tool{Name: q.Name, Version: snap.Version(registry.Tool)}
		if e := snap.Named(q.Server, registry.Tool, q.Name); e != nil {
			t.Listed = e.Listed
		}
		answer, err = json.Marshal(t)
	case wire.AskTools:
		tools := []wire.Tool{}
		for e := range snap.ServerFrom(q.Server, registry.Tool, q.Offset) {
			if tools = append(tools, wire.Tool{Name: e.Name, Listed: e.Listed}); len(tools) == maxTools {
				break
			}
		}
		answer, err = json.Marshal(tools)
	default:
		answer, err = s.cards(snap, q)
	}
	s.answer(q, answer, err)
	return nil
}

// cards are the entries of a kind that match, as a JSON array.
func (s *session) cards(snap *registry.Snapshot, q *wire.ToGoblin) ([]byte, error) {
	kinds := map[string]registry.Kind{"tool": registry.Tool, "prompt": registry.Prompt, "resource": registry.Resource}
	kind, ok := kinds[q.Kind]
	if !ok {
		return nil, errRules
	}
	match, err := registry.MIMEFilter(q.MIME)
	if err != nil {
		return nil, fmt.Errorf("resources.list: %w; text/* is one that is right", err)
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

// appendCard writes what a script gets to know of an entry.
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
		text("tool", e.Name)
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
