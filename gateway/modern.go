package gateway

import (
	"slices"

	"goblin/gateway/downstream"
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
