package inflight

import (
	"goblin/registry"
	"goblin/registry/names"
	"goblin/registry/rawjson"
)

// A Rewriter collects edits that replace a server's URIs in a result with their listed
// form. It changes nothing else, except ambiguous members. It never parses text, blobs or
// structured content.
type Rewriter struct {
	Registry *registry.Registry // records the URIs
	Namer    Namer              // of the client
	Server   string
	Shape    *rawjson.Layout // of the next text; may be nil
	Edits    []rawjson.Edit
	// ReadURI is the URI being read, or "". RequestedURI is the client's spelling of it.
	// Hosts of apps expect contents under exactly the URI that they requested.
	ReadURI, RequestedURI string
	// Skills is set if URIs belong to skills and their folders. Their form does not
	// depend on the namespace.
	Skills bool

	text []byte
}

// Namer converts a server's URI to its listed form. Implementations are
// [registry.Snapshot] and requests that hold one.
type Namer interface {
	ListedURI(server, original string) string
}

// RewriteNotification returns the params of a vendor notification with their URI in its
// listed form.
func RewriteNotification(r *registry.Registry, nameList Namer, server string, params []byte) []byte {
	if rawjson.Get(params, "uri") == nil {
		return params
	}
	w := Rewriter{Registry: r, Namer: nameList, Server: server}
	params = w.Read(rawjson.NotificationParams, params)
	return rawjson.Splice(params, w.Edits...)
}

// Read collects the edits of a result or error and returns the text that they apply to.
// That is text itself, or a copy without ambiguous members.
func (w *Rewriter) Read(tree *rawjson.KeyTree, text []byte) []byte {
	w.text = text
	if !tree.Read(w.Shape, text, w) {
		w.text, w.Shape, w.Edits = tree.Clean(w.Shape, text), nil, nil
		tree.Read(nil, w.text, w)
	}
	return w.text
}

// URI implements [rawjson.Visitor]. Values other than strings stay unchanged.
func (w *Rewriter) URI(raw []byte) {
	uri, ok := rawjson.String(raw)
	if !ok || uri == "" {
		return
	}
	w.Registry.RecordLink(w.Server, uri)
	listed := w.RequestedURI
	switch {
	case w.Skills:
		listed = names.NamespacedURI(w.Server, uri)
	case uri != w.ReadURI || !names.IsApp(uri):
		listed = w.Namer.ListedURI(w.Server, uri)
	}
	w.Edits = append(w.Edits, rawjson.ReplaceEdit(w.text, raw, rawjson.Quote(listed)))
}
