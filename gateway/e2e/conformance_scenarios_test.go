//go:build conformance

package e2e

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// scenario is one of the suite's over stdio. Its checks have the suite's names.
type scenario struct {
	revisions []string // none: both
	run       func(p *probe)
}

func (s scenario) of(revision string) bool {
	return len(s.revisions) == 0 || slices.Contains(s.revisions, revision)
}

var (
	onlyLegacy = []string{revision}
	onlyModern = []string{modernRevision}
)

var scenarios = map[string]scenario{
	"server-initialize": {onlyLegacy, func(*probe) {}}, // done when it was opened
	"ping":              {onlyLegacy, func(p *probe) { p.check("ping", string(p.ask("ping", nil).Result) == "{}") }},
	"logging-set-level": {onlyLegacy, func(p *probe) {
		p.check("logging-set-level", string(p.ask("logging/setLevel", obj{"level": "info"}).Result) == "{}")
	}},
	"completion-complete": {nil, func(p *probe) {
		m := p.ask("completion/complete", obj{
			"ref": obj{"type": "ref/prompt", "name": "test_prompt_with_arguments"}, "argument": obj{"name": "arg1", "value": "test"},
		})
		var values []string
		p.check("completion-complete", json.Unmarshal(at(m.Result, "completion", "values"), &values) == nil && values != nil)
	}},
	"tools-list": {nil, toolsList},

	"tools-call-simple-text": {nil, content("tools-call-simple-text", "test_simple_text", "text", "text")},
	"tools-call-image":       {nil, content("tools-call-image", "test_image_content", "image", "data", "mimeType")},
	"tools-call-audio":       {nil, content("tools-call-audio", "test_audio_content", "audio", "data", "mimeType")},
	"tools-call-embedded-resource": {nil, content("tools-call-embedded-resource", "test_embedded_resource", "resource",
		"resource.uri", "resource.mimeType", "resource.text")},
	"tools-call-mixed-content": {nil, func(p *probe) {
		all := each(p.tool("test_multiple_content_types").Result, "content")
		p.check("tools-call-mixed-content", has(all, "text") && has(all, "image") && has(all, "resource"))
	}},
	"tools-call-error": {nil, func(p *probe) {
		result := p.tool("test_error_handling").Result
		p.check("tools-call-error", string(at(result, "isError")) == "true" && str(result, "content", 0, "text") != "")
	}},
	"tools-call-with-logging":      {onlyLegacy, withLogging},
	"tools-call-with-progress":     {nil, withProgress},
	"tools-call-sampling":          {onlyLegacy, asked("tools-call-sampling", "test_sampling", "sampling/createMessage", obj{"prompt": "Test prompt"})},
	"tools-call-elicitation":       {onlyLegacy, asked("tools-call-elicitation", "test_elicitation", "elicitation/create", obj{"message": "Please"})},
	"elicitation-sep1034-defaults": {onlyLegacy, elicitedDefaults},
	"elicitation-sep1330-enums":    {onlyLegacy, elicitedEnums},

	"resources-list": {nil, func(p *probe) {
		p.check("resources-list", allHave(each(p.ask("resources/list", nil).Result, "resources"), "uri", "name"))
	}},
	"resources-read-text":   {nil, contents("resources-read-text", "test://static-text", "uri", "mimeType", "text")},
	"resources-read-binary": {nil, contents("resources-read-binary", "test://static-binary", "uri", "mimeType", "blob")},
	"resources-templates-read": {nil, func(p *probe) {
		first := at(p.read("test://template/123/data").Result, "contents", 0)
		p.check("resources-templates-read", str(first, "uri") != "" && strings.Contains(str(first, "text"), "123"))
	}},
	"resources-subscribe": {onlyLegacy, func(p *probe) {
		p.check("resources-subscribe", p.ask("resources/subscribe", obj{"uri": "test://watched-resource"}).Error == nil)
	}},
	"resources-unsubscribe": {onlyLegacy, func(p *probe) {
		p.ask("resources/subscribe", obj{"uri": "test://watched-resource"})
		p.check("resources-unsubscribe", p.ask("resources/unsubscribe", obj{"uri": "test://watched-resource"}).Error == nil)
	}},
	"sep-2164-resource-not-found": {onlyModern, func(p *probe) {
		const uri = "test://nonexistent-resource-for-conformance-testing"
		m := p.read(uri)
		p.check("sep-2164-no-empty-contents", m.Result == nil)
		p.check("sep-2164-error-code", code(m) == "-32602")
		p.check("sep-2164-data-uri", str(m.Error, "data", "uri") == uri)
	}},

	"prompts-list": {nil, func(p *probe) {
		p.check("prompts-list", allHave(each(p.ask("prompts/list", nil).Result, "prompts"), "name", "description"))
	}},
	"prompts-get-simple": {nil, func(p *probe) {
		p.check("prompts-get-simple", allHave(each(p.prompt("test_simple_prompt").Result, "messages"), "role", "content"))
	}},
	"prompts-get-with-args": {nil, func(p *probe) {
		text := string(at(p.prompt("test_prompt_with_arguments", obj{"arguments": obj{"arg1": "testValue1", "arg2": "testValue2"}}).Result, "messages"))
		p.check("prompts-get-with-args", strings.Contains(text, "testValue1") && strings.Contains(text, "testValue2"))
	}},
	"prompts-get-embedded-resource": {nil, func(p *probe) {
		all := each(p.prompt("test_prompt_with_embedded_resource", obj{"arguments": obj{"resourceUri": "test://example-resource"}}).Result, "messages")
		p.check("prompts-get-embedded-resource", has(all, "", "content.resource.uri"))
	}},
	"prompts-get-with-image": {nil, func(p *probe) {
		all := each(p.prompt("test_prompt_with_image").Result, "messages")
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
		m := p.tool("test_input_required_result_elicitation", obj{"inputResponses": obj{"wrong_key": obj{"action": "accept", "content": obj{"data": "wrong"}}}})
		p.check("sep-2322-missing-response-rerequests", questioned(m))
	}},
	"input-required-result-non-tool-request": {onlyModern, func(p *probe) {
		m := p.prompt("test_input_required_result_prompt")
		p.check("sep-2322-non-tool-incomplete", questioned(m))
		m = p.prompt("test_input_required_result_prompt", answered(m))
		p.check("sep-2322-non-tool-complete", complete(m) && at(m.Result, "messages") != nil)
	}},
	"input-required-result-result-type": {onlyModern, func(p *probe) {
		m := p.tool("test_input_required_result_elicitation")
		p.check("sep-2322-result-type-included", str(m.Result, "resultType") == "input_required")
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
		m := p.tool("test_input_required_result_capabilities", obj{"_meta": obj{protocolPrefix + "clientCapabilities": obj{"sampling": obj{}}}})
		asks := members(at(m.Result, "inputRequests"))
		good := len(asks) > 0
		for _, ask := range asks {
			good = good && str(ask, "method") != "elicitation/create"
		}
		p.check("sep-2322-respect-client-capabilities", good)
	}},
	"input-required-result-ignore-extra-params": {onlyModern, func(p *probe) {
		accept := obj{"action": "accept", "content": obj{"name": "Alice"}}
		m := p.tool("test_input_required_result_elicitation", obj{"inputResponses": obj{"user_name": accept, "unknown_extra_key": accept}})
		p.check("sep-2322-ignore-unexpected-params", complete(m))
	}},
	"input-required-result-validate-input": {onlyModern, func(p *probe) {
		m := p.tool("test_input_required_result_elicitation", obj{"inputResponses": obj{"user_name": 12345}})
		p.check("sep-2322-validate-input-responses", !complete(m))
		m = p.tool("test_input_required_result_elicitation", obj{"inputResponses": nil})
		p.check("sep-2322-error-on-protocol-error", !complete(m))
	}},
}

var specName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

func toolsList(p *probe) {
	var orders []string
	for range 3 {
		all := each(p.ask("tools/list", nil).Result, "tools")
		p.check("tools-list", allHave(all, "name", "description", "inputSchema"))
		order := ""
		for _, each := range all {
			p.check("tools-name-format", specName.MatchString(str(each, "name")))
			order += str(each, "name") + " "
		}
		orders = append(orders, order)
	}
	p.check("tools-list-deterministic-order", len(slices.Compact(orders)) == 1)
}

// content is a call whose result has a block of a type with these members.
func content(id, name, kind string, members ...string) func(*probe) {
	return func(p *probe) {
		p.check(id, has(each(p.tool(name).Result, "content"), kind, members...))
	}
}

// contents is a read whose first contents have these members.
func contents(id, uri string, members ...string) func(*probe) {
	return func(p *probe) {
		all := each(p.read(uri).Result, "contents")
		p.check(id, len(all) > 0 && has(all[:1], "", members...))
	}
}

func withLogging(p *probe) {
	p.ask("logging/setLevel", obj{"level": "debug"})
	m := p.tool("test_tool_with_logging")
	lines := p.notesOf("notifications/message")
	good := len(lines) >= 3
	for _, line := range lines {
		good = good && line.seq < m.seq
	}
	p.check("tools-call-with-logging", good)
}

func withProgress(p *probe) {
	m := p.tool("test_tool_with_progress", obj{"_meta": obj{"progressToken": "progress-test-1"}})
	notes := p.notesOf("notifications/progress")
	last, good := -1.0, len(notes) >= 3
	for _, n := range notes {
		var progress float64
		good = good && json.Unmarshal(at(n.Params, "progress"), &progress) == nil && progress >= last &&
			str(n.Params, "progressToken") == "progress-test-1" && n.seq < m.seq
		last = progress
	}
	p.check("tools-call-with-progress", good)
}

// asked is a call during which the server asks.
func asked(id, name, method string, arguments obj) func(*probe) {
	return func(p *probe) {
		m := p.tool(name, obj{"arguments": arguments})
		p.check(id, len(each(m.Result, "content")) > 0 && p.question(method) != nil)
	}
}

// question is the params of the first question of a method.
func (p *probe) question(method string) json.RawMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, ask := range p.asks {
		if ask.Method == method {
			return ask.Params
		}
	}
	return nil
}

func elicitedDefaults(p *probe) {
	p.tool("test_elicitation_sep1034_defaults")
	properties := at(p.question("elicitation/create"), "requestedSchema", "properties")
	for name, want := range map[string]string{
		"name": `"John Doe"`, "age": "30", "score": "95.5", "status": `"active"`, "verified": "true",
	} {
		p.check("elicitation-sep1034-"+name, string(at(properties, name, "default")) == want)
	}
	p.check("elicitation-sep1034-enum", len(each(properties, "status", "enum")) == 3)
}

func elicitedEnums(p *probe) {
	p.tool("test_elicitation_sep1330_enums")
	properties := at(p.question("elicitation/create"), "requestedSchema", "properties")
	titled := func(all []json.RawMessage) bool { return allHave(all, "const", "title") }
	p.check("elicitation-sep1330-untitled-single", len(each(properties, "untitledSingle", "enum")) > 0 && at(properties, "untitledSingle", "oneOf") == nil)
	p.check("elicitation-sep1330-titled-single", titled(each(properties, "titledSingle", "oneOf")) && at(properties, "titledSingle", "enum") == nil)
	p.check("elicitation-sep1330-legacy-enumnames", len(each(properties, "legacyEnum", "enum")) == len(each(properties, "legacyEnum", "enumNames")) &&
		at(properties, "legacyEnum", "enumNames") != nil)
	p.check("elicitation-sep1330-untitled-multi", str(properties, "untitledMulti", "type") == "array" && len(each(properties, "untitledMulti", "items", "enum")) > 0)
	p.check("elicitation-sep1330-titled-multi", str(properties, "titledMulti", "type") == "array" && titled(each(properties, "titledMulti", "items", "anyOf")))
}

func caching(p *probe) {
	for method, params := range map[string]obj{
		"tools/list": nil, "prompts/list": nil, "resources/list": nil, "resources/templates/list": nil, "resources/read": {"uri": "test://static-text"},
	} {
		result := p.ask(method, params).Result
		var ttl int64
		scope := str(result, "cacheScope")
		p.check("sep-2549-"+strings.ReplaceAll(method, "/", "-")+"-caching-hints", at(result, "ttlMs") != nil && scope != "")
		p.check("sep-2549-ttl-non-negative", json.Unmarshal(at(result, "ttlMs"), &ttl) == nil && ttl >= 0)
		p.check("sep-2549-cache-scope-valid", scope == "public" || scope == "private")
	}
}

// members are the values of an object.
func members(raw json.RawMessage) map[string]json.RawMessage {
	var o map[string]json.RawMessage
	_ = json.Unmarshal(raw, &o)
	return o
}

// questioned reports whether a request was answered with questions.
func questioned(m message) bool {
	return str(m.Result, "resultType") == "input_required" && len(members(at(m.Result, "inputRequests"))) > 0
}

func complete(m message) bool {
	return m.Result != nil && str(m.Result, "resultType") != "input_required"
}

// answered are the members by which a request is retried.
func answered(m message) obj {
	responses := obj{}
	for key, ask := range members(at(m.Result, "inputRequests")) {
		responses[key] = answerTo(str(ask, "method"), at(ask, "params"))
	}
	retry := obj{"inputResponses": responses}
	if state := at(m.Result, "requestState"); state != nil {
		retry["requestState"] = str(state)
	}
	return retry
}

// inputs is a call that is answered with questions of these methods, one of
// them under the server's own name for it, and then with a result.
func inputs(id, name, key string, methods ...string) func(*probe) {
	return func(p *probe) {
		m := p.tool(name)
		asks := members(at(m.Result, "inputRequests"))
		good := questioned(m) && len(asks) == len(methods) && (key == "" || asks[key] != nil)
		for _, ask := range asks {
			good = good && slices.Contains(methods, str(ask, "method"))
		}
		if strings.Contains(name, "state") || strings.Contains(name, "multiple") {
			good = good && str(m.Result, "requestState") != ""
		}
		p.check(id+"-incomplete", good)
		p.check(id+"-complete", good && complete(p.tool(name, answered(m))))
	}
}

func multiRound(p *probe) {
	const name = "test_input_required_result_multi_round"
	first := p.tool(name)
	p.check("sep-2322-multi-round-r1", questioned(first) && str(first.Result, "requestState") != "")
	second := p.tool(name, answered(first))
	p.check("sep-2322-multi-round-r2", questioned(second) && str(second.Result, "requestState") != str(first.Result, "requestState"))
	p.check("sep-2322-multi-round-r3", questioned(second) && complete(p.tool(name, answered(second))))
}

// statelessServer leaves out what is said of HTTP statuses and headers.
func statelessServer(p *probe) {
	p.caps = obj{}
	lacking := func(name string) obj {
		meta := obj{protocolPrefix + "protocolVersion": modernRevision, protocolPrefix + "clientCapabilities": obj{}}
		delete(meta, protocolPrefix+name)
		return obj{"_meta": meta}
	}
	for slug, params := range map[string]obj{
		"missing-meta": {}, "missing-protocol-version": lacking("protocolVersion"), "missing-client-capabilities": lacking("clientCapabilities"),
	} {
		p.check("sep-2575-request-meta-invalid-"+slug, code(p.end(p.begin("server/discover", params))) == "-32602")
	}
	p.check("sep-2575-request-meta-client-info-optional", p.end(p.begin("server/discover", lacking("clientInfo"))).Error == nil)

	found := p.ask("server/discover", nil).Result
	supported := string(at(found, "supportedVersions"))
	p.check("sep-2575-server-implements-discover", strings.Contains(supported, modernRevision) && at(found, "capabilities") != nil)
	p.check("sep-2575-server-identifies-in-result-meta", str(found, "_meta", protocolPrefix+"serverInfo", "version") != "")
	p.check("sep-2575-server-declares-prompts-in-discover", p.ask("prompts/list", nil).Error != nil || at(found, "capabilities", "prompts") != nil)
	p.check("sep-2575-discover-capabilities-match-handlers", p.ask("tools/list", nil).Error == nil && at(found, "capabilities", "tools") != nil)

	m := p.ask("server/discover", obj{"_meta": obj{protocolPrefix + "protocolVersion": "v999.0.0"}})
	p.check("sep-2575-server-unsupported-version-error", code(m) == "-32022" && str(m.Error, "data", "requested") == "v999.0.0" &&
		len(each(m.Error, "data", "supported")) > 0)
	m = p.tool("test_missing_capability")
	p.check("sep-2575-server-rejects-undeclared-capability", code(m) == "-32021" && at(m.Error, "data", "requiredCapabilities", "sampling") != nil)
	for _, method := range []string{"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "unknown/method"} {
		p.check("sep-2575-http-server-method-not-found-404-"+strings.ToLower(strings.ReplaceAll(method, "/", "-")), code(p.ask(method, nil)) == "-32601")
	}

	p.tool("test_streaming_elicitation", obj{"_meta": obj{protocolPrefix + "clientCapabilities": obj{"elicitation": obj{}}}})
	p.mu.Lock()
	p.check("sep-2575-http-server-no-independent-requests-on-stream", len(p.asks) == 0)
	p.mu.Unlock()
	m = p.tool("test_logging_tool")
	p.check("sep-2575-server-no-log-without-loglevel", m.Error == nil && len(p.notesOf("notifications/message")) == 0)
	p.listens()
}

// listens looks at the notifications of two listens.
func (p *probe) listens() {
	p.t.Helper()
	tools := p.asking("subscriptions/listen", obj{"notifications": obj{"toolsListChanged": true}})
	ack := p.noted("notifications/subscriptions/acknowledged", nil)
	p.check("sep-2575-server-sends-subscription-ack", tagged(ack.Params) == tools)
	p.tool("test_trigger_tool_change")
	change := p.noted("notifications/tools/list_changed", nil)
	p.check("sep-2575-server-sends-tools-list-changed-on-subscription", true)
	p.check("sep-2575-server-tags-subscription-id", tagged(change.Params) == tools)
	p.stops(tools)

	p.ask("server/discover", nil)
	p.update(func() { p.notes = nil })
	prompts := p.asking("subscriptions/listen", obj{"notifications": obj{"promptsListChanged": true}})
	p.noted("notifications/subscriptions/acknowledged", nil)
	p.tool("test_trigger_tool_change")
	p.tool("test_trigger_prompt_change")
	change = p.noted("notifications/prompts/list_changed", nil)
	p.check("sep-2575-server-sends-prompts-list-changed-on-subscription", true)
	p.check("sep-2575-server-tags-subscription-id", tagged(change.Params) == prompts)
	p.ask("server/discover", nil)
	p.check("sep-2575-server-honors-notification-filter", len(p.notesOf("notifications/tools/list_changed")) == 0)
}
