// Hop knows the members of `_meta` that concern one hop of a message (2026-07-28):
// those of the server's hop and of the client's never meet. It knows neither connections
// nor what is asked.

package wire

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
	metaPrefix   = "io.modelcontextprotocol/"
	Protocol     = metaPrefix + "protocolVersion"
	Capabilities = metaPrefix + "clientCapabilities"
	ClientInfo   = metaPrefix + "clientInfo"
	LogLevel     = metaPrefix + "logLevel"
	ServerInfo   = metaPrefix + "serverInfo"
	Subscription = metaPrefix + "subscriptionId"
)

// HopKeys are those that are taken out of what a backend sends, and out of a
// client's `_meta` before ours go in. Others of the same prefix belong to
// extensions and stay.
var HopKeys = []string{Protocol, Capabilities, ClientInfo, LogLevel, ServerInfo, Subscription}

// IsHopKey reports whether a member is in HopKeys.
func IsHopKey(k rawjson.Key) bool {
	if bytes.IndexByte(k, '\\') < 0 && !strings.HasPrefix(string(k), `"`+metaPrefix) {
		return false
	}
	return slices.ContainsFunc(HopKeys, k.Is)
}

// StripHopKeys takes a backend's protocol keys out of the `_meta` of its params or
// result, and out of a result what says of which type it is. It works in
// place, as results can be large.
func StripHopKeys(obj []byte, result bool) []byte {
	var edits []rawjson.Edit
	meta := rawjson.Get(obj, "_meta")
	inner, kept := rawjson.DropMembers(obj, meta, IsHopKey)
	emptied := len(inner) > 0 && kept == 0
	outer, _ := rawjson.DropMembers(obj, obj, func(k rawjson.Key) bool {
		return result && k.Is("resultType") || emptied && k.Is("_meta")
	})
	edits = outer
	if !emptied {
		edits = append(edits, inner...)
		SortEdits(edits)
	}
	for _, e := range slices.Backward(edits) {
		obj = append(obj[:e.Start], obj[e.End:]...)
	}
	return obj
}

// SortEdits puts edits in the order in which they are made.
func SortEdits(edits []rawjson.Edit) {
	slices.SortStableFunc(edits, func(a, b rawjson.Edit) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
	})
}
