package upstream

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream/token"
	"goblin/registry/rawjson"
)

// Keys of `_meta` that the protocol owns (2026-07-28, basic, general fields).
// They concern one hop: the client's and the server's never meet.
const (
	protocolKeys    = "io.modelcontextprotocol/"
	keyProtocol     = protocolKeys + "protocolVersion"
	keyCapabilities = protocolKeys + "clientCapabilities"
	keyClientInfo   = protocolKeys + "clientInfo"
	keyLogLevel     = protocolKeys + "logLevel"
	keyServerInfo   = protocolKeys + "serverInfo"
	keySubscription = protocolKeys + "subscriptionId"
)

// hopKeys are those that are taken out of what a backend sends, and out of a
// client's `_meta` before ours go in. Others of the same prefix belong to
// extensions and stay.
var hopKeys = []string{keyProtocol, keyCapabilities, keyClientInfo, keyLogLevel, keyServerInfo, keySubscription}

func isHopKey(k rawjson.Key) bool {
	if bytes.IndexByte(k, '\\') < 0 && !strings.HasPrefix(string(k), `"`+protocolKeys) {
		return false
	}
	return slices.ContainsFunc(hopKeys, k.Is)
}

// clean takes a backend's protocol keys out of the `_meta` of its params or
// result, and out of a result what says of which type it is. It works in
// place, as results can be large.
func clean(obj []byte, result bool) []byte {
	var edits []rawjson.Edit
	meta := rawjson.Get(obj, "_meta")
	inner, kept := rawjson.Drop(obj, meta, isHopKey)
	emptied := len(inner) > 0 && kept == 0
	outer, _ := rawjson.Drop(obj, obj, func(k rawjson.Key) bool {
		return result && k.Is("resultType") || emptied && k.Is("_meta")
	})
	if edits = outer; !emptied {
		edits = append(edits, inner...)
		sortEdits(edits)
	}
	for _, e := range slices.Backward(edits) {
		obj = append(obj[:e.Start], obj[e.End:]...)
	}
	return obj
}

func sortEdits(edits []rawjson.Edit) {
	slices.SortStableFunc(edits, func(a, b rawjson.Edit) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
	})
}

// modernFrame is the request under the given id, with what the protocol wants
// in `_meta`. The client's own keys stay.
func (l *link) modernFrame(c *Call, id []byte) []byte {
	params := c.Params
	if params == nil {
		params = []byte("{}")
	}
	edits := slices.Clone(c.Edits)
	edits = c.Token.Replace(edits, id)
	var head []byte // members that come first, each followed by a comma
	retry := c.Answers != nil || c.State != nil
	if c.Answers != nil {
		head = slices.Concat(head, []byte(`"inputResponses":`), c.Answers, []byte{','})
	}
	if c.State != nil {
		head = slices.Concat(head, []byte(`"requestState":`), c.State, []byte{','})
	}
	strays, others := rawjson.Drop(params, params, func(k rawjson.Key) bool {
		return retry && (k.Is("inputResponses") || k.Is("requestState"))
	})
	edits = append(edits, strays...)

	var own []byte
	if c.Token.Missing() {
		own = token.Member(id)
	}
	own = append(own, `"`+keyProtocol+`":"`+modernRevision+`","`+keyCapabilities+`":`...)
	if c.Capabilities != nil {
		own = append(own, c.Capabilities...)
	} else {
		own = append(own, l.srv.opt.Capabilities...)
	}
	own = append(own, `,"`+keyClientInfo+`":{"name":"goblin","version":`...)
	own = append(rawjson.AppendString(own, l.srv.opt.Version), '}')
	if c.LogLevel != "" {
		own = rawjson.AppendString(append(own, `,"`+keyLogLevel+`":`...), c.LogLevel)
	}
	meta := rawjson.Get(params, "_meta")
	switch {
	case rawjson.IsObject(meta):
		old, kept := rawjson.Drop(params, meta, isHopKey)
		if edits = append(edits, old...); kept > 0 {
			own = append(own, ',')
		}
		at := rawjson.Offset(params, meta) + 1
		edits = append(edits, rawjson.Edit{Start: at, End: at, Text: own})
	case meta != nil: // not what it must be
		edits = append(edits, rawjson.Replace(params, meta, slices.Concat([]byte("{"), own, []byte("}"))))
	default:
		head = slices.Concat(head, []byte(`"_meta":{`), own, []byte(`},`))
	}
	if len(head) > 0 {
		if others == 0 {
			head = head[:len(head)-1]
		}
		at := bytes.IndexByte(params, '{') + 1
		edits = append(edits, rawjson.Edit{Start: at, End: at, Text: head})
	}
	sortEdits(edits)
	return jsonrpc.Request(id, c.Method, params, edits...)
}
