// Package shape repairs results of servers that client SDKs would reject.
//
// Clients discard a whole result for one member of the wrong type. [Repair] scans a
// result once, without reading text, blobs or structured content. Unknown block types and
// members stay unchanged. All functions are pure; their input must be valid JSON.
package shape

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"goblin/registry/rawjson"
	"goblin/registry/repair"
)

// Rules are a client's requirements for one result.
type Rules struct {
	// Method is the request's method. Results of unknown ones stay unchanged.
	Method string
	// URI replaces missing URIs of contents.
	URI string
	// AnyStructured allows structured content of every type.
	AnyStructured bool
}

// Kind is a set of repairs.
type Kind uint16

// Kinds of repair.
const (
	BadList     Kind = 1 << iota // content, contents, messages or values is not a list
	BadBlock                     // invalid content block
	BadEntry                     // invalid entry of contents, messages or values
	BadMember                    // optional member of the wrong type
	BadFlag                      // isError or hasMore is a string
	BadResult                    // task result is not an object
	UnknownRole                  // a message has an unknown role
)

var kindTexts = []string{
	"content, contents, messages or values is missing or not a list",
	"invalid content block; clients get its JSON as text",
	"invalid entry of contents, messages or values",
	"optional member of the wrong type; removed",
	"isError or hasMore is a string instead of a boolean",
	"task result is not an object",
	"prompt message with an unknown role; clients get \"user\"",
}

// Texts returns one line for each kind in k.
func (k Kind) Texts() []string {
	var texts []string
	for i, text := range kindTexts {
		if k&(1<<i) != 0 {
			texts = append(texts, text)
		}
	}
	return texts
}

// maxQuote is the maximum size of JSON quoted as text, in bytes.
const maxQuote = 1 << 20

// Repair returns a valid result and the repairs. A healthy result is the same slice.
// Results that require input or create a task stay unchanged. shape may be nil.
func Repair(r Rules, shape *rawjson.Layout, result []byte) ([]byte, Kind) {
	f := fixer{shape: shape, rules: r}
	switch r.Method {
	case "tools/call", "tasks/result":
		result = f.tool(result)
	case "tasks/get":
		result = f.task(result)
	case "resources/read":
		result = f.read(result)
	case "prompts/get":
		result = f.prompt(result)
	case "completion/complete":
		result = f.completion(result)
	}
	return result, f.repairs
}

type fixer struct {
	shape   *rawjson.Layout
	rules   Rules
	repairs Kind
}

// complete reports whether a result neither requires input nor creates a task.
func (f *fixer) complete(v *values) bool {
	if f.rules.Method == "tools/call" && rawjson.IsObject(v[task]) {
		return false
	}
	kind := rawjson.Key(v[resultType])
	return kind == nil || !kind.Is("input_required") && !kind.Is("task")
}

func (f *fixer) dropBadType(v *values, c *changes) {
	if hasWrongType(v[resultType], rawjson.IsString) {
		f.repairs |= BadMember
		c.drop(resultType)
	}
}

func (f *fixer) tool(result []byte) []byte {
	if f.isPlain(result) {
		return result
	}
	var v values
	f.scan(result, &v)
	if !f.complete(&v) {
		return result
	}
	var c changes
	f.dropBadType(&v, &c)
	var out [][]byte // dropped values, as text blocks
	drop := func(m member) {
		f.repairs |= BadMember
		c.drop(m)
		if !isNull(v[m]) {
			out = append(out, f.quote(v[m]))
		}
	}
	if s := v[structuredContent]; isNull(s) || s != nil && !f.rules.AnyStructured && !rawjson.IsObject(s) {
		drop(structuredContent)
	}
	if isNull(v[isError]) || v[isError] != nil && !isBool(v[isError]) {
		if b := boolOf(v[isError]); b != nil {
			f.repairs |= BadFlag
			c.set(isError, b)
		} else {
			drop(isError)
		}
	}
	if hasWrongType(v[meta], rawjson.IsObject) {
		drop(meta)
	}
	list := f.content(&v)
	if len(out) > 0 && isEmpty(list) {
		list = rawjson.Array(out...)
	}
	if !isSameSlice(list, v[content]) {
		c.set(content, list)
	}
	return c.apply(f.shape, result)
}

func (f *fixer) content(v *values) []byte {
	list := v[content]
	switch {
	case rawjson.IsArray(list):
		return f.mapEach(list, f.block)
	case list == nil && v[toolResult] != nil: // revision 2024-10-07
		f.repairs |= BadList
		return rawjson.Array(f.text(v[toolResult]))
	case list == nil || isNull(list):
		f.repairs |= BadList
		if rawjson.IsObject(v[structuredContent]) || f.rules.AnyStructured && v[structuredContent] != nil && !isNull(v[structuredContent]) {
			return rawjson.Array(f.quote(v[structuredContent]))
		}
		return []byte("[]")
	case rawjson.IsObject(list):
		f.repairs |= BadList
		return rawjson.Array(f.block(list))
	}
	f.repairs |= BadList
	return rawjson.Array(f.text(list))
}

func (f *fixer) task(state []byte) []byte {
	var v values
	f.scan(state, &v)
	inner := v[result]
	var fixed []byte
	switch {
	case inner == nil || isNull(inner):
		return state
	case rawjson.IsObject(inner):
		fixed = f.tool(inner)
	default:
		f.repairs |= BadResult
		fixed = append(append([]byte(`{"content":`), rawjson.Array(f.text(inner))...), `,"isError":true}`...)
	}
	if isSameSlice(fixed, inner) {
		return state
	}
	var c changes
	c.set(result, fixed)
	return c.apply(f.shape, state)
}

func (f *fixer) read(result []byte) []byte {
	return f.listing(result, contents, f.contentsEntry)
}

func (f *fixer) prompt(result []byte) []byte {
	return f.listing(result, messages, f.message)
}

func (f *fixer) listing(result []byte, name member, entry func([]byte) []byte) []byte {
	var v values
	f.scan(result, &v)
	if !f.complete(&v) {
		return result
	}
	var c changes
	f.dropBadType(&v, &c)
	f.optional(&v, &c, description)
	list := v[name]
	switch {
	case rawjson.IsArray(list):
		list = f.mapEach(list, entry)
	case list == nil || isNull(list):
		f.repairs |= BadList
		list = []byte("[]")
	default:
		f.repairs |= BadList
		list = rawjson.Array(entry(list))
	}
	if !isSameSlice(list, v[name]) {
		c.set(name, list)
	}
	return c.apply(f.shape, result)
}

func (f *fixer) contentsEntry(entry []byte) []byte {
	if !rawjson.IsObject(entry) {
		f.repairs |= BadEntry
		return member4(uri, rawjson.Quote(f.rules.URI), text, f.plain(entry))
	}
	var v values
	known := f.scan(entry, &v)
	var c changes
	f.optional(&v, &c)
	if !rawjson.IsString(v[uri]) {
		f.repairs |= BadEntry
		c.set(uri, rawjson.Quote(f.rules.URI))
	}
	hasText, hasBlob := rawjson.IsString(v[text]), rawjson.IsString(v[blob])
	switch {
	case hasText && v[blob] != nil && !hasBlob:
		f.repairs |= BadEntry
		c.drop(blob)
	case hasBlob && v[text] != nil && !hasText:
		f.repairs |= BadEntry
		c.drop(text)
	case hasText || hasBlob:
	case v[text] != nil && !isNull(v[text]):
		f.repairs |= BadEntry
		c.set(text, f.plain(v[text]))
		c.drop(blob)
	case known && (v[blob] == nil || isNull(v[blob])): // encoders omit an empty text
		f.repairs |= BadEntry
		c.set(text, []byte(`""`))
		c.drop(blob)
	default:
		f.repairs |= BadEntry
		c.set(text, f.plain(entry))
		c.drop(blob)
	}
	return c.apply(f.shape, entry)
}

// message turns a message with a list as content into one message per block.
func (f *fixer) message(m []byte) []byte {
	if !rawjson.IsObject(m) {
		f.repairs |= BadEntry
		return member4(role, []byte(`"user"`), content, f.text(m))
	}
	var v values
	f.scan(m, &v)
	var c changes
	if r := rawjson.Key(v[role]); !rawjson.IsString(r) || !r.Is("user") && !r.Is("assistant") {
		f.repairs |= UnknownRole
		name, _ := rawjson.String(r)
		c.set(role, []byte(`"user"`))
		if strings.EqualFold(name, "assistant") {
			c.set(role, []byte(`"assistant"`))
		}
	}
	switch value := v[content]; {
	case rawjson.IsObject(value):
		if fixed := f.block(value); !isSameSlice(fixed, value) {
			c.set(content, fixed)
		}
	case rawjson.IsArray(value):
		f.repairs |= BadEntry
		var all [][]byte
		for e := range f.shape.Elements(value) {
			c.set(content, f.block(e))
			all = append(all, c.apply(f.shape, m))
		}
		return bytes.Join(all, []byte{','})
	case value == nil:
		f.repairs |= BadEntry
		c.set(content, f.quote(m))
	default:
		f.repairs |= BadEntry
		c.set(content, f.text(value))
	}
	return c.apply(f.shape, m)
}

const maxValues = 100

func (f *fixer) completion(result []byte) []byte {
	var v, inner values
	f.scan(result, &v)
	if !f.complete(&v) {
		return result
	}
	var outer, c changes
	f.dropBadType(&v, &outer)
	f.optional(&v, &outer)
	object := v[completion]
	if !rawjson.IsObject(object) {
		f.repairs |= BadList
		list := []byte("[]")
		if rawjson.IsArray(object) {
			list = object
		}
		object = append(append([]byte(`{"values":`), list...), '}')
	}
	f.scan(object, &inner)
	list := inner[completionValues]
	switch {
	case rawjson.IsArray(list):
	case list == nil || isNull(list):
		f.repairs |= BadList
		list = []byte("[]")
	default:
		f.repairs |= BadList
		list = append(append([]byte{'['}, list...), ']')
	}
	n := 0
	list = f.mapEach(list, func(e []byte) []byte {
		if n++; n > maxValues {
			f.repairs |= BadEntry
			return nil
		}
		if rawjson.IsString(e) {
			return e
		}
		f.repairs |= BadEntry
		return f.plain(e)
	})
	if !isSameSlice(list, inner[completionValues]) {
		c.set(completionValues, list)
	}
	if hasWrongType(inner[total], isNumber) {
		f.repairs |= BadMember
		c.drop(total)
	}
	switch more := inner[hasMore]; {
	case n > maxValues:
		c.set(hasMore, []byte("true"))
	case more != nil && !isBool(more):
		f.repairs |= BadFlag
		if c.drop(hasMore); boolOf(more) != nil {
			c.set(hasMore, boolOf(more))
		}
	}
	if fixed := c.apply(f.shape, object); !isSameSlice(fixed, v[completion]) {
		outer.set(completion, fixed)
	}
	return outer.apply(f.shape, result)
}

func (f *fixer) block(b []byte) []byte {
	if !rawjson.IsObject(b) {
		f.repairs |= BadBlock
		return f.quote(b)
	}
	var v values
	f.scan(b, &v)
	kind := rawjson.Key(v[blockType])
	if !rawjson.IsString(kind) || kind.Is("") {
		f.repairs |= BadBlock
		return f.quote(b)
	}
	var c changes
	var ok bool
	switch string(kind.Name()) {
	case "text":
		ok = rawjson.IsString(v[text])
	case "image", "audio":
		ok = rawjson.IsString(v[data]) && rawjson.IsString(v[mimeType])
	case "resource":
		inner := f.embedded(v[resource])
		if ok = inner != nil; ok && !isSameSlice(inner, v[resource]) {
			c.set(resource, inner)
		}
	case "resource_link":
		if ok = rawjson.IsString(v[uri]); ok && !rawjson.IsString(v[name]) {
			f.repairs |= BadBlock
			target, _ := rawjson.String(v[uri])
			c.set(name, rawjson.Quote(repair.LastSegment(target)))
		}
		f.repair(&v, &c, description, icons, size, title)
	default:
		return b
	}
	if !ok {
		f.repairs |= BadBlock
		return f.quote(b)
	}
	f.optional(&v, &c)
	return c.apply(f.shape, b)
}

// embedded repairs a block's resource, or returns nil if essential members are missing.
func (f *fixer) embedded(r []byte) []byte {
	if !rawjson.IsObject(r) {
		return nil
	}
	var v values
	f.scan(r, &v)
	if !rawjson.IsString(v[uri]) || !rawjson.IsString(v[text]) && !rawjson.IsString(v[blob]) {
		return nil
	}
	var c changes
	f.optional(&v, &c)
	for _, m := range []member{text, blob} {
		if hasWrongType(v[m], rawjson.IsString) {
			f.repairs |= BadMember
			c.drop(m)
		}
	}
	return c.apply(f.shape, r)
}

// optional repairs the common optional members and others.
func (f *fixer) optional(v *values, c *changes, others ...member) {
	f.repair(v, c, meta, mimeType, annotations)
	f.repair(v, c, others...)
}

// repair repairs optional members like those of definitions, or drops them.
func (f *fixer) repair(v *values, c *changes, all ...member) {
	for _, m := range all {
		if v[m] == nil {
			continue
		}
		fixed, keep := repair.Member(names[m], v[m])
		if keep && isSameSlice(fixed, v[m]) {
			continue
		}
		f.repairs |= BadMember
		if c.drop(m); keep {
			c.set(m, fixed)
		}
	}
}

// mapEach replaces elements by the result of fix, and removes empty ones.
func (f *fixer) mapEach(list []byte, fix func([]byte) []byte) []byte {
	var out []byte
	before := 0 // unchanged bytes so far
	for e := range f.shape.Elements(list) {
		fixed := fix(e)
		at := rawjson.Offset(list, e)
		if out == nil && !isSameSlice(fixed, e) {
			out = append(make([]byte, 0, len(list)+len(fixed)), list[:before]...)
			if before == 0 {
				out = append(out, '[')
			}
		}
		before = at + len(e)
		if out != nil && len(fixed) > 0 {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, fixed...)
		}
	}
	if out == nil {
		return list
	}
	return append(out, ']')
}

// text returns a text block with v, or its JSON.
func (f *fixer) text(v []byte) []byte {
	return append(append([]byte(`{"type":"text","text":`), f.plain(v)...), '}')
}

// quote returns a text block with the JSON of v.
func (f *fixer) quote(v []byte) []byte {
	return append(rawjson.AppendString([]byte(`{"type":"text","text":`), clip(v)), '}')
}

// plain returns v if it is a string, otherwise its JSON as one.
func (f *fixer) plain(v []byte) []byte {
	if rawjson.IsString(v) {
		return v
	}
	return rawjson.Quote(clip(v))
}

func clip(v []byte) string {
	if len(v) <= maxQuote {
		return string(v)
	}
	end := maxQuote
	for !utf8.RuneStart(v[end]) {
		end--
	}
	return string(v[:end]) + "…"
}
