package telemetry

import (
	"cmp"
	"net/http"
	"strconv"
	"sync"

	"goblin/gateway/downstream"
	"goblin/registry"
)

var wireBuffers = sync.Pool{New: func() any {
	b := make([]byte, 0, registry.MaxWire)
	return &b
}}

// describeWire describes the transport of a request and its call. code is the answer's
// error code, or 0.
func describeWire(text []byte, x *downstream.Request, call Call, code int) []byte {
	text = registry.AppendWord(text, registry.ClientID, x.ID())
	text = registry.AppendWord(text, registry.Transport, x.Session().Transport())
	text = describeHTTP(text, x, code)
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
	text = describeRequestLine(text, registry.WireToServer, answer.Request)
	text = registry.AppendHeaders(text, registry.WireToServer, answer.Request.Header)
	text = registry.AppendWire(text, registry.FromServer, answer.Proto, answer.Status)
	return registry.AppendHeaders(text, registry.FromServer, answer.Header)
}

func describeHTTP(text []byte, x *downstream.Request, code int) []byte {
	r, status, kind := x.HTTP(code)
	if r == nil {
		return text
	}
	text = describeRequestLine(text, registry.FromClient, r)
	text = registry.AppendHeaders(text, registry.FromClient, r.Header)
	text = registry.AppendWire(text, registry.WireToClient, r.Proto, strconv.Itoa(status), http.StatusText(status))
	return registry.AppendWire(text, registry.WireToClient, "Content-Type:", kind)
}

// describeRequestLine omits the query, which may hold a secret.
func describeRequestLine(text []byte, p registry.WirePart, r *http.Request) []byte {
	path := ""
	if r.URL != nil {
		path = r.URL.EscapedPath()
	}
	return registry.AppendWire(text, p, r.Method, cmp.Or(path, "/"), r.Proto)
}

// DescribeTransport describes the transport of a request in flight.
func DescribeTransport(x *downstream.Request) []byte { return describeWire(nil, x, nil, 0) }
