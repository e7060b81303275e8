package gateway

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"goblin/registry/rawjson"
)

// MinLimit is the smallest limit of a result, in bytes.
const MinLimit = 1 << 10

// maxRequestedLimit limits limitMetaKey, which Claude Code defines, in characters.
const (
	maxRequestedLimit = 500_000
	limitMetaKey      = "anthropic/maxResultSizeChars"
)

// RequestedLimit returns the characters that a tool requests for clients, or 0. Results
// are not cut below that. definition may be nil.
func RequestedLimit(definition []byte) int {
	n, ok := rawjson.Int(rawjson.Path(definition, "_meta", limitMetaKey))
	if !ok || n <= 0 {
		return 0
	}
	return int(min(n, maxRequestedLimit))
}

// ResultLimit is the limit of a result.
type ResultLimit struct {
	Limit       int    // in bytes of text
	RequestedBy int    // see [RequestedLimit]
	Owner       string // of the cut text; "": everyone with its URI
	Tool        string // may be ""
	Links       bool   // client has resource links
}

type block struct {
	raw    []byte
	text   string // of a text block
	isText bool
}

// CanTruncate reports whether a result may need truncation.
func CanTruncate(method string, result []byte) bool {
	return len(result) > MinLimit && (method == "tools/call" || method == "tasks/result" || method == taskResultMethod)
}

// taskResultMethod has the results of finished tasks inside (2026-07-28).
const taskResultMethod = "tasks/get"

// Truncate returns a shortened result with the edits, and stores the middle of its text.
// All other content stays whole. It returns nil if all text blocks together are short
// enough. The caller may reuse result.
func (s *ResultStore) Truncate(method string, result []byte, edits []rawjson.Edit, b ResultLimit) []byte {
	if method != taskResultMethod {
		return s.cut(result, edits, b)
	}
	result = rawjson.Splice(result, edits...)
	inner := rawjson.Get(result, "result")
	short := s.cut(inner, nil, b)
	if short == nil {
		return nil
	}
	return rawjson.Splice(result, rawjson.ReplaceEdit(result, inner, short))
}

func (s *ResultStore) cut(result []byte, edits []rawjson.Edit, b ResultLimit) []byte {
	if textSize(rawjson.Get(result, "content"), b) <= b.Limit {
		return nil
	}
	result = rawjson.Splice(result, edits...)
	content := rawjson.Get(result, "content")
	var blocks []block
	for e := range rawjson.Elements(content) {
		one := block{raw: e}
		one.text, one.isText = blockText(e)
		blocks = append(blocks, one)
	}
	short := s.truncateBlocks(blocks, b)
	if short == nil {
		return nil
	}
	return rawjson.Splice(result, rawjson.ReplaceEdit(result, content, short))
}

// textSize returns the bytes of all text blocks. It returns 0 if the content is below the
// limit, or below the limit that the tool requested.
func textSize(content []byte, b ResultLimit) (size int) {
	if len(content) <= b.Limit {
		return 0
	}
	characters := 0
	for e := range rawjson.Elements(content) {
		text, _ := blockText(e)
		size += len(text)
		characters += utf8.RuneCountInString(text)
	}
	if characters <= b.RequestedBy {
		return 0
	}
	return size
}

func blockText(e []byte) (string, bool) {
	if !rawjson.Key(rawjson.Get(e, "type")).Is("text") {
		return "", false
	}
	return rawjson.String(rawjson.Get(e, "text"))
}

// truncateBlocks stores the middle of the text. It returns nil if only part of a
// character is too much.
func (s *ResultStore) truncateBlocks(blocks []block, b ResultLimit) []byte {
	size := 0
	for _, one := range blocks {
		size += len(one.text)
	}
	limit := max(b.Limit, b.RequestedBy)
	var (
		out         [][]byte
		rest        strings.Builder
		place, from = -1, 0 // of the note; of the block
	)
	for _, one := range blocks {
		head := charBoundary(one.text, limit/2-from)
		tail := max(head, charBoundary(one.text, size-limit/2-from))
		from += len(one.text)
		if !one.isText || head == tail {
			out = append(out, one.raw)
			continue
		}
		if head > 0 {
			out = append(out, one.with(one.text[:head]))
		}
		if place < 0 {
			place = len(out)
			out = append(out, nil)
		} else {
			rest.WriteByte('\n')
		}
		rest.WriteString(one.text[head:tail])
		if tail < len(one.text) {
			out = append(out, one.with(one.text[tail:]))
		}
	}
	if place < 0 {
		return nil
	}
	k := s.add(b.Owner, rest.String(), max(b.Limit, MinLimit))
	out[place] = rawjson.Object("type", "text", "text", k.note(size, rest.Len()))
	if k != nil && b.Links {
		out = append(out, k.link(b.Tool))
	}
	return append(append([]byte{'['}, bytes.Join(out, []byte{','})...), ']')
}

func (b *block) with(text string) []byte {
	return rawjson.SetMember(b.raw, "text", rawjson.Quote(text))
}

// note replaces out bytes. k is nil if they could not be stored.
func (k *storedText) note(size, out int) string {
	text := fmt.Sprintf("[Goblin removed %d of %d bytes here because the result exceeds max_result. ", out, size)
	if k == nil {
		return text + "They could not be stored; ask the tool for less.]"
	}
	text += fmt.Sprintf("To read them, read the resource %s", k.uri(1))
	switch pages := k.pages(); {
	case pages == 2:
		text += " and then " + k.uri(2)
	case pages > 2:
		text += fmt.Sprintf(", then %s and so on to %s", k.uri(2), k.uri(pages))
	}
	text += ", within an hour"
	if lost := out - len(k.text); lost > 0 {
		text += fmt.Sprintf("; the last %d bytes could not be stored; ask the tool for less", lost)
	}
	return text + ".]"
}

func (k *storedText) link(tool string) []byte {
	name := "The rest of the result"
	if tool != "" {
		name += " of " + tool
	}
	link := rawjson.Object("type", "resource_link", "uri", k.uri(1), "name", name,
		"description", fmt.Sprintf("The text that Goblin removed above, in %d pages", k.pages()), "mimeType", "text/plain")
	return rawjson.SetMember(link, "size", fmt.Appendf(nil, "%d", len(k.text)))
}

// nextPageKey is the _meta key with the URI of the next page.
const nextPageKey = "goblin/next"

// Read returns a page of a stored text, or a *[registry.NotFoundError].
func (s *ResultStore) Read(owner, uri string) ([]byte, error) {
	k, page, err := s.find(owner, uri)
	if err != nil {
		return nil, err
	}
	entry := func(text string) []byte { return rawjson.Object("uri", uri, "mimeType", "text/plain", "text", text) }
	out := append([]byte(`{"contents":[`), entry(k.slice(page))...)
	if page == k.pages() {
		return append(out, "]}"...), nil
	}
	next := k.uri(page + 1)
	out = append(append(out, ','), entry(fmt.Sprintf("[Goblin: page %d of %d; next page: %s]", page, k.pages(), next))...)
	out = append(out, `],"_meta":`...)
	return append(append(out, rawjson.Object(nextPageKey, next)...), '}'), nil
}
