// Package toolerror writes and reads the results by which models learn that a call of a
// tool failed on its way: its server is down, too slow, or answers nonsense.
//
// Agents take an error in answer to tools/call for a broken connection: they end the
// process behind it and send the call again. A result with isError they show to their
// model, which knows what to do. It owns the form of such a result, and must not know
// why a call failed, nor who asks.
package toolerror

import (
	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// Method is that of the requests which are answered so. All others get errors.
const Method = "tools/call"

// key is the member of `_meta` that holds the code and the server.
const key = "goblin/error"

// Result is the result that says what e does, which has an object as its data.
func Result(e *jsonrpc.Error) []byte {
	result := rawjson.AppendString([]byte(`{"content":[{"type":"text","text":`), e.Message)
	result = append(result, `}],"isError":true,"_meta":{"`+key+`":`...)
	return append(append(result, e.Data...), `}}`...)
}

// Frame is the answer to a request of any method that failed with e. stateless says
// that its client knows results by their type (2026-07-28).
func Frame(id []byte, method string, stateless bool, e *jsonrpc.Error) []byte {
	if method != Method {
		return e.Frame(id)
	}
	result := Result(e)
	if stateless {
		result = rawjson.SetMember(result, "resultType", []byte(`"complete"`))
	}
	return jsonrpc.Result(id, result)
}

// Read is the error that a result of tools/call was made from; nil for others.
func Read(result []byte) *jsonrpc.Error {
	if string(rawjson.Get(result, "isError")) != "true" {
		return nil
	}
	data := rawjson.Path(result, "_meta", key)
	if !rawjson.IsObject(data) {
		return nil
	}
	e := &jsonrpc.Error{Code: jsonrpc.CodeInternal, Data: data}
	for block := range rawjson.Elements(rawjson.Get(result, "content")) {
		e.Message, _ = rawjson.String(rawjson.Get(block, "text"))
		break
	}
	return e
}
