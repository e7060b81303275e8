package gateway

import (
	"fmt"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
	"goblin/registry/rawjson"
)

// codeMissingCapability is the error of a request that needs what its client
// did not declare (2026-07-28).
const codeMissingCapability = -32021

// stampModern gives a call to a modern backend what its client can be asked
// and wants logged. A legacy client said both for its session, a modern one
// with the request.
func (g *Gateway) stampModern(r *request, conn upstream.Conn, c *upstream.Call) {
	info := conn.Info()
	if info.Era != upstream.Modern {
		return
	}
	c.Capabilities = g.relayable(r.Client().Capabilities)
	switch {
	case r.modern(): // of its own, or none at all
		c.LogLevel = r.Modern().LogLevel
	case info.Has("logging"):
		wanted := defaultLevel
		if r.client != nil && r.client.wants() != levelUnset {
			wanted = r.client.wants()
		}
		c.LogLevel = levelNames[wanted]
	}
}

// relayable are the capabilities of a client as far as a backend's questions
// reach it. Roots are there too when the configuration has some.
func (g *Gateway) relayable(declared []byte) []byte {
	out := []byte{'{'}
	for _, name := range []string{"elicitation", "roots", "sampling"} {
		value := rawjson.Get(declared, name)
		switch {
		case name == "roots" && (rawjson.IsObject(value) || len(*g.roots.Load()) > 0):
			value = []byte("{}") // listChanged has no place in it any more
		case !rawjson.IsObject(value):
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(rawjson.AppendString(out, name), ':')
		out = append(out, value...)
	}
	return append(out, '}')
}

// fromModern turns an error of a modern backend into what a legacy client
// understands; those of legacy backends and for modern clients stay as they are.
func (g *Gateway) fromModern(r *request, server, name string, object []byte) []byte {
	if r.modern() {
		return object
	}
	e := jsonrpc.ParseErrorObject(object)
	switch e.Code {
	case codeMissingCapability:
		needs := ""
		for k := range rawjson.Members(rawjson.Get(e.Data, "requiredCapabilities")) {
			if name, ok := rawjson.String(k); ok {
				needs += " " + name
			}
		}
		e.Code = jsonrpc.CodeInternal
		e.Message = fmt.Sprintf("server %q needs capabilities that the client did not declare:%s (%s)", server, needs, e.Message)
		return e.Object()
	case jsonrpc.CodeInvalidParams:
		// The revision has no code of its own for a resource that is not there.
		uri, ok := rawjson.String(rawjson.Get(e.Data, "uri"))
		if r.Method() == "resources/read" && ok && uri == name {
			e.Code = codeResourceNotFound
			return e.Object()
		}
	}
	return object
}

// restoreWidth is how many subscriptions are restored side by side. A modern
// backend is asked for all that come together at once.
func restoreWidth(conn upstream.Conn) int {
	if conn.Info().Era == upstream.Modern {
		return 256
	}
	return 8
}
