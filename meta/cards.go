package meta

import (
	"strconv"
	"strings"

	"goblin/registry"
	"goblin/registry/rawjson"
)

// object writes a JSON object.
type object struct{ raw []byte }

func newObject() object { return object{raw: []byte{'{'}} }

func (o *object) value(name string, raw []byte) {
	if len(o.raw) > 1 {
		o.raw = append(o.raw, ',')
	}
	o.raw = append(rawjson.AppendString(o.raw, name), ':')
	o.raw = append(o.raw, raw...)
}

// text adds a text unless it is empty.
func (o *object) text(name, value string) {
	if value != "" {
		o.value(name, rawjson.Quote(value))
	}
}

func (o *object) number(name string, n int64) { o.value(name, strconv.AppendInt(nil, n, 10)) }

func (o *object) texts(name string, values []string) {
	raw := []byte{'['}
	for i, v := range values {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = rawjson.AppendString(raw, v)
	}
	o.value(name, append(raw, ']'))
}

func (o *object) end() []byte { return append(o.raw, '}') }

// card is what lists say about an entry: enough to choose one. What it does
// not have is left out.
func (t *Tools) card(e *registry.Entry) object {
	o := newObject()
	o.entry(e)
	o.text("serverId", e.Server)
	if e.Kind == registry.Tool {
		o.text("awaitsApproval", t.awaits(e.Server, e.Name))
	}
	return o
}

// awaits says why a tool of a server awaits approval, "" if it does not.
func (t *Tools) awaits(server, name string) string {
	switch p := t.o.Registry.PinnedTool(server, name); {
	case p == nil:
		return ""
	case p.New:
		return "new"
	}
	return "changed"
}

func (o *object) entry(e *registry.Entry) {
	switch e.Kind {
	case registry.Resource:
		o.text("uri", e.Listed)
		o.text("name", e.Label)
	case registry.Template:
		o.text("uriTemplate", e.Listed)
		o.text("name", e.Label)
	default:
		o.text("name", e.Listed)
	}
	if e.Title != e.Label {
		o.text("title", e.Title)
	}
	o.text("description", excerpt(e.Description))
	o.text("mimeType", e.MIME)
	if e.Size >= 0 && e.Kind == registry.Resource {
		o.number("size", e.Size)
	}
}

// excerpt is the beginning of a description, in one line.
func excerpt(s string) string {
	return cut(strings.Join(strings.Fields(cut(s, 2*maxExcerpt)), " "), maxExcerpt)
}

// list is a part of a list as the tools answer it.
type list struct {
	member string // that holds the cards
	cards  []byte
	n      int
	first  int // offset of the first card
	total  int
}

func (l *list) add(card []byte) {
	if l.n > 0 {
		l.cards = append(l.cards, ',')
	}
	l.cards = append(l.cards, card...)
	l.n++
}

// end is the structured answer. pending are the servers that may add to it.
func (l *list) end(pending []string) []byte {
	o := newObject()
	o.value(l.member, append(append([]byte{'['}, l.cards...), ']'))
	o.number("total", int64(l.total))
	if next := l.first + l.n; l.n > 0 && next < l.total {
		o.number("nextOffset", int64(next))
	}
	if len(pending) > 0 {
		o.texts("pending", pending)
	}
	return o.end()
}

// answer is the result of a call: the structured value, and the same as text.
func answer(structured []byte) []byte {
	out := append([]byte(`{"content":[{"type":"text","text":`), rawjson.Quote(string(structured))...)
	out = append(out, `}],"structuredContent":`...)
	return append(append(out, structured...), '}')
}

// texts is a result of texts alone, one block for each that is not empty.
func texts(failed bool, blocks ...string) []byte {
	out := []byte(`{"content":[`)
	n := 0
	for _, b := range blocks {
		if b == "" {
			continue
		}
		if n++; n > 1 {
			out = append(out, ',')
		}
		out = append(out, `{"type":"text","text":`...)
		out = append(rawjson.AppendString(out, b), '}')
	}
	out = append(out, ']')
	if failed {
		out = append(out, `,"isError":true`...)
	}
	return append(out, '}')
}
