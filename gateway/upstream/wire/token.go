// Token puts tokens of ours for progress into the params of requests. Each request
// that may take one has ours, whether or not its client sent one: what a server tells under
// it shows that it works. It knows nothing of requests but their params, and changes no
// byte of those but what stands in the place of the token.

package wire

import (
	"bytes"

	"goblin/registry/rawjson"
)

// TokenPosition is where the token of a request stands in its params, or goes if there is none.
// The zero value was not looked for yet.
type TokenPosition struct {
	start, end int
	padding    *padding // nil: in the place of the client's
	known      bool
	insert     bool // insert goes there
}

// padding holds the bytes to insert around the token if params have none.
type padding struct{ before, after []byte }

var (
	inNothing   = &padding{[]byte(`{"_meta":{"progressToken":`), []byte(`}}`)}
	inEmpty     = &padding{[]byte(`"_meta":{"progressToken":`), []byte(`}`)}
	inParams    = &padding{[]byte(`"_meta":{"progressToken":`), []byte(`},`)}
	inMeta      = &padding{[]byte(`"progressToken":`), []byte(`,`)}
	inEmptyMeta = &padding{[]byte(`"progressToken":`), nil}
)

// KeepToken is that of params which take no token of ours: they have one that outlives the
// request, or the request may have none.
var KeepToken = TokenPosition{known: true}

// FindToken finds the place in params, an object or nil, whose `_meta` is meta, nil for none.
// theirs is the token that stands there, nil for none. A `_meta` that is no object is left
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

// inside puts the token at the beginning of obj, a part of params.
func (p *TokenPosition) inside(params, obj []byte, full, empty *padding) {
	at := bytes.IndexByte(obj, '{') + 1
	if p.padding = full; rawjson.AfterSpace(obj, at) == len(obj)-1 { // nothing but the end
		p.padding = empty
	}
	p.start = rawjson.Offset(params, obj) + at
	p.end = p.start
}

// IsKnown reports whether the place was looked for.
func (p *TokenPosition) IsKnown() bool { return p.known }

// IsMissing reports whether ours goes where there was none.
func (p *TokenPosition) IsMissing() bool { return p.insert && p.padding != nil }

// Replace appends the edit that puts ours in the place of the client's, if there is one.
func (p *TokenPosition) Replace(edits []rawjson.Edit, ours []byte) []rawjson.Edit {
	if p.insert && p.padding == nil {
		edits = append(edits, rawjson.Edit{Start: p.start, End: p.end, Text: ours})
	}
	return edits
}

// TokenMember is the member that holds ours, with a comma behind it.
func TokenMember(ours []byte) []byte { return bytes.Join([][]byte{inMeta.before, inMeta.after}, ours) }

// Put returns params and the edits to them, in order, those that put ours in among them;
// room is what they are appended to.
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
