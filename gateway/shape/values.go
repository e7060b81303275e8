package shape

import (
	"bytes"

	"goblin/registry/rawjson"
)

type member uint8

const (
	other member = iota
	annotations
	blob
	blockType
	completion
	content
	contents
	data
	description
	hasMore
	icons
	isError
	messages
	meta
	mimeType
	name
	resource
	result
	resultType
	role
	size
	structuredContent
	task
	text
	title
	toolResult
	total
	uri
	completionValues
	members // number of members
)

var names = [members]string{
	annotations: "annotations", blob: "blob", blockType: "type", completion: "completion",
	content: "content", contents: "contents", data: "data", description: "description", hasMore: "hasMore", icons: "icons",
	isError: "isError", messages: "messages", meta: "_meta", mimeType: "mimeType",
	name: "name", resource: "resource", result: "result", resultType: "resultType",
	role: "role", size: "size", structuredContent: "structuredContent", task: "task", text: "text",
	title: "title", toolResult: "toolResult", total: "total", uri: "uri", completionValues: "values",
}

// memberOf uses a switch, which is several times as fast as a map here.
//
//nolint:gocyclo // one table
func memberOf(k rawjson.Key) member {
	switch string(k.Name()) {
	case "annotations":
		return annotations
	case "blob":
		return blob
	case "type":
		return blockType
	case "completion":
		return completion
	case "content":
		return content
	case "contents":
		return contents
	case "data":
		return data
	case "description":
		return description
	case "hasMore":
		return hasMore
	case "icons":
		return icons
	case "isError":
		return isError
	case "messages":
		return messages
	case "_meta":
		return meta
	case "mimeType":
		return mimeType
	case "name":
		return name
	case "resource":
		return resource
	case "result":
		return result
	case "resultType":
		return resultType
	case "role":
		return role
	case "size":
		return size
	case "structuredContent":
		return structuredContent
	case "task":
		return task
	case "text":
		return text
	case "title":
		return title
	case "toolResult":
		return toolResult
	case "total":
		return total
	case "uri":
		return uri
	case "values":
		return completionValues
	}
	return other
}

// values holds an object's raw members; nil if missing.
type values [members][]byte

// scan reads an object. The last duplicate counts, as in JSON decoders. known is true if
// all members are known.
func (f *fixer) scan(object []byte, v *values) (known bool) {
	for k, value := range f.shape.Members(object) {
		v[memberOf(k)] = value
	}
	return v[other] == nil
}

// changes holds new values; nil drops a member.
type changes map[member][]byte

func (c *changes) set(m member, value []byte) {
	if *c == nil {
		*c = changes{}
	}
	(*c)[m] = value
}

func (c *changes) drop(m member) { c.set(m, nil) }

// apply returns the same slice without changes.
func (c *changes) apply(shape *rawjson.Layout, object []byte) []byte {
	if len(*c) == 0 {
		return object
	}
	out := append(make([]byte, 0, len(object)+64), '{')
	for k, v := range shape.Members(object) {
		if _, changed := (*c)[memberOf(k)]; !changed {
			out = rawjson.AppendMember(out, k, v)
		}
	}
	for m := annotations; m < members; m++ {
		if v := (*c)[m]; v != nil {
			out = rawjson.AppendMember(out, rawjson.Quote(names[m]), v)
		}
	}
	return append(out, '}')
}

func member4(a member, av []byte, b member, bv []byte) []byte {
	out := rawjson.AppendMember([]byte{'{'}, rawjson.Quote(names[a]), av)
	return append(rawjson.AppendMember(out, rawjson.Quote(names[b]), bv), '}')
}

func isSameSlice(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

func hasWrongType(v []byte, is func([]byte) bool) bool { return v != nil && !is(v) }

func isNull(v []byte) bool { return string(v) == "null" }

func isBool(v []byte) bool { return string(v) == "true" || string(v) == "false" }

func isNumber(v []byte) bool { return len(v) > 0 && (v[0] == '-' || '0' <= v[0] && v[0] <= '9') }

func isEmpty(list []byte) bool {
	for range rawjson.Elements(list) {
		return false
	}
	return true
}

func boolOf(v []byte) []byte {
	s, _ := rawjson.String(v)
	for _, b := range []string{"true", "false"} {
		if len(s) == len(b) && bytes.EqualFold([]byte(s), []byte(b)) {
			return []byte(b)
		}
	}
	return nil
}
