package viewer

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"goblin/registry/rawjson"
	"goblin/registry/termtext"
)

// maxParts is the maximum number of entries shown of one result.
const maxParts = 1000

// FromResource returns the sections for a result of resources/read.
func FromResource(result json.RawMessage) []Section {
	contents := member(result, "contents")
	if contents == nil {
		return asJSON(result)
	}
	var out []Section
	total := 0
	for c := range rawjson.Elements(contents) {
		if total++; total <= maxParts {
			out = append(out, resourceSections(c)...)
		}
	}
	if total == 0 {
		return []Section{{Kind: Note, Text: "the server sent no contents"}}
	}
	return noteMore(out, total)
}

// FromTool returns the sections for a result of tools/call.
func FromTool(result json.RawMessage) []Section {
	if rawjson.Valid(result) != nil || !rawjson.IsObject(result) {
		return asJSON(result)
	}
	var out []Section
	if string(rawjson.Get(result, "isError")) == "true" {
		out = append(out, Section{Kind: Error, Text: "the tool reports an error"})
	}
	total := 0
	for c := range rawjson.Elements(rawjson.Get(result, "content")) {
		if total++; total <= maxParts {
			out = append(out, contentSections(c)...)
		}
	}
	out = noteMore(out, total)
	structured := rawjson.Get(result, "structuredContent")
	if structured != nil {
		out = append(out, Section{Title: "Structured", Kind: JSON, Data: structured})
	}
	if total == 0 && structured == nil {
		if rawjson.Get(result, "content") == nil {
			return append(out, asJSON(result)...)
		}
		out = append(out, Section{Kind: Note, Text: "the result has no content"})
	}
	return out
}

// FromPrompt returns the sections for a result of prompts/get.
func FromPrompt(result json.RawMessage) []Section {
	messages := member(result, "messages")
	if messages == nil {
		return asJSON(result)
	}
	var out []Section
	if s := rawjson.GetString(result, "description"); s != "" {
		out = append(out, Section{Kind: Text, Text: s})
	}
	total := 0
	for m := range rawjson.Elements(messages) {
		if total++; total > maxParts {
			continue
		}
		var body []Section
		switch c := rawjson.Get(m, "content"); {
		case c == nil:
			body = asJSON(m)
		case rawjson.IsArray(c):
			for part := range rawjson.Elements(c) {
				body = append(body, contentSections(part)...)
			}
		default:
			body = contentSections(c)
		}
		if len(body) == 0 {
			body = []Section{{Kind: Note, Text: "empty"}}
		}
		role := cmp.Or(rawjson.GetString(m, "role"), "message")
		body[0].Title = fmt.Sprintf("%d %s", total, role)
		out = append(out, body...)
	}
	if total == 0 {
		out = append(out, Section{Kind: Note, Text: "the prompt has no messages"})
	}
	return noteMore(out, total)
}

// JoinText returns the texts in a result of any kind, each on a new line, or its JSON
// without texts. They are not sanitized for a terminal.
func JoinText(result json.RawMessage) string {
	var parts []string
	forEachPart(result, func(c []byte) bool {
		if s, ok := rawjson.String(rawjson.Get(c, "text")); ok {
			parts = append(parts, s)
		}
		return true
	})
	if len(parts) == 0 {
		return string(result)
	}
	var out strings.Builder
	for i, s := range parts {
		if i > 0 && !strings.HasSuffix(parts[i-1], "\n") {
			out.WriteByte('\n')
		}
		out.WriteString(s)
	}
	return out.String()
}

// FirstBlob returns the first binary part of a result, for saving. name is the last part
// of its URI with only safe characters, and may be "".
func FirstBlob(result json.RawMessage) (name, mime string, data []byte, ok bool) {
	forEachPart(result, func(c []byte) bool {
		v := rawjson.Get(c, "blob")
		if v == nil {
			v = rawjson.Get(c, "data")
		}
		raw, err := bytesIn(v)
		if v == nil || err != nil {
			return true
		}
		name = fileName(rawjson.GetString(c, "uri"))
		mime = rawjson.GetString(c, "mimeType")
		data = raw
		ok = true
		return false
	})
	return name, mime, data, ok
}

// forEachPart calls yield for the parts of a result, or for their embedded resources,
// until it returns false.
func forEachPart(result json.RawMessage, yield func([]byte) bool) {
	if rawjson.Valid(result) != nil {
		return
	}
	part := func(c []byte) bool {
		if rawjson.GetString(c, "type") == "resource" {
			if r := rawjson.Get(c, "resource"); r != nil {
				c = r
			}
		}
		return yield(c)
	}
	for _, name := range []string{"contents", "content"} {
		for c := range rawjson.Elements(rawjson.Get(result, name)) {
			if !part(c) {
				return
			}
		}
	}
	for m := range rawjson.Elements(rawjson.Get(result, "messages")) {
		c := rawjson.Get(m, "content")
		if !rawjson.IsArray(c) {
			if c != nil && !part(c) {
				return
			}
			continue
		}
		for p := range rawjson.Elements(c) {
			if !part(p) {
				return
			}
		}
	}
}

func fileName(uri string) string {
	uri, _, _ = strings.Cut(uri, "#")
	uri, _, _ = strings.Cut(uri, "?")
	if i := strings.LastIndexAny(strings.TrimRight(uri, "/"), "/:"); i >= 0 {
		uri = uri[i+1:]
	}
	name := strings.Map(func(r rune) rune {
		switch {
		case r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z':
			return r
		case r >= 0xa1 && termtext.Line(string(r)) == string(r):
			return r
		}
		return '_'
	}, strings.TrimRight(uri, "/"))
	name = strings.TrimLeft(name, ".")
	if len(name) > 120 {
		name = strings.ToValidUTF8(name[len(name)-120:], "")
	}
	return name
}

func member(result json.RawMessage, name string) []byte {
	if rawjson.Valid(result) != nil {
		return nil
	}
	if v := rawjson.Get(result, name); rawjson.IsArray(v) {
		return v
	}
	return nil
}

func asJSON(raw []byte) []Section { return []Section{{Kind: JSON, Data: raw}} }

func noteMore(out []Section, total int) []Section {
	if total > maxParts {
		out = append(out, Section{Kind: Note, Text: fmt.Sprintf("and %d more", total-maxParts)})
	}
	return out
}

func resourceSections(c []byte) []Section {
	mime := rawjson.GetString(c, "mimeType")
	head := Section{Kind: Fields, Fields: []Field{{Label: "uri", Value: rawjson.GetString(c, "uri")}, {Label: "type", Value: mime}}}
	if s, ok := rawjson.String(rawjson.Get(c, "text")); ok {
		return withHead(head, textSection(s, mime))
	}
	if blob := rawjson.Get(c, "blob"); blob != nil {
		head.Fields = head.Fields[:1]
		return withHead(head, blobSection(blob, mime))
	}
	return asJSON(c)
}

func withHead(head, body Section) []Section {
	if slices.ContainsFunc(head.Fields, func(f Field) bool { return f.Value != "" }) {
		return []Section{head, body}
	}
	return []Section{body}
}

func blobSection(v []byte, mime string) Section {
	data, err := bytesIn(v)
	if err != nil {
		return Section{Kind: Error, Text: "the data is not base64: " + err.Error()}
	}
	return Section{Kind: Hex, Data: data, MIME: mime}
}

// bytesIn decodes a JSON string of base64 in either alphabet, padded or not.
func bytesIn(v []byte) ([]byte, error) {
	s, ok := rawjson.String(v)
	if !ok {
		return nil, fmt.Errorf("not a string")
	}
	data, err := base64.StdEncoding.DecodeString(s)
	if err == nil {
		return data, nil
	}
	bare := strings.TrimRight(strings.TrimSpace(s), "=")
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if data, again := enc.DecodeString(bare); again == nil {
			return data, nil
		}
	}
	return nil, err
}

// textSection returns the section for text of a MIME type. Untyped objects and arrays are
// JSON.
func textSection(s, mime string) Section {
	kind, _, _ := strings.Cut(mime, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	switch {
	case kind == "application/json" || kind == "text/json" || strings.HasSuffix(kind, "+json"):
		return Section{Kind: JSON, Data: []byte(s), MIME: mime}
	case kind == "text/markdown" || kind == "text/x-markdown":
		return Section{Kind: Markdown, Text: s, MIME: mime}
	case kind == "" || kind == "text/plain" || !strings.HasPrefix(kind, "text/"):
		if isJSON(s) {
			return Section{Kind: JSON, Data: []byte(s), MIME: mime}
		}
	}
	return Section{Kind: Text, Text: s, MIME: mime}
}

func isJSON(s string) bool {
	t := bytes.TrimLeft([]byte(s[:min(len(s), 64)]), " \t\r\n")
	if len(t) == 0 || t[0] != '{' && t[0] != '[' {
		return false
	}
	return rawjson.Valid([]byte(s)) == nil
}

func plainSection(s string) Section {
	b := textSection(s, "")
	if b.Kind != JSON && looksMarkdown(s) {
		b.Kind = Markdown
	}
	return b
}

// looksMarkdown reports whether a text has headings or fences near its start, or links.
func looksMarkdown(s string) bool {
	s = s[:min(len(s), 4096)]
	for l := range strings.Lines(s) {
		for _, mark := range []string{"# ", "## ", "### ", "```"} {
			if strings.HasPrefix(l, mark) {
				return true
			}
		}
	}
	return strings.Contains(s, "](http")
}

func contentSections(c []byte) []Section {
	switch rawjson.GetString(c, "type") {
	case "text":
		if s, ok := rawjson.String(rawjson.Get(c, "text")); ok {
			return []Section{plainSection(s)}
		}
	case "image", "audio":
		if v := rawjson.Get(c, "data"); v != nil {
			return withHead(Section{Kind: Fields, Fields: []Field{{Label: "content", Value: rawjson.GetString(c, "type")}}}, blobSection(v, rawjson.GetString(c, "mimeType")))
		}
	case "resource":
		if r := rawjson.Get(c, "resource"); rawjson.IsObject(r) {
			return resourceSections(r)
		}
	case "resource_link":
		if rawjson.GetString(c, "uri") != "" {
			return []Section{linkSection(c)}
		}
	}
	return asJSON(c)
}

func linkSection(c []byte) Section {
	b := Section{Kind: Fields, Fields: []Field{
		{Label: "link", Value: rawjson.GetString(c, "uri")},
		{Label: "name", Value: rawjson.GetString(c, "name")},
		{Label: "title", Value: rawjson.GetString(c, "title")},
		{Label: "about", Value: rawjson.GetString(c, "description"), Prose: true},
		{Label: "type", Value: rawjson.GetString(c, "mimeType")},
	}}
	if n, ok := rawjson.Int(rawjson.Get(c, "size")); ok && n >= 0 {
		b.Fields = append(b.Fields, Field{Label: "size", Value: formatBytes(n)})
	}
	return b
}
