package pane

import (
	"cmp"
	"encoding/json"
	"strings"

	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/tui/viewer"
)

// ID is the id of a request, on both sides. Where Goblin answered by itself there is one.
func ID(r *registry.TrafficRecord) viewer.Field {
	f := viewer.Field{Label: "id"}
	if Notified(r) {
		return f
	}
	f.Value = cmp.Or(registry.ID(r.Wire, registry.ClientID), "not kept")
	if server := registry.ID(r.Wire, registry.ServerID); server != "" {
		f.Value += " from the client, " + server + " to the server"
	}
	return f
}

// id returns the id for a record's copy: that of its client, if it is known.
func id(r *registry.TrafficRecord) json.RawMessage {
	if kept := registry.ID(r.Wire, registry.ClientID); json.Valid([]byte(kept)) {
		return json.RawMessage(kept)
	}
	return nil
}

// Asked are the headers of a request: as they came, and as they went on.
func Asked(r *registry.TrafficRecord) []viewer.Section {
	return append(headers(r, registry.FromClient, "headers from the client"), headers(r, registry.WireToServer, "headers to the server")...)
}

// Answered are the headers of the answer to it: as they came, and as they went on.
func Answered(r *registry.TrafficRecord) []viewer.Section {
	return append(headers(r, registry.FromServer, "headers from the server"), headers(r, registry.WireToClient, "headers to the client")...)
}

// headers are those of one way; nil where it was not HTTP.
func headers(r *registry.TrafficRecord, p registry.WirePart, title string) []viewer.Section {
	lines := registry.Lines(r.Wire, p)
	if len(lines) == 0 {
		return nil
	}
	facts := []viewer.Field{{Label: "HTTP", Value: lines[0]}}
	for _, l := range lines[1:] {
		name, value, _ := strings.Cut(l, ": ")
		facts = append(facts, viewer.Field{Label: name, Value: cmp.Or(value, `""`)})
	}
	return []viewer.Section{{Title: title, Kind: viewer.Fields, Fields: facts}}
}

// Headers returns all headers of an exchange, folded, or nil if nothing went over HTTP.
func Headers(r *registry.TrafficRecord) []viewer.Section {
	var text []byte
	for _, b := range append(Asked(r), Answered(r)...) {
		inner := []byte("{")
		for i, f := range b.Fields {
			if i > 0 {
				inner = append(inner, ',')
			}
			inner = append(append(append(inner, rawjson.Quote(f.Label)...), ':'), rawjson.Quote(f.Value)...)
		}
		text = append(append(append(append(text, ','), rawjson.Quote(b.Title)...), ':'), append(inner, '}')...)
	}
	if text == nil {
		return nil
	}
	text[0] = '{'
	return []viewer.Section{{Title: "Headers", Kind: viewer.JSON, Data: append(text, '}'), Shut: true}}
}

// Carried says over what a record went: how its client is connected, and its server.
func Carried(reg *registry.Registry, r *registry.TrafficRecord) string {
	client := registry.ID(r.Wire, registry.Transport)
	for _, s := range reg.Sessions() {
		if client == "" && s.ID == r.Session {
			client = s.Transport
		}
	}
	server := ""
	for _, s := range reg.States() {
		if s.Name == r.Server {
			server = s.Transport
		}
	}
	var ends []string
	if client != "" {
		ends = append(ends, "client "+client)
	}
	if server != "" {
		ends = append(ends, "server "+server)
	}
	return strings.Join(ends, ", ")
}
