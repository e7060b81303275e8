package gateway

import (
	"slices"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// latestLegacy is the newest revision with an initialize handshake: what a
// client gets that asks for one that we do not serve.
const latestLegacy = "2025-11-25"

// legacyRevisions are the revisions served with an initialize handshake.
var legacyRevisions = []string{"2024-11-05", "2025-03-26", "2025-06-18", latestLegacy}

// capabilities are constant: servers come and go, a handshake happens once.
var capabilities = []byte(`{"completions":{},"logging":{},"prompts":{"listChanged":true},` +
	`"resources":{"subscribe":true,"listChanged":true},"tools":{"listChanged":true}}`)

// initialize answers at once, whatever the backends do.
func (g *Gateway) initialize(r *request) {
	asked, _, err := stringMember(r.Params(), "protocolVersion")
	if err != nil {
		r.fail(err)
		return
	}
	protocol := latestLegacy
	if slices.Contains(legacyRevisions, asked) {
		protocol = asked
	}
	if r.Session().Protocol() != "" {
		r.fail(jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Already initialized"))
		return
	}
	r.Session().SetInitialized(protocol, r.Params())
	if r.client != nil {
		g.showSession(r.client)
	}

	result := append(make([]byte, 0, 1024), `{"protocolVersion":`...)
	result = rawjson.AppendString(result, protocol)
	result = append(result, `,"capabilities":`...)
	result = append(result, capabilities...)
	result = append(result, `,"serverInfo":`...)
	result = append(result, g.serverInfo...)
	result = append(result, `,"instructions":`...)
	result = rawjson.AppendString(result, g.instructions())
	r.reply(append(result, '}'))
}

// maxNamedServers bounds the instructions; some clients put them whole into
// a model's context.
const maxNamedServers = 50

func (g *Gateway) instructions() string {
	names := g.ServerNames()
	more := ""
	if len(names) > maxNamedServers {
		names, more = names[:maxNamedServers], " and more"
	}
	own := ""
	if g.o.Config.Gateway.MetaTools.All {
		own = " Find what there is with search_tools and search_resources, look at it with describe_tool, " +
			"and make several calls at once with execute_lua."
	}
	return "Goblin serves several MCP servers as one: " + list(names) + more + ". " +
		"Tools are named server_tool, prompts server/prompt, and resources mcp://server/ followed by the server's own URI. " +
		"Read goblin://servers for the state of each server." + own
}

// Revisions are the protocol revisions that clients may negotiate, oldest
// first.
func Revisions() []string { return slices.Clone(legacyRevisions) }
