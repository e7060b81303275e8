package upstream

import (
	"bytes"
	"slices"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream/wire"
	"goblin/registry/rawjson"
)

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
	strays, others := rawjson.DropMembers(params, params, func(k rawjson.Key) bool {
		return retry && (k.Is("inputResponses") || k.Is("requestState"))
	})
	edits = append(edits, strays...)

	var own []byte
	if c.Token.IsMissing() {
		own = wire.TokenMember(id)
	}
	own = append(own, `"`+wire.Protocol+`":"`+modernRevision+`","`+wire.Capabilities+`":`...)
	if c.Capabilities != nil {
		own = append(own, c.Capabilities...)
	} else {
		own = append(own, l.srv.opt.Capabilities...)
	}
	own = append(own, `,"`+wire.ClientInfo+`":{"name":"goblin","version":`...)
	own = append(rawjson.AppendString(own, l.srv.opt.Version), '}')
	if c.LogLevel != "" {
		own = rawjson.AppendString(append(own, `,"`+wire.LogLevel+`":`...), c.LogLevel)
	}
	meta := rawjson.Get(params, "_meta")
	switch {
	case rawjson.IsObject(meta):
		old, kept := rawjson.DropMembers(params, meta, wire.IsHopKey)
		edits = append(edits, old...)
		if kept > 0 {
			own = append(own, ',')
		}
		at := rawjson.Offset(params, meta) + 1
		edits = append(edits, rawjson.Edit{Start: at, End: at, Text: own})
	case meta != nil: // not what it must be
		edits = append(edits, rawjson.ReplaceEdit(params, meta, slices.Concat([]byte("{"), own, []byte("}"))))
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
	wire.SortEdits(edits)
	return jsonrpc.RequestFrame(id, c.Method, params, edits...)
}
