package downstream

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// Requests and answers of 2026-07-28 carry an envelope instead of using a session. It is
// removed and added here, so that handlers work for both eras.

// CodeResourceNotFound is MCP's "resource not found" up to 2025-11-25.
const CodeResourceNotFound = -32002

// cacheableMethods lists the methods whose results need cache hints (2026-07-28,
// SEP-2549).
var cacheableMethods = map[string]bool{
	"server/discover": true, "tools/list": true, "prompts/list": true,
	"resources/list": true, "resources/templates/list": true, "resources/read": true,
	"skills/list": true, "skills/get": true, // SEP-2640
}

// stripEnvelope removes the protocol's members from _meta. Unless answers is set, it also
// removes answers to requests of the previous round.
func stripEnvelope(params []byte, answers bool) []byte {
	if params == nil {
		return nil
	}
	return rawjson.Filter(params, func(k rawjson.Key, v []byte) ([]byte, bool) {
		switch {
		case k.Is("_meta") && rawjson.IsObject(v):
			v = rawjson.Filter(v, func(name rawjson.Key, value []byte) ([]byte, bool) {
				text, _ := rawjson.String(name)
				return value, !strings.HasPrefix(text, MetaPrefix)
			})
			return v, len(v) > len("{}")
		case !answers && (k.Is("inputResponses") || k.Is("requestState")):
			return nil, false
		}
		return v, true
	})
}

const serverInfoKey = MetaPrefix + "serverInfo"

// Envelope adds edits with the members that an answer to a stateless request needs: type,
// server info, cache hints. shape may be nil.
func (x *Request) Envelope(result []byte, edits []rawjson.Edit, shape *rawjson.Layout) []rawjson.Edit {
	if x.modern == nil || x.outer != nil || x.session.opt.ServerInfo == nil {
		return edits
	}
	return addEnvelope(x.method, x.session.opt.ServerInfo, result, edits, shape)
}

func addEnvelope(method string, server, result []byte, edits []rawjson.Edit, shape *rawjson.Layout) []rawjson.Edit {
	var kind, meta, ttl, scope []byte
	empty := true
	for k, v := range shape.Members(result) {
		empty = false
		switch {
		case k.Is("resultType"):
			kind = v
		case k.Is("_meta"):
			meta = v
		case k.Is("ttlMs"):
			ttl = v
		case k.Is("cacheScope"):
			scope = v
		}
	}
	head := make([]byte, 0, 192)
	if kind == nil {
		head = append(head, `"resultType":"complete",`...)
	}
	if cacheableMethods[method] && (kind == nil || string(kind) == `"complete"`) {
		if ttl == nil {
			head = append(head, `"ttlMs":0,`...)
		}
		if scope == nil {
			head = append(head, `"cacheScope":"private",`...)
		}
	}
	own := append([]byte(`"`+serverInfoKey+`":`), server...)
	if meta == nil {
		head = append(append(append(head, `"_meta":{`...), own...), `},`...)
	} else {
		edits = append(edits, serverInfoEdit(result, meta, own, server))
	}
	if empty {
		head = head[:max(len(head)-1, 0)]
	}
	if len(head) > 0 {
		at := slices.Index(result, '{') + 1
		edits = append(edits, rawjson.Edit{Start: at, End: at, Text: head})
	}
	slices.SortStableFunc(edits, func(a, b rawjson.Edit) int { return cmp.Compare(a.Start, b.Start) })
	return edits
}

// serverInfoEdit returns an edit that sets the server info in an existing _meta. own is the
// member with the raw value server.
func serverInfoEdit(result, meta, own, server []byte) rawjson.Edit {
	if !rawjson.IsObject(meta) {
		return rawjson.ReplaceEdit(result, meta, append(append([]byte{'{'}, own...), '}'))
	}
	var info []byte
	bare := true
	for k, v := range rawjson.Members(meta) {
		bare = false
		if k.Is(serverInfoKey) {
			info = v
		}
	}
	at := rawjson.Offset(result, meta) + 1
	switch {
	case info != nil:
		return rawjson.ReplaceEdit(result, info, server)
	case bare:
		return rawjson.Edit{Start: at, End: at, Text: own}
	}
	return rawjson.Edit{Start: at, End: at, Text: append(own, ',')}
}

func toModernNotFound(raw, uri []byte) []byte {
	if code, _ := rawjson.Int(rawjson.Get(raw, "code")); code != CodeResourceNotFound {
		return raw
	}
	raw = rawjson.SetMember(raw, "code", strconv.AppendInt(nil, jsonrpc.CodeInvalidParams, 10))
	data := rawjson.Get(raw, "data")
	switch {
	case data == nil || string(data) == "null":
		return rawjson.SetMember(raw, "data", rawjson.SetMember([]byte("{}"), "uri", uri))
	case rawjson.IsObject(data) && rawjson.Get(data, "uri") == nil:
		return rawjson.SetMember(raw, "data", rawjson.SetMember(data, "uri", uri))
	}
	return raw
}
