package wire

import (
	"bytes"

	"goblin/registry/rawjson"
)

// TokenPosition is the position of the progress token in a request's params, or where to
// insert one. Requests get Goblin's own token where permitted, because progress shows
// that the server works. The zero value is unknown.
type TokenPosition struct {
	start, end int
	padding    *padding // nil: replaces the client's token
	known      bool
	insert     bool // the params permit a token
}

// padding holds the bytes inserted around the token if params have none.
type padding struct{ before, after []byte }

var (
	inNothing   = &padding{[]byte(`{"_meta":{"progressToken":`), []byte(`}}`)}
	inEmpty     = &padding{[]byte(`"_meta":{"progressToken":`), []byte(`}`)}
	inParams    = &padding{[]byte(`"_meta":{"progressToken":`), []byte(`},`)}
	inMeta      = &padding{[]byte(`"progressToken":`), []byte(`,`)}
	inEmptyMeta = &padding{[]byte(`"progressToken":`), nil}
)

// KeepToken is for params whose token must not change: it outlives the request, or the
// request may have none.
var KeepToken = TokenPosition{known: true}

// FindToken finds the token position in params, an object or nil. meta is their `_meta`
// or nil. theirs is the existing token or nil. A `_meta` that is not an object is left
// for the server to refuse.
func FindToken(params, meta []byte) (p TokenPosition, theirs []byte) {
	p.known, p.insert = true, meta == nil || rawjson.IsObject(meta)
	switch {
	case params == nil:
		p.padding = inNothing
	case meta == nil:
		p.inside(params, params, inParams, inEmpty)
	case p.insert:
		if theirs = rawjson.Get(meta, "progressToken"); theirs == nil {
			p.inside(params, meta, inMeta, inEmptyMeta)
			break
		}
		p.start = rawjson.Offset(params, theirs)
		p.end = p.start + len(theirs)
	}
	return p, theirs
}

func (p *TokenPosition) inside(params, obj []byte, full, empty *padding) {
	at := bytes.IndexByte(obj, '{') + 1
	if p.padding = full; rawjson.AfterSpace(obj, at) == len(obj)-1 { // empty object
		p.padding = empty
	}
	p.start = rawjson.Offset(params, obj) + at
	p.end = p.start
}

// IsKnown reports whether the position was determined.
func (p *TokenPosition) IsKnown() bool { return p.known }

// IsMissing reports whether the token is inserted rather than replaced.
func (p *TokenPosition) IsMissing() bool { return p.insert && p.padding != nil }

// Replace appends the edit that replaces the client's token, if there is one.
func (p *TokenPosition) Replace(edits []rawjson.Edit, ours []byte) []rawjson.Edit {
	if p.insert && p.padding == nil {
		edits = append(edits, rawjson.Edit{Start: p.start, End: p.end, Text: ours})
	}
	return edits
}

// TokenMember returns the member with the token, followed by a comma.
func TokenMember(ours []byte) []byte { return bytes.Join([][]byte{inMeta.before, inMeta.after}, ours) }

// Put returns params and their edits in order, including those for the token. They are
// appended to room.
func (p *TokenPosition) Put(room []rawjson.Edit, params []byte, edits []rawjson.Edit, ours []byte) ([]byte, []rawjson.Edit) {
	if !p.insert {
		return params, edits
	}
	if params == nil {
		params = []byte{}
	}
	put := false
	for _, e := range edits {
		if !put && p.start <= e.Start {
			room, put = p.put(room, ours), true
		}
		room = append(room, e)
	}
	if !put {
		room = p.put(room, ours)
	}
	return params, room
}

func (p *TokenPosition) put(edits []rawjson.Edit, ours []byte) []rawjson.Edit {
	if p.padding == nil {
		return p.Replace(edits, ours)
	}
	at := rawjson.Edit{Start: p.start, End: p.start}
	for _, text := range [...][]byte{p.padding.before, ours, p.padding.after} {
		at.Text = text
		edits = append(edits, at)
	}
	return edits
}
