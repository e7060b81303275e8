//go:build e2e || faults || soak || interop || conformance || agents

package e2e

import "encoding/json"

// OddDefinition is a list entry that some client SDK rejects together with its whole
// list.
type OddDefinition struct {
	Kind string // tools, prompts, resources or templates
	Sent string
	Want string // entry for clients, with the original name; "" if it is dropped
	// Modern is the entry for clients of 2026-07-28, if it differs.
	Modern string
}

const object = `"inputSchema":{"type":"object"}`

// OddDefinitions contains entries of each kind.
var OddDefinitions = []OddDefinition{
	{"tools", `{"name":"t1"}`, `{"name":"t1",` + object + `}`, ""},
	{"tools", `{"name":"t2","inputSchema":{}}`, `{"name":"t2",` + object + `}`, ""},
	{"tools", `{"name":"t3","inputSchema":{"properties":{"a":{"type":"string"}}}}`, `{"name":"t3","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`, ""},
	{"tools", `{"name":"t4","inputSchema":{"anyOf":[{"required":["a"]}]}}`, `{"name":"t4","inputSchema":{"type":"object","anyOf":[{"required":["a"]}]}}`, ""},
	{"tools", `{"name":"t5","inputSchema":null}`, `{"name":"t5",` + object + `}`, ""},
	{"tools", `{"name":"t6","inputSchema":"none"}`, `{"name":"t6",` + object + `}`, ""},
	{"tools", `{"name":"t7","inputSchema":[]}`, `{"name":"t7",` + object + `}`, ""},
	{"tools", `{"name":"t8","inputSchema":true}`, `{"name":"t8",` + object + `}`, ""},
	{"tools", `{"name":"t9","inputSchema":{"type":["object","null"]}}`, `{"name":"t9",` + object + `}`, ""},
	{"tools", `{"name":"t10","inputSchema":{"type":"array","items":{}}}`, `{"name":"t10","inputSchema":{"type":"object","items":{}}}`, ""},
	{"tools", `{"name":"t11","inputSchema":{"type":"object","required":null,"properties":null}}`, `{"name":"t11",` + object + `}`, ""},
	{
		"tools", `{"name":"t12","inputSchema":{"type":"object","properties":{"a":true,"b":false,"c":null,"d":{}},"required":["a",1,null]}}`,
		`{"name":"t12","inputSchema":{"type":"object","properties":{"a":{},"b":{"not":{}},"c":{},"d":{}},"required":["a"]}}`, "",
	},
	{"tools", `{"name":"t13","inputSchema":{"type":"object","properties":[],"required":"a","$schema":null}}`, `{"name":"t13",` + object + `}`, ""},
	{"tools", `{"name":"t14","title":null,"description":null,"annotations":null,"_meta":null,"outputSchema":null,"icons":null,"execution":null,` + object + `}`, `{"name":"t14",` + object + `}`, ""},
	{"tools", `{"name":"t15","title":3,"description":["a"],"annotations":"a","_meta":[],"outputSchema":"a","icons":{},"execution":true,` + object + `}`, `{"name":"t15",` + object + `}`, ""},
	{
		"tools", `{"name":"t16","annotations":{"title":1,"readOnlyHint":"true","destructiveHint":"false","idempotentHint":null,"openWorldHint":1,"x":null},` + object + `}`,
		`{"name":"t16","annotations":{"readOnlyHint":true,"destructiveHint":false,"x":null},` + object + `}`, "",
	},
	{"tools", `{"name":"t17","icons":[{"src":"a.png","sizes":"48x48","mimeType":null,"theme":"blue"},{"mimeType":"image/png"},null],` + object + `}`, `{"name":"t17","icons":[{"src":"a.png"}],` + object + `}`, ""},
	{"tools", `{"name":"t18","execution":{"taskSupport":"maybe"},` + object + `}`, `{"name":"t18","execution":{},` + object + `}`, ""},
	{"tools", `{"name":"o1",` + object + `,"outputSchema":{"type":"array","items":{"type":"string"}}}`, `{"name":"o1",` + object + `}`, `{"name":"o1",` + object + `,"outputSchema":{"type":"array","items":{"type":"string"}}}`},
	{"tools", `{"name":"o2",` + object + `,"outputSchema":{"anyOf":[{"type":"object"}]}}`, `{"name":"o2",` + object + `}`, `{"name":"o2",` + object + `,"outputSchema":{"anyOf":[{"type":"object"}]}}`},
	{"tools", `{"name":"o3",` + object + `,"outputSchema":{}}`, `{"name":"o3",` + object + `}`, `{"name":"o3",` + object + `,"outputSchema":{}}`},
	{
		"tools", `{"name":"o4",` + object + `,"outputSchema":{"type":"object","required":null,"properties":{"a":true}}}`,
		`{"name":"o4",` + object + `,"outputSchema":{"type":"object","properties":{"a":{}}}}`, `{"name":"o4",` + object + `,"outputSchema":{"type":"object","required":null,"properties":{"a":true}}}`,
	},
	{
		"tools", `{"name":"o5",` + object + `,"outputSchema":{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}}`,
		`{"name":"o5",` + object + `}`, `{"name":"o5",` + object + `,"outputSchema":{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}}`,
	},
	{
		"tools", `{"name":"o6",` + object + `,"outputSchema":{"type":"object","properties":{"a":{"type":"int","pattern":"("}}}}`,
		`{"name":"o6",` + object + `}`, `{"name":"o6",` + object + `,"outputSchema":{"type":"object","properties":{"a":{"type":"int","pattern":"("}}}}`,
	},
	{"tools", `{` + object + `}`, "", ""},
	{"tools", `{"name":7,` + object + `}`, "", ""},
	{"tools", `{"name":null,` + object + `}`, "", ""},
	{"tools", `{"name":"",` + object + `}`, "", ""},
	{"tools", `"t"`, "", ""},
	{"tools", `null`, "", ""},
	{"tools", `[]`, "", ""},

	{"prompts", `{"name":"p1","arguments":null,"title":null,"description":null,"_meta":null,"icons":null}`, `{"name":"p1"}`, ""},
	{"prompts", `{"name":"p2","arguments":{},"title":1,"description":{},"_meta":"a","icons":"a"}`, `{"name":"p2"}`, ""},
	{"prompts", `{"name":"p3","arguments":[{"name":"a","required":"true","description":null},{"name":"b","required":null,"title":1}]}`, `{"name":"p3","arguments":[{"name":"a","required":true},{"name":"b"}]}`, ""},
	{"prompts", `{"name":"p4","arguments":[{"name":"a"},{"description":"no name"}]}`, "", ""},
	{"prompts", `{"name":"p5","arguments":["a"]}`, "", ""},
	{"prompts", `{"name":"p6","arguments":[null]}`, "", ""},
	{"prompts", `{"name":"p7","arguments":[{"name":1}]}`, "", ""},
	{"prompts", `{"name":null}`, "", ""},
	{"prompts", `{}`, "", ""},
	{"prompts", `7`, "", ""},

	{"resources", `{"uri":"file:///r/one.txt"}`, `{"uri":"file:///r/one.txt","name":"one.txt"}`, ""},
	{"resources", `{"uri":"file:///r/","name":null}`, `{"uri":"file:///r/","name":"file:///r/"}`, ""},
	{"resources", `{"uri":"memo:two","name":7}`, `{"uri":"memo:two","name":"memo:two"}`, ""},
	{"resources", `{"uri":"file:///r/three?a=b/c#d"}`, `{"uri":"file:///r/three?a=b/c#d","name":"three"}`, ""},
	{"resources", `{"uri":"x:4","name":"four","title":null,"description":3,"mimeType":null,"size":null,"annotations":null,"icons":null,"_meta":null}`, `{"uri":"x:4","name":"four"}`, ""},
	{"resources", `{"uri":"x:5","name":"five","mimeType":["a"],"size":"12","annotations":[],"icons":[{}],"_meta":3}`, `{"uri":"x:5","name":"five","icons":[]}`, ""},
	{"resources", `{"uri":"x:6","name":"six","size":1.5,"annotations":{"audience":"user","priority":"high","lastModified":"yesterday"}}`, `{"uri":"x:6","name":"six","annotations":{}}`, ""},
	{"resources", `{"uri":"x:7","name":"seven","annotations":{"audience":["user","model"],"priority":2,"lastModified":null}}`, `{"uri":"x:7","name":"seven","annotations":{}}`, ""},
	{"resources", `{"name":"no uri"}`, "", ""},
	{"resources", `{"uri":7,"name":"a number"}`, "", ""},
	{"resources", `"x:8"`, "", ""},

	{"templates", `{"uriTemplate":"file:///t/{path}"}`, `{"uriTemplate":"file:///t/{path}","name":"{path}"}`, ""},
	{"templates", `{"uriTemplate":"x://t/find{?q}","name":null,"description":null,"mimeType":1}`, `{"uriTemplate":"x://t/find{?q}","name":"find"}`, ""},
	{"templates", `{"uriTemplate":"x://u/{a}","name":"u","annotations":{"priority":-1},"title":{},"icons":null}`, `{"uriTemplate":"x://u/{a}","name":"u","annotations":{}}`, ""},
	{"templates", `{"name":"no template"}`, "", ""},
	{"templates", `{"uriTemplate":null,"name":"null"}`, "", ""},
	{"templates", `true`, "", ""},
}

// OddServer returns a server with all odd definitions. Its tools return structured
// content.
func OddServer() Obj {
	lists := map[string][]json.RawMessage{}
	for _, d := range OddDefinitions {
		lists[d.Kind] = append(lists[d.Kind], json.RawMessage(d.Sent))
	}
	s := Obj{"capabilities": Obj{"tools": Obj{"listChanged": true}, "prompts": Obj{}, "resources": Obj{}}}
	for kind, list := range lists {
		s[kind] = list
	}
	s["on"] = Obj{"tools/call": Actions(Do("result", Obj{"result": Obj{"content": []any{}, "structuredContent": Obj{"a": 1}}}))}
	return s
}
