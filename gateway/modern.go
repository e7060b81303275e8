package gateway

import (
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/registry"
	"goblin/registry/members"
	"goblin/registry/rawjson"
)

// modernMethods are what stateless requests (2026-07-28) may ask for, besides the common
// ones.
var modernMethods = map[string]method{
	"server/discover":      (*Gateway).discover,
	"subscriptions/listen": (*Gateway).listen,
	"tasks/update":         (*Gateway).serveTask,
}

// modern reports whether the request is a stateless one.
func (r *request) modern() bool { return r.Modern() != nil }

// discover tells what is served, whatever the backends do.
func (g *Gateway) discover(r *request) {
	result := []byte(`{"supportedVersions":`)
	result = append(result, rawjson.Strings(slices.Concat(downstream.ModernProtocols, downstream.DefaultProtocols))...)
	result = append(result, `,"capabilities":`...)
	result = append(result, g.relays.Capabilities(r.view(), modernCapabilities)...)
	result = append(result, `,"instructions":`...)
	result = rawjson.AppendString(result, r.instructions())
	r.reply(append(result, '}'))
}

// met notes who sends stateless requests on a session, for those who look.
func (g *Gateway) met(r *request) {
	if r.Session().Meet(r.Modern()) {
		g.showSession(r.Session())
	}
}

// paramHeader marks the arguments in a tool's schema that HTTP clients repeat
// in headers (2026-07-28, SEP-2243).
const paramHeader = "x-mcp-header"

// checkParamHeaders compares the arguments of a call with the headers that
// repeat them, be they the client's or those that the server gets. Readers must
// not differ in what these arguments are.
func checkParamHeaders(r *request, t registry.Target) error {
	if t.Entry == nil || !rawjson.Mentions(t.Entry.JSON, paramHeader) {
		return nil
	}
	tool := &mcp.Tool{RawInputSchema: rawjson.Get(t.Entry.JSON, "inputSchema")}
	var paths [][]string
	for _, b := range mcp.ExtractParamHeaderBindings(tool) {
		paths = append(paths, b.Path)
	}
	if err := members.Paths(paths...).Check(rawjson.Get(r.Params(), "arguments")); err != nil {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: of the arguments, %v", err)
	}
	m := r.Modern()
	if m == nil || m.Header == nil {
		return nil
	}
	lookup := func(name string) (string, bool) {
		values := m.Header.Values(name)
		return strings.Join(values, ", "), len(values) > 0
	}
	if err := mcp.ValidateParamHeadersLookup(lookup, tool, r.Params()); err != nil {
		return jsonrpc.Errorf(downstream.CodeHeaderMismatch, "Header mismatch: %v", err)
	}
	return nil
}
