package gateway

import (
	"slices"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/tasks"
	"goblin/registry/rawjson"
)

// capabilities are constant: servers come and go, a handshake happens once.
var capabilities = []byte(`{"completions":{},"logging":{},"prompts":{"listChanged":true},` +
	`"resources":{"subscribe":true,"listChanged":true},"tools":{"listChanged":true}}`)

// taskCapabilities are those of clients whose revision has tasks.
var (
	taskCapabilities   = rawjson.SetMember(capabilities, "tasks", []byte(`{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`))
	modernCapabilities = tasks.WithExtension(capabilities)
)

// initialize answers at once, whatever the backends do.
func (g *Gateway) initialize(r *request) {
	asked, _, err := stringMember(r.Params(), "protocolVersion")
	if err != nil {
		r.fail(err)
		return
	}
	protocol := downstream.LatestLegacy
	if slices.Contains(downstream.DefaultProtocols, asked) {
		protocol = asked
	}
	if r.Session().Protocol() != "" {
		r.fail(jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Already initialized"))
		return
	}
	r.Session().SetInitialized(protocol, r.Params())
	g.ask.Initialized(r.Session())
	g.showSession(r.Session())

	result := append(make([]byte, 0, 1024), `{"protocolVersion":`...)
	result = rawjson.AppendString(result, protocol)
	result = append(result, `,"capabilities":`...)
	if protocol == downstream.LatestLegacy {
		result = append(result, taskCapabilities...)
	} else {
		result = append(result, capabilities...)
	}
	result = append(result, `,"serverInfo":`...)
	result = append(result, g.serverInfo...)
	result = append(result, `,"instructions":`...)
	result = rawjson.AppendString(result, g.instructions())
	r.reply(append(result, '}'))
}
