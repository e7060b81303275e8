package upstream

import (
	"bytes"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// Token is where the token of a call's progress stands in its params. Each request that
// may take one has ours there, whether or not its client sent one: what a server tells
// under it shows that it works. The zero value leaves it to the connection to look.
type Token struct {
	start, end int
	around     *around // nil: in the place of the client's
	looked     bool    // for the place
	ours       bool    // ours goes there
}

// around is what stands around our token where there was none.
type around struct{ before, after []byte }

var (
	inNothing   = &around{[]byte(`{"_meta":{"progressToken":`), []byte(`}}`)}
	inEmpty     = &around{[]byte(`"_meta":{"progressToken":`), []byte(`}`)}
	inParams    = &around{[]byte(`"_meta":{"progressToken":`), []byte(`},`)}
	inMeta      = &around{[]byte(`"progressToken":`), []byte(`,`)}
	inEmptyMeta = &around{[]byte(`"progressToken":`), nil}
)

// KeptToken is that of params which have a token already that outlives the call.
var KeptToken = Token{looked: true}

// PlaceToken finds the place in params, an object or nil, whose `_meta` is meta, nil for
// none. theirs is the token that stands there, nil for none. A `_meta` that is no object
// is left for the server to refuse.
func PlaceToken(params, meta []byte) (t Token, theirs []byte) {
	t.looked = true
	t.ours = meta == nil || rawjson.IsObject(meta)
	switch {
	case params == nil:
		t.around = inNothing
	case meta == nil:
		t.inside(params, params, inParams, inEmpty)
	case t.ours:
		if theirs = rawjson.Get(meta, "progressToken"); theirs != nil {
			t.start = rawjson.Offset(params, theirs)
			t.end = t.start + len(theirs)
		} else {
			t.inside(params, meta, inMeta, inEmptyMeta)
		}
	}
	return t, theirs
}

// inside puts the token at the beginning of obj, a part of params.
func (t *Token) inside(params, obj []byte, full, empty *around) {
	at := bytes.IndexByte(obj, '{') + 1
	if t.around = full; len(bytes.TrimLeft(obj[at:], " \t\r\n")) == 1 { // nothing but the end
		t.around = empty
	}
	t.start = rawjson.Offset(params, obj) + at
	t.end = t.start
}

// place looks for the place of a call's token, unless somebody has.
func (c *Call) place() {
	switch {
	case c.Token.looked:
	case c.handshake, c.own, c.listening != nil:
		c.Token = KeptToken
	default:
		c.Token, _ = PlaceToken(c.Params, rawjson.Get(c.Params, "_meta"))
	}
}

// frame is the request under the given id, which is also the progress token.
func (c *Call) frame(id []byte) []byte {
	if !c.Token.ours {
		return jsonrpc.Request(id, c.Method, c.Params, c.Edits...)
	}
	params := c.Params
	if params == nil {
		params = []byte{}
	}
	var room [8]rawjson.Edit
	edits, placed := room[:0], false
	for _, e := range c.Edits {
		if !placed && c.Token.start <= e.Start {
			edits, placed = c.Token.edits(edits, id), true
		}
		edits = append(edits, e)
	}
	if !placed {
		edits = c.Token.edits(edits, id)
	}
	return jsonrpc.Request(id, c.Method, params, edits...)
}

// edits appends those that put the token into params.
func (t *Token) edits(edits []rawjson.Edit, id []byte) []rawjson.Edit {
	if t.around == nil {
		return append(edits, rawjson.Edit{Start: t.start, End: t.end, Text: id})
	}
	return append(edits,
		rawjson.Edit{Start: t.start, End: t.start, Text: t.around.before},
		rawjson.Edit{Start: t.start, End: t.start, Text: id},
		rawjson.Edit{Start: t.start, End: t.start, Text: t.around.after},
	)
}
