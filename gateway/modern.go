package gateway

import (
	"fmt"
	"slices"
	"strconv"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/tasks"
	"goblin/gateway/upstream"
	"goblin/registry/rawjson"
)

// Methods of stateless requests (2026-07-28) in addition to the common ones.
var modernMethods = map[string]method{
	"server/discover":      (*Gateway).discover,
	"subscriptions/listen": (*Gateway).listen,
	"tasks/update":         (*Gateway).serveTask,
}

func (r *request) modern() bool { return r.Modern() != nil }

// discover answers like [Gateway.initialize].
func (g *Gateway) discover(r *request) {
	r.awaitServers()
	r.reply(fmt.Appendf(nil, `{"supportedVersions":%s,"capabilities":%s,"instructions":%s}`,
		rawjson.Strings(slices.Concat(downstream.ModernProtocols, downstream.DefaultProtocols)),
		g.relays.capabilities(r.view(), modernCapabilities), rawjson.Quote(r.instructions())))
}

// recordModernClient shows a stateless client in the UI.
func (g *Gateway) recordModernClient(r *request) {
	if r.Session().RecordStateless(r.Modern()) {
		g.showSession(r.Session())
	}
}

// addModernMeta adds a client's capabilities and log level for a modern server. They come
// from a legacy session or a modern request.
func (g *Gateway) addModernMeta(r *request, conn upstream.Conn, c *upstream.Call) {
	info := conn.Info()
	if info.Era != upstream.Modern {
		return
	}
	if r.modern() && r.outer == nil { // the client's own values apply unchanged
		c.Capabilities, c.LogLevel = g.Servers.ClientCapabilities(r.server, r.Client().Capabilities), r.Modern().LogLevel
		c.AcceptTask = tasks.AcceptTask(r.Request)
		return
	}
	c.Capabilities = g.Servers.ClientCapabilities(r.server, g.ask.Capabilities(r.Client().Capabilities, false))
	switch {
	case r.modern():
		c.LogLevel = r.Modern().LogLevel
	case info.Has("logging"):
		wanted := r.Session().Level()
		if wanted == downstream.LevelUnset {
			wanted = downstream.LevelInfo
		}
		c.LogLevel = downstream.Levels[wanted]
	}
}

// toLegacyError converts a modern server's error for a legacy client.
func (g *Gateway) toLegacyError(r *request, server, name string, object []byte) []byte {
	if r.modern() || r.era == upstream.Legacy {
		return object
	}
	e := jsonrpc.ParseErrorObject(object)
	switch e.Code {
	case downstream.CodeMissingCapability:
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
		// There is no code for a missing resource.
		uri, ok := rawjson.String(rawjson.Get(e.Data, "uri"))
		if r.Method() == "resources/read" && ok && uri == name {
			code := rawjson.ReplaceEdit(object, rawjson.Get(object, "code"), strconv.AppendInt(nil, downstream.CodeResourceNotFound, 10))
			return rawjson.Splice(object, code)
		}
	}
	return object
}
