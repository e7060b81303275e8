// Mirrors knows which arguments of tools go into headers of requests, too
// (2026-07-28, SEP-2243). It knows neither connections nor servers.

package wire

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"

	"goblin/registry/rawjson"
)

// HeaderMirrors are, by tool, the arguments that go into headers too
// (x-mcp-header).
type HeaderMirrors map[string][]mcp.ParamHeaderBinding

// MirrorsFromTools reads them from the tools of a list, and returns that list, which it changes.
// refused hears of tools whose annotations break the rules, and says which of them stay.
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

// Headers sets those of a call.
func (m HeaderMirrors) Headers(head http.Header, tool string, arguments []byte) {
	for _, b := range m[tool] {
		value := primitive(rawjson.Path(arguments, b.Path...))
		if text, ok := mcp.EncodeHeaderValue(value); value != nil && ok {
			head.Set(b.HeaderName(), text)
		}
	}
}

// maxSafe is the greatest integer that a header may carry.
const maxSafe = 1<<53 - 1

// primitive is an argument as a header takes it; nil when none does.
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
