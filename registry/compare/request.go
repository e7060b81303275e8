package compare

import (
	"bytes"
	"errors"
	"fmt"

	"goblin/registry/rawjson"
)

// Call is a request with its answer.
type Call struct {
	Server, Method string
	Name           string // tool, prompt or URI
	Params, Answer []byte // JSON, or nil
	IsError        bool   // Answer is a JSON-RPC error object
	// ParamsCut and AnswerCut report that the JSON is only the beginning.
	ParamsCut, AnswerCut bool
}

// Calls compares the arguments and results of two requests. Paths begin with $.arguments,
// $.result or $.error; methods other than tools/call and prompts/get have $.params.
// $.server, $.method and $.name exist only if they differ. The _meta member of params does
// not count: it has ids of the call.
//
// The structured content of a tool's result is $.result itself if its other content only
// repeats it. So is the only text of a result that is a JSON object or array.
func Calls(a, b *Call, o Options) (*Result, error) {
	va, err := a.document(b, o.Ignore)
	if err != nil {
		return nil, fmt.Errorf("read A: %w", err)
	}
	vb, err := b.document(a, o.Ignore)
	if err != nil {
		return nil, fmt.Errorf("read B: %w", err)
	}
	return newResult(match(va, vb, 0)), nil
}

// document returns the call as one object.
func (c *Call) document(other *Call, ignore Patterns) (*value, error) {
	root := &value{kind: '{'}
	count := 0
	member := func(name string, text []byte, cut bool) error {
		if len(text) == 0 {
			return nil
		}
		v, err := parsePart(text, ignore, name, cut, &count)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if v == nil { // nothing of it is left
			return nil
		}
		root.addKid(*v)
		return nil
	}
	var all []error
	for _, one := range []struct{ name, own, other string }{
		{"server", c.Server, other.Server}, {"method", c.Method, other.Method}, {"name", c.Name, other.Name},
	} {
		if one.own != one.other {
			all = append(all, member(one.name, rawjson.Quote(one.own), false))
		}
	}
	name, input := c.input(other)
	all = append(all, member(name, input, c.ParamsCut))
	switch {
	case c.IsError:
		all = append(all, member("error", c.Answer, c.AnswerCut))
	case c.AnswerCut || other.AnswerCut || other.IsError || c.Method != other.Method:
		all = append(all, member("result", c.Answer, c.AnswerCut))
	default:
		all = append(all, member("result", simplified(c, other), false))
	}
	root.rehash()
	return root, errors.Join(all...)
}

// Arguments returns the arguments of a tool or prompt, or nil.
func (c *Call) Arguments() []byte {
	if name, value := c.input(c); name == "arguments" {
		return value
	}
	return nil
}

// input returns the arguments, or the params without _meta.
func (c *Call) input(other *Call) (name string, value []byte) {
	switch {
	case c.ParamsCut || other.ParamsCut || rawjson.Valid(c.Params) != nil || !rawjson.IsObject(c.Params):
		return "params", c.Params
	case c.Method == "tools/call" || c.Method == "prompts/get":
		return "arguments", rawjson.Get(c.Params, "arguments")
	}
	return "params", rawjson.RemoveMember(c.Params, "_meta")
}

// simplified returns the result of a, or its essential part if b's result has the same
// form.
func simplified(a, b *Call) []byte {
	value, form := essence(a)
	if _, other := essence(b); form == "" || form != other {
		return a.Answer
	}
	return value
}

// essence returns the JSON that a tool's or resource's result is about, or "". form is how
// it was found.
func essence(c *Call) (value []byte, form string) {
	switch {
	case rawjson.Valid(c.Answer) != nil || !rawjson.IsObject(c.Answer):
		return nil, ""
	case c.Method == "resources/read":
		return resourceJSON(c.Answer)
	case c.Method != "tools/call":
		return nil, ""
	}
	var content, structured []byte
	for name, v := range rawjson.Members(c.Answer) {
		switch string(name.Name()) {
		case "content":
			content = v
		case "structuredContent":
			structured = v
		case "isError":
			if string(v) != "false" {
				return nil, ""
			}
		case "_meta", "resultType":
		default:
			return nil, ""
		}
	}
	text, ok := onlyText(content)
	switch {
	case structured != nil && (ok && sameJSON(structured, text) || isEmptyArray(content)):
		return structured, "structured"
	case structured == nil && ok && (rawjson.IsObject(text) || rawjson.IsArray(text)) && rawjson.Valid(text) == nil:
		return bytes.TrimSpace(text), "text"
	}
	return nil, ""
}

// resourceJSON returns the JSON of the only content of a resource. The form has the URI and
// the MIME type, so that other ones are a difference.
func resourceJSON(answer []byte) (value []byte, form string) {
	for name := range rawjson.Members(answer) {
		if n := string(name.Name()); n != "contents" && n != "_meta" && n != "resultType" {
			return nil, ""
		}
	}
	n := 0
	var text []byte
	for item := range rawjson.Elements(rawjson.Get(answer, "contents")) {
		n++
		text = []byte(rawjson.GetString(item, "text"))
		form = "resource " + rawjson.GetString(item, "mimeType") + " " + rawjson.GetString(item, "uri")
	}
	if n != 1 || !rawjson.IsObject(text) && !rawjson.IsArray(text) || rawjson.Valid(text) != nil {
		return nil, ""
	}
	return bytes.TrimSpace(text), form
}

func sameJSON(a, b []byte) bool {
	r, err := Values(a, b, Options{})
	return err == nil && r.IsEqual()
}

func isEmptyArray(v []byte) bool {
	if len(v) == 0 {
		return true
	}
	for range rawjson.Elements(v) {
		return false
	}
	return rawjson.IsArray(v)
}

// onlyText returns the text of a content that is one plain text.
func onlyText(content []byte) (text []byte, ok bool) {
	if !rawjson.IsArray(content) {
		return nil, false
	}
	n := 0
	for item := range rawjson.Elements(content) {
		if n++; n > 1 || rawjson.GetString(item, "type") != "text" {
			return nil, false
		}
		text = []byte(rawjson.GetString(item, "text"))
	}
	return text, n == 1
}
