package wire

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"goblin/registry/rawjson"
)

// Members of `_meta` that belong to the protocol (2026-07-28, basic, general fields).
// They are hop-local: those of client and server are never mixed.
const (
	metaPrefix   = "io.modelcontextprotocol/"
	Protocol     = metaPrefix + "protocolVersion"
	Capabilities = metaPrefix + "clientCapabilities"
	ClientInfo   = metaPrefix + "clientInfo"
	LogLevel     = metaPrefix + "logLevel"
	ServerInfo   = metaPrefix + "serverInfo"
	Subscription = metaPrefix + "subscriptionId"
)

// HopKeys are removed from messages of servers, and from a client's `_meta` before
// Goblin's own are added. Other keys with the prefix belong to extensions and stay.
var HopKeys = []string{Protocol, Capabilities, ClientInfo, LogLevel, ServerInfo, Subscription}

// IsHopKey reports whether a key is one of HopKeys.
func IsHopKey(k rawjson.Key) bool {
	if bytes.IndexByte(k, '\\') < 0 && !strings.HasPrefix(string(k), `"`+metaPrefix) {
		return false
	}
	return slices.ContainsFunc(HopKeys, k.Is)
}

// StripHopKeys removes the protocol's keys from `_meta` of a server's params or result,
// and resultType from a result. It works in place, as results can be large.
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

// SortEdits sorts edits by position.
func SortEdits(edits []rawjson.Edit) {
	slices.SortStableFunc(edits, func(a, b rawjson.Edit) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
	})
}
