package exchange

import (
	"cmp"
	"encoding/json"
	"strings"

	"goblin/registry"
	"goblin/registry/recording"
	"goblin/tui/viewer"
)

// A request that Goblin answered itself has one id, others one on each side.
func idField(r *registry.TrafficRecord) viewer.Field {
	f := viewer.Field{Label: "id"}
	if recording.IsNotification(r) {
		return f
	}
	f.Value = cmp.Or(registry.WireID(r.Wire, registry.ClientID), "not recorded")
	if server := registry.WireID(r.Wire, registry.ServerID); server != "" {
		f.Value += " (client), " + server + " (server)"
	}
	return f
}

// copyID returns the client's id of a record, or nil if it is unknown.
func copyID(r *registry.TrafficRecord) json.RawMessage {
	if kept := registry.WireID(r.Wire, registry.ClientID); json.Valid([]byte(kept)) {
		return json.RawMessage(kept)
	}
	return nil
}

func requestHeaders(r *registry.TrafficRecord) []viewer.Section {
	return append(partHeaders(r, registry.FromClient, "headers from the client"), partHeaders(r, registry.WireToServer, "headers to the server")...)
}

func responseHeaders(r *registry.TrafficRecord) []viewer.Section {
	return append(partHeaders(r, registry.FromServer, "headers from the server"), partHeaders(r, registry.WireToClient, "headers to the client")...)
}

// partHeaders returns the headers of one part, or nil if it was not HTTP.
func partHeaders(r *registry.TrafficRecord, p registry.WirePart, title string) []viewer.Section {
	lines := registry.WireLines(r.Wire, p)
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

func transportText(reg *registry.Registry, r *registry.TrafficRecord) string {
	client := registry.WireID(r.Wire, registry.Transport)
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
