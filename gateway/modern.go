package gateway

import (
	"fmt"
	"slices"

	"goblin/gateway/downstream"
	"goblin/registry/rawjson"
)

// modernMethods has the methods of stateless requests (2026-07-28), besides the common
// ones.
var modernMethods = map[string]method{
	"server/discover":      (*Gateway).discover,
	"subscriptions/listen": (*Gateway).listen,
	"tasks/update":         (*Gateway).serveTask,
}

// modern reports whether the request is a stateless one.
func (r *request) modern() bool { return r.Modern() != nil }

// discover answers as [Gateway.initialize] does.
func (g *Gateway) discover(r *request) {
	r.greet()
	r.reply(fmt.Appendf(nil, `{"supportedVersions":%s,"capabilities":%s,"instructions":%s}`,
		rawjson.Strings(slices.Concat(downstream.ModernProtocols, downstream.DefaultProtocols)),
		g.relays.Capabilities(r.view(), modernCapabilities), rawjson.Quote(r.instructions())))
}

// met notes the client that sends stateless requests on a session, for screens.
func (g *Gateway) met(r *request) {
	if r.Session().Meet(r.Modern()) {
		g.showSession(r.Session())
	}
}
