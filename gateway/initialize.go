package gateway

import (
	"cmp"
	"fmt"
	"slices"

	"goblin/gateway/config"
	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/tasks"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// Constant except extensions: servers change, but a handshake happens once.
var capabilities = []byte(`{"completions":{},"logging":{},"prompts":{"listChanged":true},` +
	`"resources":{"subscribe":true,"listChanged":true},"tools":{"listChanged":true}}`)

var (
	taskCapabilities   = rawjson.SetMember(capabilities, "tasks", []byte(`{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`))
	modernCapabilities = tasks.WithExtension(capabilities)
)

// initialize answers after [request.awaitServers].
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

	r.awaitServers()
	own := capabilities
	if protocol == downstream.LatestLegacy {
		own = taskCapabilities
	}
	r.reply(fmt.Appendf(nil, `{"protocolVersion":%s,"capabilities":%s,"serverInfo":%s,"instructions":%s}`,
		rawjson.Quote(protocol), g.relays.capabilities(r.view(), own), g.serverInfo, rawjson.Quote(r.instructions())))
}

func (r *request) instructions() string {
	return Instructions(r.gateway, r.gateway.Views.ListsFor(r.Request))
}

// Instructions returns the text for models.
func Instructions(g *Gateway, lists *registry.Snapshot) string {
	var servers []DescribedServer
	for _, b := range g.Servers.All() {
		if state, _ := g.reg.State(b.Name()); lists.HasServer(b.Name()) {
			servers = append(servers, DescribedServer{Name: b.Name(), DisabledReason: unavailableReason(b.Config(), state), Instructions: state.Instructions})
		}
	}
	return InstructionsText(servers, func(tool string) bool { return lists.ByServerName(registry.Local, registry.Tool, tool) != nil })
}

// unavailableReason returns why a server is unavailable, or "".
func unavailableReason(cfg config.Server, state registry.ServerState) string {
	switch {
	case state.State == registry.StateDisabled, state.State == registry.StateStopped && cfg.Disabled:
		return "disabled"
	case cfg.Problem != "":
		return cfg.Problem
	case state.State == registry.StateNeedsLogin, state.State == registry.StateFailed, state.State == registry.StateRetrying:
		return cmp.Or(state.LastError, string(state.State))
	}
	return ""
}
