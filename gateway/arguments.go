package gateway

import (
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// headerMark marks arguments in a tool's schema that HTTP clients repeat in headers
// (2026-07-28, SEP-2243).
const headerMark = "x-mcp-header"

// checkHeaders compares a call's arguments with the headers that repeat them, since
// readers must not differ on them. definition has headerMark. known is false if the
// client does not know that it calls this tool.
func checkHeaders(x *downstream.Request, definition []byte, known bool) error {
	tool := &mcp.Tool{RawInputSchema: rawjson.Get(definition, "inputSchema")}
	var paths [][]string
	for _, b := range mcp.ExtractParamHeaderBindings(tool) {
		paths = append(paths, b.Path)
	}
	if err := rawjson.Paths(paths...).Check(rawjson.Get(x.Params(), "arguments")); err != nil {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: arguments: %v", err)
	}
	m := x.Modern()
	if m == nil || m.Header == nil || !known {
		return nil
	}
	lookup := func(name string) (string, bool) {
		values := m.Header.Values(name)
		return strings.Join(values, ", "), len(values) > 0
	}
	if err := mcp.ValidateParamHeadersLookup(lookup, tool, x.Params()); err != nil {
		return jsonrpc.Errorf(downstream.CodeHeaderMismatch, "Header mismatch: %v", err)
	}
	return nil
}

// NestedParams returns the params of the call in the arguments of call_tool.
func NestedParams(params []byte) ([]byte, error) {
	var name, inner []byte
	for k, v := range rawjson.Members(rawjson.Get(params, "arguments")) {
		var is *[]byte
		switch {
		case k.Is("name"):
			is = &name
		case k.Is("arguments"):
			is = &inner
		default:
			given, _ := rawjson.String(k)
			return nil, argumentError("unknown argument %q; use name and arguments", excerpt(given))
		}
		if *is != nil {
			given, _ := rawjson.String(k)
			return nil, argumentError("duplicate argument %q", given)
		}
		*is = v
	}
	switch {
	case name == nil:
		return nil, argumentError(`argument "name" is missing: the name of the tool to call`)
	case !rawjson.IsString(name):
		return nil, argumentError(`argument "name" must be a string, not %s`, excerpt(string(name)))
	case inner == nil || string(inner) == "null":
		inner = []byte("{}")
	case !rawjson.IsObject(inner):
		return nil, argumentError(`argument "arguments" must be an object, not %s`, excerpt(string(inner)))
	}
	return rawjson.SetMember(rawjson.SetMember(params, "name", name), "arguments", inner), nil
}

// argumentError returns an error for invalid arguments.
func argumentError(format string, args ...any) error {
	e := jsonrpc.Errorf(jsonrpc.CodeInvalidParams, format, args...)
	e.Data = rawjson.Object("code", "INVALID_ARGUMENTS")
	return e
}

// formatError returns e with its code before the message, like Goblin's own tools.
func formatError(e *jsonrpc.Error) *jsonrpc.Error {
	formatted := *e
	if code, ok := rawjson.String(rawjson.Get(e.Data, "code")); ok {
		formatted.Message = code + ": " + e.Message
	}
	return &formatted
}

func excerpt(v string) string {
	const most = 64
	n := 0
	for i := range v {
		if n++; n > most {
			return v[:i] + "…"
		}
	}
	return v
}
