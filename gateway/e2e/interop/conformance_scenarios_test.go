//go:build conformance

package interop

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"goblin/gateway/e2e"
)

// scenario is a scenario of the suite over stdio. Its checks have the suite's names.
type scenario struct {
	revisions []string // none: both
	run       func(p *probe)
}

func (s scenario) of(revision string) bool {
	return len(s.revisions) == 0 || slices.Contains(s.revisions, revision)
}

var (
	onlyLegacy = []string{e2e.Revision}
	onlyModern = []string{e2e.ModernRevision}
)

var scenarios = map[string]scenario{
	"server-initialize": {onlyLegacy, func(*probe) {}}, // the probe did it already
	"ping":              {onlyLegacy, func(p *probe) { p.check("ping", string(p.ask("ping", nil).Result) == "{}") }},
	"logging-set-level": {onlyLegacy, func(p *probe) {
		p.check("logging-set-level", string(p.ask("logging/setLevel", e2e.Obj{"level": "info"}).Result) == "{}")
	}},
	"completion-complete": {nil, func(p *probe) {
		m := p.ask("completion/complete", e2e.Obj{
			"ref": e2e.Obj{"type": "ref/prompt", "name": "test_prompt_with_arguments"}, "argument": e2e.Obj{"name": "arg1", "value": "test"},
		})
		var values []string
		p.check("completion-complete", json.Unmarshal(e2e.At(m.Result, "completion", "values"), &values) == nil && values != nil)
	}},
	"tools-list": {nil, toolsList},

	"tools-call-simple-text": {nil, content("tools-call-simple-text", "test_simple_text", "text", "text")},
	"tools-call-image":       {nil, content("tools-call-image", "test_image_content", "image", "data", "mimeType")},
	"tools-call-audio":       {nil, content("tools-call-audio", "test_audio_content", "audio", "data", "mimeType")},
	"tools-call-embedded-resource": {nil, content("tools-call-embedded-resource", "test_embedded_resource", "resource",
		"resource.uri", "resource.mimeType", "resource.text")},
	"tools-call-mixed-content": {nil, func(p *probe) {
		all := e2e.Each(p.tool("test_multiple_content_types").Result, "content")
		p.check("tools-call-mixed-content", has(all, "text") && has(all, "image") && has(all, "resource"))
	}},
	"tools-call-error": {nil, func(p *probe) {
		result := p.tool("test_error_handling").Result
		p.check("tools-call-error", string(e2e.At(result, "isError")) == "true" && e2e.Str(result, "content", 0, "text") != "")
	}},
	"tools-call-with-logging":      {onlyLegacy, withLogging},
	"tools-call-with-progress":     {nil, withProgress},
	"tools-call-sampling":          {onlyLegacy, asked("tools-call-sampling", "test_sampling", "sampling/createMessage", e2e.Obj{"prompt": "Test prompt"})},
	"tools-call-elicitation":       {onlyLegacy, asked("tools-call-elicitation", "test_elicitation", "elicitation/create", e2e.Obj{"message": "Please"})},
	"elicitation-sep1034-defaults": {onlyLegacy, elicitedDefaults},
	"elicitation-sep1330-enums":    {onlyLegacy, elicitedEnums},

	"resources-list": {nil, func(p *probe) {
		p.check("resources-list", allHave(e2e.Each(p.ask("resources/list", nil).Result, "resources"), "uri", "name"))
	}},
	"resources-read-text":   {nil, contents("resources-read-text", "test://static-text", "uri", "mimeType", "text")},
	"resources-read-binary": {nil, contents("resources-read-binary", "test://static-binary", "uri", "mimeType", "blob")},
	"resources-templates-read": {nil, func(p *probe) {
		first := e2e.At(p.read("test://template/123/data").Result, "contents", 0)
		p.check("resources-templates-read", e2e.Str(first, "uri") != "" && strings.Contains(e2e.Str(first, "text"), "123"))
	}},
	"resources-subscribe": {onlyLegacy, func(p *probe) {
		p.check("resources-subscribe", p.ask("resources/subscribe", e2e.Obj{"uri": "test://watched-resource"}).Error == nil)
	}},
	"resources-unsubscribe": {onlyLegacy, func(p *probe) {
		p.ask("resources/subscribe", e2e.Obj{"uri": "test://watched-resource"})
		p.check("resources-unsubscribe", p.ask("resources/unsubscribe", e2e.Obj{"uri": "test://watched-resource"}).Error == nil)
	}},
	"sep-2164-resource-not-found": {onlyModern, func(p *probe) {
		const uri = "test://nonexistent-resource-for-conformance-testing"
		m := p.read(uri)
		p.check("sep-2164-no-empty-contents", m.Result == nil)
		p.check("sep-2164-error-code", code(m) == "-32602")
		p.check("sep-2164-data-uri", e2e.Str(m.Error, "data", "uri") == uri)
	}},

	"prompts-list": {nil, func(p *probe) {
		p.check("prompts-list", allHave(e2e.Each(p.ask("prompts/list", nil).Result, "prompts"), "name", "description"))
	}},
	"prompts-get-simple": {nil, func(p *probe) {
		p.check("prompts-get-simple", allHave(e2e.Each(p.prompt("test_simple_prompt").Result, "messages"), "role", "content"))
	}},
	"prompts-get-with-args": {nil, func(p *probe) {
		text := string(e2e.At(p.prompt("test_prompt_with_arguments", e2e.Obj{"arguments": e2e.Obj{"arg1": "testValue1", "arg2": "testValue2"}}).Result, "messages"))
		p.check("prompts-get-with-args", strings.Contains(text, "testValue1") && strings.Contains(text, "testValue2"))
	}},
	"prompts-get-embedded-resource": {nil, func(p *probe) {
		all := e2e.Each(p.prompt("test_prompt_with_embedded_resource", e2e.Obj{"arguments": e2e.Obj{"resourceUri": "test://example-resource"}}).Result, "messages")
		p.check("prompts-get-embedded-resource", has(all, "", "content.resource.uri"))
	}},
	"prompts-get-with-image": {nil, func(p *probe) {
		all := e2e.Each(p.prompt("test_prompt_with_image").Result, "messages")
		p.check("prompts-get-with-image", has(all, "", "content.data", "content.mimeType"))
	}},

	"caching":          {onlyModern, caching},
	"server-stateless": {onlyModern, statelessServer},

	"input-required-result-basic-elicitation":       {onlyModern, inputs("sep-2322-elicitation", "test_input_required_result_elicitation", "user_name", "elicitation/create")},
	"input-required-result-basic-sampling":          {onlyModern, inputs("sep-2322-sampling", "test_input_required_result_sampling", "", "sampling/createMessage")},
	"input-required-result-basic-list-roots":        {onlyModern, inputs("sep-2322-list-roots", "test_input_required_result_list_roots", "", "roots/list")},
	"input-required-result-request-state":           {onlyModern, inputs("sep-2322-request-state", "test_input_required_result_request_state", "", "elicitation/create")},
	"input-required-result-multiple-input-requests": {onlyModern, inputs("sep-2322-multiple-inputs", "test_input_required_result_multiple_inputs", "", "elicitation/create", "sampling/createMessage", "roots/list")},
	"input-required-result-multi-round":             {onlyModern, multiRound},
	"input-required-result-missing-input-response": {onlyModern, func(p *probe) {
		m := p.tool("test_input_required_result_elicitation", e2e.Obj{"inputResponses": e2e.Obj{"wrong_key": e2e.Obj{"action": "accept", "content": e2e.Obj{"data": "wrong"}}}})
		p.check("sep-2322-missing-response-rerequests", questioned(m))
	}},
	"input-required-result-non-tool-request": {onlyModern, func(p *probe) {
		m := p.prompt("test_input_required_result_prompt")
		p.check("sep-2322-non-tool-incomplete", questioned(m))
		m = p.prompt("test_input_required_result_prompt", answered(m))
		p.check("sep-2322-non-tool-complete", complete(m) && e2e.At(m.Result, "messages") != nil)
	}},
	"input-required-result-result-type": {onlyModern, func(p *probe) {
		m := p.tool("test_input_required_result_elicitation")
		p.check("sep-2322-result-type-included", e2e.Str(m.Result, "resultType") == "input_required")
	}},
	"input-required-result-unsupported-methods": {onlyModern, func(p *probe) {
		for _, method := range []string{"tools/list", "prompts/list"} {
			p.check("sep-2322-not-on-unsupported-requests", !questioned(p.ask(method, nil)))
		}
	}},
	"input-required-result-tampered-state": {onlyModern, func(p *probe) {
		const name = "test_input_required_result_tampered_state"
		retry := answered(p.tool(name))
		state, _ := retry["requestState"].(string)
		retry["requestState"] = state + "-TAMPERED"
		p.check("sep-2322-reject-tampered-state", state != "" && p.tool(name, retry).Error != nil)
	}},
	"input-required-result-capability-check": {onlyModern, func(p *probe) {
		m := p.tool("test_input_required_result_capabilities", e2e.Obj{"_meta": e2e.Obj{e2e.ProtocolPrefix + "clientCapabilities": e2e.Obj{"sampling": e2e.Obj{}}}})
		asks := members(e2e.At(m.Result, "inputRequests"))
		good := len(asks) > 0
		for _, ask := range asks {
			good = good && e2e.Str(ask, "method") != "elicitation/create"
		}
		p.check("sep-2322-respect-client-capabilities", good)
	}},
	"input-required-result-ignore-extra-params": {onlyModern, func(p *probe) {
		accept := e2e.Obj{"action": "accept", "content": e2e.Obj{"name": "Alice"}}
		m := p.tool("test_input_required_result_elicitation", e2e.Obj{"inputResponses": e2e.Obj{"user_name": accept, "unknown_extra_key": accept}})
		p.check("sep-2322-ignore-unexpected-params", complete(m))
	}},
	"input-required-result-validate-input": {onlyModern, func(p *probe) {
		m := p.tool("test_input_required_result_elicitation", e2e.Obj{"inputResponses": e2e.Obj{"user_name": 12345}})
		p.check("sep-2322-validate-input-responses", !complete(m))
		m = p.tool("test_input_required_result_elicitation", e2e.Obj{"inputResponses": nil})
		p.check("sep-2322-error-on-protocol-error", !complete(m))
	}},
}

var specName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

func toolsList(p *probe) {
	var orders []string
	for range 3 {
		all := e2e.Each(p.ask("tools/list", nil).Result, "tools")
		p.check("tools-list", allHave(all, "name", "description", "inputSchema"))
		order := ""
		for _, each := range all {
			p.check("tools-name-format", specName.MatchString(e2e.Str(each, "name")))
			order += e2e.Str(each, "name") + " "
		}
		orders = append(orders, order)
	}
	p.check("tools-list-deterministic-order", len(slices.Compact(orders)) == 1)
}

// content calls a tool whose result must have a block of a type with these members.
func content(id, name, kind string, members ...string) func(*probe) {
	return func(p *probe) {
		p.check(id, has(e2e.Each(p.tool(name).Result, "content"), kind, members...))
	}
}

// contents reads a resource whose first contents must have these members.
func contents(id, uri string, members ...string) func(*probe) {
	return func(p *probe) {
		all := e2e.Each(p.read(uri).Result, "contents")
		p.check(id, len(all) > 0 && has(all[:1], "", members...))
	}
}

func withLogging(p *probe) {
	p.ask("logging/setLevel", e2e.Obj{"level": "debug"})
	m := p.tool("test_tool_with_logging")
	lines := p.NotesOf("notifications/message")
	good := len(lines) >= 3
	for _, line := range lines {
		good = good && line.Seq < m.Seq
	}
	p.check("tools-call-with-logging", good)
}

func withProgress(p *probe) {
	m := p.tool("test_tool_with_progress", e2e.Obj{"_meta": e2e.Obj{"progressToken": "progress-test-1"}})
	notes := p.NotesOf("notifications/progress")
	last, good := -1.0, len(notes) >= 3
	for _, n := range notes {
		var progress float64
		good = good && json.Unmarshal(e2e.At(n.Params, "progress"), &progress) == nil && progress >= last &&
			e2e.Str(n.Params, "progressToken") == "progress-test-1" && n.Seq < m.Seq
		last = progress
	}
	p.check("tools-call-with-progress", good)
}

// asked is a call during which the server sends a request.
func asked(id, name, method string, arguments e2e.Obj) func(*probe) {
	return func(p *probe) {
		m := p.tool(name, e2e.Obj{"arguments": arguments})
		p.check(id, len(e2e.Each(m.Result, "content")) > 0 && p.question(method) != nil)
	}
}

// question returns the params of the first request of a method from the server.
func (p *probe) question(method string) json.RawMessage {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	for _, ask := range p.Asks {
		if ask.Method == method {
			return ask.Params
		}
	}
	return nil
}

func elicitedDefaults(p *probe) {
	p.tool("test_elicitation_sep1034_defaults")
	properties := e2e.At(p.question("elicitation/create"), "requestedSchema", "properties")
	for name, want := range map[string]string{
		"name": `"John Doe"`, "age": "30", "score": "95.5", "status": `"active"`, "verified": "true",
	} {
		p.check("elicitation-sep1034-"+name, string(e2e.At(properties, name, "default")) == want)
	}
	p.check("elicitation-sep1034-enum", len(e2e.Each(properties, "status", "enum")) == 3)
}

func elicitedEnums(p *probe) {
	p.tool("test_elicitation_sep1330_enums")
	properties := e2e.At(p.question("elicitation/create"), "requestedSchema", "properties")
	titled := func(all []json.RawMessage) bool { return allHave(all, "const", "title") }
	p.check("elicitation-sep1330-untitled-single", len(e2e.Each(properties, "untitledSingle", "enum")) > 0 && e2e.At(properties, "untitledSingle", "oneOf") == nil)
	p.check("elicitation-sep1330-titled-single", titled(e2e.Each(properties, "titledSingle", "oneOf")) && e2e.At(properties, "titledSingle", "enum") == nil)
	p.check("elicitation-sep1330-legacy-enumnames", len(e2e.Each(properties, "legacyEnum", "enum")) == len(e2e.Each(properties, "legacyEnum", "enumNames")) &&
		e2e.At(properties, "legacyEnum", "enumNames") != nil)
	p.check("elicitation-sep1330-untitled-multi", e2e.Str(properties, "untitledMulti", "type") == "array" && len(e2e.Each(properties, "untitledMulti", "items", "enum")) > 0)
	p.check("elicitation-sep1330-titled-multi", e2e.Str(properties, "titledMulti", "type") == "array" && titled(e2e.Each(properties, "titledMulti", "items", "anyOf")))
}

func caching(p *probe) {
	for method, params := range map[string]e2e.Obj{
		"tools/list": nil, "prompts/list": nil, "resources/list": nil, "resources/templates/list": nil, "resources/read": {"uri": "test://static-text"},
	} {
		result := p.ask(method, params).Result
		var ttl int64
		scope := e2e.Str(result, "cacheScope")
		p.check("sep-2549-"+strings.ReplaceAll(method, "/", "-")+"-caching-hints", e2e.At(result, "ttlMs") != nil && scope != "")
		p.check("sep-2549-ttl-non-negative", json.Unmarshal(e2e.At(result, "ttlMs"), &ttl) == nil && ttl >= 0)
		p.check("sep-2549-cache-scope-valid", scope == "public" || scope == "private")
	}
}

// members returns the values of an object.
func members(raw json.RawMessage) map[string]json.RawMessage {
	var o map[string]json.RawMessage
	_ = json.Unmarshal(raw, &o)
	return o
}

// questioned reports whether a request was answered with input requests.
func questioned(m e2e.Message) bool {
	return e2e.Str(m.Result, "resultType") == "input_required" && len(members(e2e.At(m.Result, "inputRequests"))) > 0
}

func complete(m e2e.Message) bool {
	return m.Result != nil && e2e.Str(m.Result, "resultType") != "input_required"
}

// answered returns the members for the retry of a request.
func answered(m e2e.Message) e2e.Obj {
	responses := e2e.Obj{}
	for key, ask := range members(e2e.At(m.Result, "inputRequests")) {
		responses[key] = answerTo(e2e.Str(ask, "method"), e2e.At(ask, "params"))
	}
	retry := e2e.Obj{"inputResponses": responses}
	if state := e2e.At(m.Result, "requestState"); state != nil {
		retry["requestState"] = e2e.Str(state)
	}
	return retry
}

// inputs checks a call that first requests input by these methods, and then returns a
// result. One request must have the given key, unless that is "".
func inputs(id, name, key string, methods ...string) func(*probe) {
	return func(p *probe) {
		m := p.tool(name)
		asks := members(e2e.At(m.Result, "inputRequests"))
		good := questioned(m) && len(asks) == len(methods) && (key == "" || asks[key] != nil)
		for _, ask := range asks {
			good = good && slices.Contains(methods, e2e.Str(ask, "method"))
		}
		if strings.Contains(name, "state") || strings.Contains(name, "multiple") {
			good = good && e2e.Str(m.Result, "requestState") != ""
		}
		p.check(id+"-incomplete", good)
		p.check(id+"-complete", good && complete(p.tool(name, answered(m))))
	}
}

func multiRound(p *probe) {
	const name = "test_input_required_result_multi_round"
	first := p.tool(name)
	p.check("sep-2322-multi-round-r1", questioned(first) && e2e.Str(first.Result, "requestState") != "")
	second := p.tool(name, answered(first))
	p.check("sep-2322-multi-round-r2", questioned(second) && e2e.Str(second.Result, "requestState") != e2e.Str(first.Result, "requestState"))
	p.check("sep-2322-multi-round-r3", questioned(second) && complete(p.tool(name, answered(second))))
}

// statelessServer omits the checks of HTTP statuses and headers.
func statelessServer(p *probe) {
	p.Caps = e2e.Obj{}
	lacking := func(name string) e2e.Obj {
		meta := e2e.Obj{e2e.ProtocolPrefix + "protocolVersion": e2e.ModernRevision, e2e.ProtocolPrefix + "clientCapabilities": e2e.Obj{}}
		delete(meta, e2e.ProtocolPrefix+name)
		return e2e.Obj{"_meta": meta}
	}
	for slug, params := range map[string]e2e.Obj{
		"missing-meta": {}, "missing-protocol-version": lacking("protocolVersion"), "missing-client-capabilities": lacking("clientCapabilities"),
	} {
		p.check("sep-2575-request-meta-invalid-"+slug, code(p.End(p.Begin("server/discover", params))) == "-32602")
	}
	p.check("sep-2575-request-meta-client-info-optional", p.End(p.Begin("server/discover", lacking("clientInfo"))).Error == nil)

	found := p.ask("server/discover", nil).Result
	supported := string(e2e.At(found, "supportedVersions"))
	p.check("sep-2575-server-implements-discover", strings.Contains(supported, e2e.ModernRevision) && e2e.At(found, "capabilities") != nil)
	p.check("sep-2575-server-identifies-in-result-meta", e2e.Str(found, "_meta", e2e.ProtocolPrefix+"serverInfo", "version") != "")
	p.check("sep-2575-server-declares-prompts-in-discover", p.ask("prompts/list", nil).Error != nil || e2e.At(found, "capabilities", "prompts") != nil)
	p.check("sep-2575-discover-capabilities-match-handlers", p.ask("tools/list", nil).Error == nil && e2e.At(found, "capabilities", "tools") != nil)

	m := p.ask("server/discover", e2e.Obj{"_meta": e2e.Obj{e2e.ProtocolPrefix + "protocolVersion": "v999.0.0"}})
	p.check("sep-2575-server-unsupported-version-error", code(m) == "-32022" && e2e.Str(m.Error, "data", "requested") == "v999.0.0" &&
		len(e2e.Each(m.Error, "data", "supported")) > 0)
	m = p.tool("test_missing_capability")
	p.check("sep-2575-server-rejects-undeclared-capability", code(m) == "-32021" && e2e.At(m.Error, "data", "requiredCapabilities", "sampling") != nil)
	for _, method := range []string{"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "unknown/method"} {
		p.check("sep-2575-http-server-method-not-found-404-"+strings.ToLower(strings.ReplaceAll(method, "/", "-")), code(p.ask(method, nil)) == "-32601")
	}

	p.tool("test_streaming_elicitation", e2e.Obj{"_meta": e2e.Obj{e2e.ProtocolPrefix + "clientCapabilities": e2e.Obj{"elicitation": e2e.Obj{}}}})
	p.Mu.Lock()
	p.check("sep-2575-http-server-no-independent-requests-on-stream", len(p.Asks) == 0)
	p.Mu.Unlock()
	m = p.tool("test_logging_tool")
	p.check("sep-2575-server-no-log-without-loglevel", m.Error == nil && len(p.NotesOf("notifications/message")) == 0)
	p.listens()
}

// listens checks the notifications of two listens.
func (p *probe) listens() {
	p.t.Helper()
	tools := p.asking("subscriptions/listen", e2e.Obj{"notifications": e2e.Obj{"toolsListChanged": true}})
	ack := p.WaitNote("notifications/subscriptions/acknowledged", nil)
	p.check("sep-2575-server-sends-subscription-ack", e2e.SubscriptionOf(ack.Params) == tools)
	p.tool("test_trigger_tool_change")
	change := p.WaitNote("notifications/tools/list_changed", nil)
	p.check("sep-2575-server-sends-tools-list-changed-on-subscription", true)
	p.check("sep-2575-server-tags-subscription-id", e2e.SubscriptionOf(change.Params) == tools)
	p.StopListening(tools)

	p.ask("server/discover", nil)
	p.Update(func() { p.Notes = nil })
	prompts := p.asking("subscriptions/listen", e2e.Obj{"notifications": e2e.Obj{"promptsListChanged": true}})
	p.WaitNote("notifications/subscriptions/acknowledged", nil)
	p.tool("test_trigger_tool_change")
	p.tool("test_trigger_prompt_change")
	change = p.WaitNote("notifications/prompts/list_changed", nil)
	p.check("sep-2575-server-sends-prompts-list-changed-on-subscription", true)
	p.check("sep-2575-server-tags-subscription-id", e2e.SubscriptionOf(change.Params) == prompts)
	p.ask("server/discover", nil)
	p.check("sep-2575-server-honors-notification-filter", len(p.NotesOf("notifications/tools/list_changed")) == 0)
}
