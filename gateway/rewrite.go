package gateway

import (
	"goblin/registry"
	"goblin/registry/rawjson"
)

// A rewriter collects the edits that turn a server's URIs in a result into
// those that clients see. Nothing else of a result changes: text, blobs and
// structured content are never looked into.
type rewriter struct {
	registry *registry.Registry
	server   string
	whole    []byte // the text that the edits are made in
	shape    *rawjson.Shape
	edits    []rawjson.Edit
	mime     string // of the first content of a read
}

// uri rewrites one URI value; what is not a string is left as it is.
func (w *rewriter) uri(raw []byte) {
	uri, ok := rawjson.String(raw)
	if !ok || uri == "" {
		return
	}
	w.registry.Learn(w.server, uri)
	w.edits = append(w.edits, rawjson.Replace(w.whole, raw, rawjson.Quote(w.registry.ListedURI(w.server, uri))))
}

// contents rewrites the result of resources/read.
func (w *rewriter) contents(result []byte) {
	first := true
	for item := range w.shape.Elements(w.shape.Get(result, "contents")) {
		for k, v := range w.shape.Members(item) {
			switch {
			case k.Is("uri"):
				w.uri(v)
			case first && k.Is("mimeType"):
				w.mime, _ = rawjson.String(v)
			}
		}
		first = false
	}
}

// toolResult rewrites the links and embedded resources of tools/call.
func (w *rewriter) toolResult(result []byte) {
	for k, v := range w.shape.Members(result) {
		switch {
		case k.Is("content"):
			for block := range w.shape.Elements(v) {
				w.block(block)
			}
		case k.Is("_meta"):
			w.app(v)
		}
	}
}

// promptResult rewrites the messages of prompts/get.
func (w *rewriter) promptResult(result []byte) {
	for message := range w.shape.Elements(w.shape.Get(result, "messages")) {
		content := w.shape.Get(message, "content")
		w.block(content)
		for block := range w.shape.Elements(content) {
			w.block(block)
		}
	}
}

// block rewrites a content block: resource_link has a uri, resource has one
// inside.
func (w *rewriter) block(block []byte) {
	var kind, uri, embedded []byte
	for k, v := range w.shape.Members(block) {
		switch {
		case k.Is("type"):
			kind = v
		case k.Is("uri"):
			uri = v
		case k.Is("resource"):
			embedded = v
		}
	}
	switch {
	case rawjson.Key(kind).Is("resource_link"):
		w.uri(uri)
	case rawjson.Key(kind).Is("resource"):
		w.uri(w.shape.Get(embedded, "uri"))
	}
}

// app rewrites the URI by which an MCP App names its user interface.
func (w *rewriter) app(meta []byte) {
	w.uri(w.shape.Path(meta, "ui", "resourceUri"))
}

// failure rewrites the URI in the data of a server's error.
func (w *rewriter) failure(object []byte) {
	w.uri(w.shape.Path(object, "data", "uri"))
}
