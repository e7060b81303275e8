package export

import (
	"encoding/json"
	"strconv"
	"strings"

	"goblin/registry"
)

type nameValue struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// id returns the id on the client's side of a request, or its Number if the recording
// lacks it. Notifications have none.
func (e *exchange) id() json.RawMessage {
	if e.isNotification() {
		return nil
	}
	part := registry.ClientID
	if e.toClient() {
		part = registry.ServerID
	}
	if id := registry.WireID([]byte(e.Wire), part); id != "" && json.Valid([]byte(id)) {
		return json.RawMessage(id)
	}
	return json.RawMessage(strconv.FormatUint(e.Number, 10))
}

func (e *exchange) idAt(part registry.WirePart) json.RawMessage {
	if id := registry.WireID([]byte(e.Wire), part); json.Valid([]byte(id)) {
		return json.RawMessage(id)
	}
	return nil
}

// headers returns the first line and the headers of an HTTP message. Both are empty for
// other transports.
func (e *exchange) headers(part registry.WirePart) (first []string, all []nameValue) {
	lines := registry.WireLines([]byte(e.Wire), part)
	if len(lines) == 0 {
		return nil, []nameValue{}
	}
	all = make([]nameValue, 0, len(lines)-1)
	for _, l := range lines[1:] {
		name, value, _ := strings.Cut(l, ":")
		all = append(all, nameValue{name, strings.TrimSpace(value)})
	}
	return strings.Fields(lines[0]), all
}
