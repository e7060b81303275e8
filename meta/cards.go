package meta

import (
	"slices"
	"strconv"
	"strings"

	"goblin/registry"
	"goblin/registry/rawjson"
)

type objectWriter struct{ raw []byte }

func newObjectWriter() objectWriter { return objectWriter{raw: []byte{'{'}} }

func (o *objectWriter) value(name string, raw []byte) {
	o.raw = rawjson.AppendMember(o.raw, rawjson.Quote(name), raw)
}

func (o *objectWriter) text(name, value string) {
	if value != "" {
		o.value(name, rawjson.Quote(value))
	}
}

func (o *objectWriter) number(name string, n int64) { o.value(name, strconv.AppendInt(nil, n, 10)) }

func (o *objectWriter) end() []byte { return append(o.raw, '}') }

// card returns a short description of a list entry without its empty members.
func (t *Tools) card(e *registry.Entry) objectWriter {
	o := newObjectWriter()
	o.entry(e)
	o.text("serverId", e.Server)
	if e.Kind == registry.Tool || e.Kind == registry.Skill {
		o.text("awaitsApproval", t.approvalReason(e.Server, e.Name))
	}
	return o
}

func (t *Tools) approvalReason(server, name string) string {
	switch p := t.o.Registry.UnapprovedTool(server, name); {
	case p == nil:
		return ""
	case p.New:
		return "new"
	}
	return "changed"
}

func (o *objectWriter) entry(e *registry.Entry) {
	switch e.Kind {
	case registry.Resource, registry.Skill:
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

func excerpt(s string) string {
	return truncateText(strings.Join(strings.Fields(truncateText(s, 2*maxExcerpt)), " "), maxExcerpt)
}

type cardList struct {
	member string // name of the member with the cards
	cards  [][]byte
	first  int // offset of the first card
	total  int
	// advice is the next step if no hit fits well, or "". servers belongs to it.
	advice  string
	servers []string
}

// pending are servers that may add to the answer.
func (l *cardList) end(pending []string) []byte {
	o := newObjectWriter()
	o.value(l.member, rawjson.Array(l.cards...))
	o.number("total", int64(l.total))
	if next := l.first + len(l.cards); len(l.cards) > 0 && next < l.total {
		o.number("nextOffset", int64(next))
	}
	if l.advice != "" {
		o.value("weak", []byte("true"))
		o.text("advice", l.advice)
		if len(l.servers) > 0 {
			o.value("servers", rawjson.Strings(l.servers))
		}
	}
	if len(pending) > 0 {
		o.value("pending", rawjson.Strings(pending))
	}
	return o.end()
}

func structuredResult(structured []byte) []byte {
	return withStructured(textResult(false, string(structured)), structured)
}

func withStructured(result, structured []byte) []byte {
	return slices.Concat(result[:len(result)-1], []byte(`,"structuredContent":`), structured, []byte{'}'})
}

func textResult(failed bool, blocks ...string) []byte {
	var content [][]byte
	for _, b := range blocks {
		if b != "" {
			content = append(content, rawjson.Object("type", "text", "text", b))
		}
	}
	o := newObjectWriter()
	o.value("content", rawjson.Array(content...))
	if failed {
		o.value("isError", []byte("true"))
	}
	return o.end()
}
