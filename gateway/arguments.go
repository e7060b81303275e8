// Arguments looks into the arguments of calls of tools, which else pass as they
// are: at those that HTTP headers repeat, at those of a call that names another tool, and
// whether these fit that tool.
//
// It owns what is wrong with them; it must not know whose a tool is, nor send anything.

package gateway

import (
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// HeaderMark marks the arguments in a tool's schema that HTTP clients repeat in headers
// (2026-07-28, SEP-2243).
const HeaderMark = "x-mcp-header"

// CheckHeaders compares the arguments of a call, to a tool whose definition has HeaderMark,
// with the headers that repeat them, be they those that the server gets, or the client's, if
// it knew what it calls. Readers must not differ in what these arguments are.
func CheckHeaders(x *downstream.Request, definition []byte, known bool) error {
	tool := &mcp.Tool{RawInputSchema: rawjson.Get(definition, "inputSchema")}
	var paths [][]string
	for _, b := range mcp.ExtractParamHeaderBindings(tool) {
		paths = append(paths, b.Path)
	}
	if err := rawjson.Paths(paths...).Check(rawjson.Get(x.Params(), "arguments")); err != nil {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: of the arguments, %v", err)
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

// NestedParams are the params of the call that a call stands for: its arguments are the name of
// a tool and the arguments of that. All else is the same.
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
			return nil, ArgumentError("unknown argument %q; known are name, arguments", excerpt(given))
		}
		if *is != nil {
			given, _ := rawjson.String(k)
			return nil, ArgumentError("argument %q stands more than once", given)
		}
		*is = v
	}
	switch {
	case name == nil:
		return nil, ArgumentError(`argument "name" is missing: the name of the tool to call`)
	case !rawjson.IsString(name):
		return nil, ArgumentError(`argument "name" must be a string, not %s`, excerpt(string(name)))
	case inner == nil || string(inner) == "null":
		inner = []byte("{}")
	case !rawjson.IsObject(inner):
		return nil, ArgumentError(`argument "arguments" must be an object, not %s`, excerpt(string(inner)))
	}
	return rawjson.SetMember(rawjson.SetMember(params, "name", name), "arguments", inner), nil
}

// ArgumentError is the error for arguments that are.
func ArgumentError(format string, args ...any) error {
	e := jsonrpc.Errorf(jsonrpc.CodeInvalidParams, format, args...)
	e.Data = rawjson.Object("code", "INVALID_ARGUMENTS")
	return e
}

// FormatError is an error as Goblin's own tools tell it: its code comes first.
func FormatError(e *jsonrpc.Error) *jsonrpc.Error {
	told := *e
	if code, ok := rawjson.String(rawjson.Get(e.Data, "code")); ok {
		told.Message = code + ": " + e.Message
	}
	return &told
}

// excerpt is the beginning of a value.
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
