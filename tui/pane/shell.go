package pane

import (
	"bytes"
	"encoding/json"
	"strings"

	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/registry/termtext"
)

// ShellCommand returns the goblin command that sends the same request to a config's
// daemon, or why there is none. config is a path, or "" for the default.
func ShellCommand(r *registry.TrafficRecord, config string) (command, why string) {
	verb := map[string]string{"tools/call": "call", "prompts/get": "prompt", "resources/read": "read"}[r.Method]
	if verb == "" || r.Direction != registry.ToServer {
		return "", r.Method + " is not supported"
	}
	var p struct {
		Name      string                     `json:"name"`
		URI       string                     `json:"uri"`
		Arguments json.RawMessage            `json:"arguments"`
		Meta      map[string]json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(r.Request, &p) != nil {
		return "", "the recorded params are truncated"
	}
	name := p.Name
	if verb == "read" {
		name = p.URI
	}
	if name == "" {
		return "", "the request has no name"
	}
	var flags []string
	switch {
	case len(p.Arguments) == 0 || string(p.Arguments) == "null":
	case verb == "call":
		flags = append(flags, "--args", shellSafe(string(compactJSON(p.Arguments))))
	case verb == "prompt":
		args, ok := promptArguments(p.Arguments)
		if !ok {
			return "", "the prompt's arguments are not strings"
		}
		flags = append(flags, args...)
	}
	delete(p.Meta, "progressToken") // the client's own
	if len(p.Meta) > 0 {
		meta, _ := termtext.EncodeJSON(p.Meta, "") // all parts are valid
		flags = append(flags, "--meta", shellSafe(meta))
	}
	if config != "" {
		flags = append(flags, "--config", config)
	}
	for _, word := range append(flags, name) {
		if !termtext.IsTypeable(word) {
			return "", "cmd interprets some of its characters"
		}
	}
	return termtext.Command("goblin "+verb, []string{name}, flags...), ""
}

// shellSafe returns equivalent JSON without the characters that cmd interprets.
func shellSafe(text string) string {
	if termtext.IsTypeable(text) {
		return text
	}
	return strings.NewReplacer("&", `\u0026`, "|", `\u007c`, "<", `\u003c`, ">", `\u003e`, "^", `\u005e`, "%", `\u0025`).Replace(text)
}

func compactJSON(raw []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw // decoded before
	}
	return []byte(termtext.JSON(b.String()))
}

func promptArguments(raw json.RawMessage) (words []string, ok bool) {
	for key, value := range rawjson.Members(raw) {
		name, _ := rawjson.String(key)
		text, is := rawjson.String(value)
		if !is || name == "" || strings.Contains(name, "=") {
			return nil, false
		}
		words = append(words, "--arg", name+"="+text)
	}
	return words, rawjson.IsObject(raw)
}
