package telemetry

import (
	"cmp"
	"net/http"
	"strconv"
	"sync"

	"goblin/gateway/downstream"
	"goblin/registry"
)

// wires are where it is written how exchanges went over the wire.
var wires = sync.Pool{New: func() any {
	b := make([]byte, 0, registry.MaxWire)
	return &b
}}

// how writes down how an exchange went over the wire: from a client, and on to a server
// by a call, which answered with a code.
func how(text []byte, x *downstream.Request, call Call, code int) []byte {
	text = registry.AppendWord(text, registry.ClientID, x.ID())
	text = registry.AppendWord(text, registry.Transport, x.Session().Transport())
	text = ofClient(text, x, code)
	if call == nil {
		return text
	}
	id, answer := call.WireID()
	if id != 0 {
		var room [20]byte
		text = registry.AppendWord(text, registry.ServerID, strconv.AppendInt(room[:0], id, 10))
	}
	if answer == nil || answer.Request == nil {
		return text
	}
	text = line(text, registry.WireToServer, answer.Request)
	text = registry.AppendHeaders(text, registry.WireToServer, answer.Request.Header)
	text = registry.AppendWire(text, registry.FromServer, answer.Proto, answer.Status)
	return registry.AppendHeaders(text, registry.FromServer, answer.Header)
}

// ofClient writes down what HTTP says between a client and Goblin.
func ofClient(text []byte, x *downstream.Request, code int) []byte {
	r, status, kind := x.HTTP(code)
	if r == nil {
		return text
	}
	text = line(text, registry.FromClient, r)
	text = registry.AppendHeaders(text, registry.FromClient, r.Header)
	text = registry.AppendWire(text, registry.WireToClient, r.Proto, strconv.Itoa(status), http.StatusText(status))
	return registry.AppendWire(text, registry.WireToClient, "Content-Type:", kind)
}

// line writes down the line of a request, without a query, which may hold a secret.
func line(text []byte, p registry.WirePart, r *http.Request) []byte {
	path := ""
	if r.URL != nil {
		path = r.URL.EscapedPath()
	}
	return registry.AppendWire(text, p, r.Method, cmp.Or(path, "/"), r.Proto)
}

// Transport writes down how an exchange that is under way came.
func Transport(x *downstream.Request) []byte { return how(nil, x, nil, 0) }
