package intercept

import (
	"cmp"

	"goblin/gateway/jsonrpc"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// codeDenied is the data.code of refused requests.
const codeDenied = "DENIED"

// Texts of refusals for models.
const (
	deniedByUser = "Denied by the user of Goblin. Do not repeat this request."
	deniedByRule = "Denied by a rule of Goblin. Do not repeat this request."
	notApproved  = "Not approved: the user of Goblin must allow this request, but did not answer."
)

func deny(x *Exchange, text string) Verdict {
	e := jsonrpc.Errorf(jsonrpc.CodeInternal, "%s", text)
	e.Data = rawjson.Object("code", codeDenied, "server", x.Server)
	return Verdict{Error: e, Denied: true}
}

func fail(code int, text string) Verdict {
	return Verdict{Error: jsonrpc.Errorf(cmp.Or(code, jsonrpc.CodeInternal), "%s", cmp.Or(text, "Internal error"))}
}

// textResult returns a result with a text, or nil if results of the method have none.
func textResult(x *Exchange, text string) []byte {
	block := string(rawjson.Object("type", "text", "text", text))
	switch x.Request.Method() {
	case jsonrpc.MethodToolsCall:
		return []byte(`{"content":[` + block + `]}`)
	case "prompts/get":
		return []byte(`{"messages":[{"role":"user","content":` + block + `}]}`)
	case "resources/read":
		return []byte(`{"contents":[` + string(rawjson.Object("uri", x.Name, "text", text)) + `]}`)
	}
	return nil
}

// hints returns the annotations of a tool with the protocol's defaults: a tool may
// destroy data unless it states otherwise.
func (x *Exchange) hints() (destructive, readOnly bool) {
	e := x.Target.Entry
	switch {
	case e == nil || e.Kind != registry.Tool:
		return false, false
	case x.IsUnlisted:
		return true, false
	}
	annotations := rawjson.Get(e.JSON(), "annotations")
	readOnly = string(rawjson.Get(annotations, "readOnlyHint")) == "true"
	return !readOnly && string(rawjson.Get(annotations, "destructiveHint")) != "false", readOnly
}

// outcome returns the status of an answer in a [registry.TrafficRecord].
func outcome(method string, answer []byte, code int) (status string, _ int) {
	switch {
	case code != 0:
		return "failure", code
	case method == jsonrpc.MethodToolsCall && string(rawjson.Get(answer, "isError")) == "true":
		return registry.StatusToolError, 0
	}
	return "success", 0
}
