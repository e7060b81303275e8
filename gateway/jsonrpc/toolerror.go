// Toolerror writes and reads the results by which models learn that a call of a
// tool failed on its way: its server is down, too slow, or answers nonsense.
//
// Agents take an error in answer to tools/call for a broken connection: they end the
// process behind it and send the call again. A result with isError they show to their
// model, which knows what to do. It owns the form of such a result, and must not know
// why a call failed, nor who asks.

package jsonrpc

import (
	"goblin/registry/rawjson"
)

// MethodToolsCall is that of the requests which are answered so. All others get errors.
const MethodToolsCall = "tools/call"

// errorMetaKey is the member of `_meta` that holds the code and the server.
const errorMetaKey = "goblin/error"

// ToolErrorResult is the result that says what e does, which has an object as its data.
func ToolErrorResult(e *Error) []byte {
	result := rawjson.AppendString([]byte(`{"content":[{"type":"text","text":`), e.Message)
	result = append(result, `}],"isError":true,"_meta":{"`+errorMetaKey+`":`...)
	return append(append(result, e.Data...), `}}`...)
}

// ToolErrorFrame is the answer to a request of any method that failed with e. stateless says
// that its client knows results by their type (2026-07-28).
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

// ReadToolError is the error that a result of tools/call was made from; nil for others.
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
