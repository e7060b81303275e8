package inflight

import (
	"goblin/registry"
	"goblin/registry/names"
	"goblin/registry/rawjson"
)

// A Rewriter collects the edits that turn a server's URIs in a result into
// those that clients see. Nothing else of a result changes, but for members that
// readers understand differently: text, blobs and structured content are never
// looked into.
type Rewriter struct {
	Registry *registry.Registry // learns them
	Namer    Namer              // of the client
	Server   string
	Shape    *rawjson.Layout // of the text that is read next; may be nil
	Edits    []rawjson.Edit
	// ReadURI is the URI that is read, "" for none, and RequestedURI how the client spelled it. Of
	// apps, hosts look for the contents of the very URI that they asked for.
	ReadURI, RequestedURI string
	// Skills says that URIs are those of skills and folders, which have one form
	// whatever the namespace.
	Skills bool

	text []byte // the text that the edits apply to
}

// Namer gives a server's URI the form that a client sees: a [registry.Snapshot], or a request
// that has one.
type Namer interface {
	ListedURI(server, original string) string
}

// RewriteNotification returns the params of a vendor's notification with the URI in them as a client sees
// it.
func RewriteNotification(r *registry.Registry, nameList Namer, server string, params []byte) []byte {
	if rawjson.Get(params, "uri") == nil {
		return params
	}
	w := Rewriter{Registry: r, Namer: nameList, Server: server}
	params = w.Read(rawjson.NotificationParams, params)
	return rawjson.Splice(params, w.Edits...)
}

// Read collects the edits of a result or an error and returns the text that they
// are made in: the one given, or one without members that are in doubt.
func (w *Rewriter) Read(tree *rawjson.KeyTree, text []byte) []byte {
	w.text = text
	if !tree.Read(w.Shape, text, w) {
		w.text, w.Shape, w.Edits = tree.Clean(w.Shape, text), nil, nil
		tree.Read(nil, w.text, w)
	}
	return w.text
}

// URI implements [rawjson.Visitor]. What is not a string is left as it is.
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
