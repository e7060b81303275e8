package gateway

import (
	"goblin/registry"
	"goblin/registry/members"
	"goblin/registry/rawjson"
)

// A rewriter collects the edits that turn a server's URIs in a result into
// those that clients see. Nothing else of a result changes, but for members that
// readers understand differently: text, blobs and structured content are never
// looked into.
type rewriter struct {
	registry *registry.Registry
	server   string
	whole    []byte // the text that the edits are made in
	shape    *rawjson.Shape
	edits    []rawjson.Edit
}

// read collects the edits of a result or an error and returns the text that they
// are made in: the one given, or one without members that are in doubt.
func (w *rewriter) read(tree *members.Tree, text []byte) []byte {
	if w.whole = text; !tree.Read(w.shape, text, w) {
		w.whole, w.shape, w.edits = tree.Clean(w.shape, text), nil, nil
		tree.Read(nil, w.whole, w)
	}
	return w.whole
}

// URI implements [members.Visitor]. What is not a string is left as it is.
func (w *rewriter) URI(raw []byte) {
	uri, ok := rawjson.String(raw)
	if !ok || uri == "" {
		return
	}
	w.registry.Learn(w.server, uri)
	w.edits = append(w.edits, rawjson.Replace(w.whole, raw, rawjson.Quote(w.registry.ListedURI(w.server, uri))))
}
