package jsonrpc

import (
	"goblin/registry/rawjson"
)

// MethodToolsCall is the method whose failures are answered by [ToolErrorResult].
const MethodToolsCall = "tools/call"

// errorMetaKey is the member of `_meta` with the error code and the server.
const errorMetaKey = "goblin/error"

// ToolErrorResult returns e as a result of tools/call. e.Data must be an object. Agents
// treat a JSON-RPC error as a broken connection: they stop the server and repeat the
// call. A result with isError reaches their model.
func ToolErrorResult(e *Error) []byte {
	result := rawjson.AppendString([]byte(`{"content":[{"type":"text","text":`), e.Message)
	result = append(result, `}],"isError":true,"_meta":{"`+errorMetaKey+`":`...)
	return append(append(result, e.Data...), `}}`...)
}

// ToolErrorFrame returns the answer to a request that failed with e: a result for
// tools/call, otherwise an error. stateless adds the resultType of 2026-07-28.
func ToolErrorFrame(id []byte, method string, stateless bool, e *Error) []byte {
	if method != MethodToolsCall {
		return e.Frame(id)
	}
	result := ToolErrorResult(e)
	if stateless {
		result = rawjson.SetMember(result, "resultType", []byte(`"complete"`))
	}
	return ResultFrame(id, result)
}

// ReadToolError returns the error that [ToolErrorResult] encoded, or nil for other
// results.
func ReadToolError(result []byte) *Error {
	if string(rawjson.Get(result, "isError")) != "true" {
		return nil
	}
	data := rawjson.Path(result, "_meta", errorMetaKey)
	if !rawjson.IsObject(data) {
		return nil
	}
	e := &Error{Code: CodeInternal, Data: data}
	for block := range rawjson.Elements(rawjson.Get(result, "content")) {
		e.Message = rawjson.GetString(block, "text")
		break
	}
	return e
}
