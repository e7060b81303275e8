package wire

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"

	"goblin/registry/rawjson"
)

// HeaderMirrors maps tools to the arguments that are also sent as headers (x-mcp-header;
// 2026-07-28, SEP-2243).
type HeaderMirrors map[string][]mcp.ParamHeaderBinding

// MirrorsFromTools reads the annotations of listed tools. It calls refused for invalid
// ones and removes the tool unless that returns true. The returned list reuses items.
func MirrorsFromTools(items [][]byte, refused func(name string, err error) (stays bool)) (HeaderMirrors, [][]byte) {
	m := HeaderMirrors{}
	kept := items[:0]
	for _, item := range items {
		if !rawjson.MayContain(item, "x-mcp-header") {
			kept = append(kept, item)
			continue
		}
		name := rawjson.GetString(item, "name")
		tool := &mcp.Tool{Name: name, RawInputSchema: json.RawMessage(rawjson.Get(item, "inputSchema"))}
		if err := mcp.ValidateParamHeaderAnnotations(tool); err != nil {
			if refused(name, err) {
				kept = append(kept, item)
			}
			continue
		}
		if bound := mcp.ExtractParamHeaderBindings(tool); bound != nil {
			m[name] = bound
		}
		kept = append(kept, item)
	}
	return m, kept
}

// Headers sets the headers of a call.
func (m HeaderMirrors) Headers(head http.Header, tool string, arguments []byte) {
	for _, b := range m[tool] {
		value := primitive(rawjson.Path(arguments, b.Path...))
		if text, ok := mcp.EncodeHeaderValue(value); value != nil && ok {
			head.Set(b.HeaderName(), text)
		}
	}
}

const maxSafe = 1<<53 - 1

// primitive returns an argument as a header value, or nil if it has none.
func primitive(raw []byte) any {
	switch {
	case raw == nil:
		return nil
	case string(raw) == "true":
		return true
	case string(raw) == "false":
		return false
	}
	if s, ok := rawjson.String(raw); ok {
		return s
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > maxSafe {
		return nil
	}
	return int64(f)
}
