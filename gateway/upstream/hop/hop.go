// Package hop knows the members of `_meta` that concern one hop of a message (2026-07-28):
// those of the server's hop and of the client's never meet. It knows neither connections
// nor what is asked.
package hop

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"goblin/registry/rawjson"
)

// Names of members of `_meta` that the protocol owns (2026-07-28, basic, general fields).
// They concern one hop: the client's and the server's never meet.
const (
	prefix       = "io.modelcontextprotocol/"
	Protocol     = prefix + "protocolVersion"
	Capabilities = prefix + "clientCapabilities"
	ClientInfo   = prefix + "clientInfo"
	LogLevel     = prefix + "logLevel"
	ServerInfo   = prefix + "serverInfo"
	Subscription = prefix + "subscriptionId"
)

// Keys are those that are taken out of what a backend sends, and out of a
// client's `_meta` before ours go in. Others of the same prefix belong to
// extensions and stay.
var Keys = []string{Protocol, Capabilities, ClientInfo, LogLevel, ServerInfo, Subscription}

// IsKey reports whether a member is one of Keys.
func IsKey(k rawjson.Key) bool {
	if bytes.IndexByte(k, '\\') < 0 && !strings.HasPrefix(string(k), `"`+prefix) {
		return false
	}
	return slices.ContainsFunc(Keys, k.Is)
}

// Clean takes a backend's protocol keys out of the `_meta` of its params or
// result, and out of a result what says of which type it is. It works in
// place, as results can be large.
func Clean(obj []byte, result bool) []byte {
	var edits []rawjson.Edit
	meta := rawjson.Get(obj, "_meta")
	inner, kept := rawjson.Drop(obj, meta, IsKey)
	emptied := len(inner) > 0 && kept == 0
	outer, _ := rawjson.Drop(obj, obj, func(k rawjson.Key) bool {
		return result && k.Is("resultType") || emptied && k.Is("_meta")
	})
	edits = outer
	if !emptied {
		edits = append(edits, inner...)
		Sort(edits)
	}
	for _, e := range slices.Backward(edits) {
		obj = append(obj[:e.Start], obj[e.End:]...)
	}
	return obj
}

// Sort puts edits in the order in which they are made.
func Sort(edits []rawjson.Edit) {
	slices.SortStableFunc(edits, func(a, b rawjson.Edit) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
	})
}
