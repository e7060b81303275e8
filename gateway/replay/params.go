package replay

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"math/big"
	"strings"

	"goblin/registry/rawjson"
)

// target is the method and subject of a request: the server's own tool, prompt, URI or
// task.
type target struct{ method, name string }

// Methods whose params name their target.
const (
	callTool       = "tools/call"
	getPrompt      = "prompts/get"
	readResource   = "resources/read"
	complete       = "completion/complete"
	subscribe      = "resources/subscribe"
	unsubscribe    = "resources/unsubscribe"
	nameMember     = "name"
	uriMember      = "uri"
	taskMember     = "taskId"
	refMember      = "ref"
	taskMethods    = "tasks/"
	arguments      = "arguments"
	metaMember     = "_meta"
	inputResponses = "inputResponses"
	requestState   = "requestState"
)

// nameKey returns the member of params with the name of a method's target, or "".
func nameKey(method string) string {
	switch method {
	case callTool, getPrompt:
		return nameMember
	case readResource, subscribe, unsubscribe:
		return uriMember
	}
	if strings.HasPrefix(method, taskMethods) {
		return taskMember
	}
	return ""
}

// targetOf returns the target of a request.
func targetOf(method string, params []byte) target {
	t := target{method: method}
	switch key := nameKey(method); {
	case key != "":
		t.name = rawjson.GetString(params, key)
	case method == complete:
		ref := rawjson.Get(params, refMember)
		if t.name = rawjson.GetString(ref, nameMember); t.name == "" {
			t.name = rawjson.GetString(ref, uriMember)
		}
	}
	return t
}

// withName returns params with the name of their target replaced.
func withName(method string, params []byte, name string) []byte {
	if name == "" || !rawjson.IsObject(params) {
		return params
	}
	switch key := nameKey(method); {
	case key != "":
		if rawjson.Get(params, key) != nil {
			return rawjson.SetMember(params, key, rawjson.Quote(name))
		}
	case method == complete:
		ref := rawjson.Get(params, refMember)
		for _, key := range []string{nameMember, uriMember} {
			if rawjson.Get(ref, key) != nil {
				return rawjson.SetMember(params, refMember, rawjson.SetMember(ref, key, rawjson.Quote(name)))
			}
		}
	}
	return params
}

// volatileMeta are the members of `_meta` that differ in each run.
var volatileMeta = map[string]bool{
	"progressToken": true, "traceparent": true, "tracestate": true, "baggage": true,
	"claudecode/toolUseId": true,
}

func isVolatileMeta(name string) bool {
	return volatileMeta[name] || strings.HasPrefix(name, "goblin/") || strings.HasPrefix(name, "io.modelcontextprotocol/")
}

// decode decodes params for comparisons, without the parts that never count.
func decode(t target, params []byte, rules *Rules) (map[string]any, error) {
	members := map[string]any{}
	if len(bytes.TrimSpace(params)) > 0 {
		d := json.NewDecoder(bytes.NewReader(params))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			return nil, err
		}
		if object, ok := v.(map[string]any); ok {
			members = object
		} else if v != nil {
			members[""] = v
		}
	}
	if meta, ok := members[metaMember].(map[string]any); ok {
		for name := range meta {
			if isVolatileMeta(name) {
				delete(meta, name)
			}
		}
	}
	switch t.method {
	case callTool:
		delete(members, "task") // how the call runs
	case subscribe, unsubscribe:
		delete(members, metaMember)
	}
	rules.apply(t, members)
	for _, name := range []string{metaMember, arguments} {
		if isEmpty(members[name]) {
			delete(members, name) // clients may omit it
		}
	}
	return members, nil
}

func isEmpty(v any) bool {
	object, ok := v.(map[string]any)
	return v == nil || ok && len(object) == 0
}

// digest identifies equal params.
type digest [16]byte

func digestOf(members map[string]any) (digest, error) {
	text, err := json.Marshal(normal(members))
	if err != nil {
		return digest{}, err
	}
	sum := sha256.Sum256(text)
	return digest(sum[:16]), nil
}

// normal returns v with one spelling for each number.
func normal(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = normal(member)
		}
	case []any:
		for i, element := range v {
			v[i] = normal(element)
		}
	case json.Number:
		return normalNumber(v)
	}
	return v
}

// maxNumber is the length of the longest number that is compared by value.
const maxNumber = 40

func normalNumber(n json.Number) json.Number {
	if !strings.ContainsAny(string(n), ".eE") {
		if n == "-0" {
			return "0"
		}
		return n
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(string(n)), "e")
	if len(mantissa) > maxNumber || len(strings.TrimLeft(exponent, "+-0")) > 2 {
		return n
	}
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return n
	}
	if r.IsInt() {
		return json.Number(r.Num().String())
	}
	digits, _ := r.FloatPrec()
	return json.Number(r.FloatString(digits))
}
