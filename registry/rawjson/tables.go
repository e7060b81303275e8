package rawjson

import "sync"

// Relevant members of `_meta` (2026-07-28, basic, general fields; 2025-11-25, progress
// and tasks).
var meta = newTree(
	"progressToken",
	"io.modelcontextprotocol/protocolVersion",
	"io.modelcontextprotocol/clientCapabilities",
	"io.modelcontextprotocol/clientInfo",
	"io.modelcontextprotocol/logLevel",
	"io.modelcontextprotocol/serverInfo",
	"io.modelcontextprotocol/subscriptionId",
	"io.modelcontextprotocol/related-task", newTree("taskId"),
)

var uri = &KeyTree{uri: true}

func asContentBlock(t *KeyTree) *KeyTree {
	t.block = true
	return t
}

// valueOrArray returns the KeyTree of one value of tree t or an array of such values.
func valueOrArray(t *KeyTree) *KeyTree {
	more := *t
	more.element = t
	return &more
}

// Trees of the definitions in lists.
var (
	Tool = newTree("name",
		"execution", newTree("taskSupport"),
		"_meta", newTree("ui", newTree("resourceUri"), "ui/resourceUri"))
	Prompt   = newTree("name")
	Resource = newTree("uri")
	Template = newTree("uriTemplate")
	Skill    = newTree("uri", "frontmatter", newTree("name", "description"), "resources", arrayTree(newTree("uri", "digest", "size")))
)

// params and results are built at first use, not at each start of a command.
var params = sync.OnceValue(func() map[string]*KeyTree {
	task := newTree("taskId", "inputResponses", "requestState", "_meta", meta)
	return map[string]*KeyTree{
		"tools/call":               newTree("name", "arguments", "task", newTree("ttl"), "inputResponses", "requestState", "_meta", meta),
		"prompts/get":              newTree("name", "arguments", "inputResponses", "requestState", "_meta", meta),
		"resources/read":           newTree("uri", "inputResponses", "requestState", "_meta", meta),
		"skills/get":               newTree("uri", "_meta", meta),
		"resources/directory/read": newTree("uri", "cursor", "_meta", meta),
		"resources/subscribe":      newTree("uri", "_meta", meta),
		"resources/unsubscribe":    newTree("uri", "_meta", meta),
		"completion/complete":      newTree("ref", newTree("type", "name", "uri"), "argument", newTree("name", "value"), "_meta", meta),
		"tasks/get":                task,
		"tasks/result":             task,
		"tasks/cancel":             task,
		"tasks/update":             task,
		"logging/setLevel":         newTree("level", "_meta", meta),
		"subscriptions/listen": newTree("_meta", meta, "notifications", newTree(
			"toolsListChanged", "promptsListChanged", "resourcesListChanged", "resourceSubscriptions", "taskIds")),

		"sampling/createMessage": newTree("tools", "task", newTree("ttl"), "_meta", meta),
		"elicitation/create":     newTree("mode", "url", "elicitationId", "task", newTree("ttl"), "_meta", meta),

		"notifications/progress":             newTree("progressToken", "_meta", meta),
		"notifications/cancelled":            newTree("requestId", "reason", "_meta", meta),
		"notifications/message":              newTree("level", "logger", "_meta", meta),
		"notifications/resources/updated":    newTree("uri", "_meta", meta),
		"notifications/elicitation/complete": newTree("elicitationId", "_meta", meta),
		"notifications/tasks/status":         newTree("taskId", "status", "ttl", "pollInterval", "_meta", meta),
	}
})

var otherKey = newTree("_meta", meta)

// ExtensionParams lists the params of an unknown extension's request or notification that
// decide its destination.
var ExtensionParams = newTree("uri", "name", "taskId", "_meta", meta)

// NotificationParams is the KeyTree of the params of a server's unknown notification.
var NotificationParams = newTree("uri", uri, "_meta", meta)

// Params returns the KeyTree of the params of a request or notification.
func Params(method string) *KeyTree {
	if t := params()[method]; t != nil {
		return t
	}
	return otherKey
}

// result adds the members common to results passed on to clients. They can turn the
// result into something other than the method's result (2026-07-28, MRTR and tasks).
func result(more ...any) *KeyTree {
	return newTree(append(more,
		"resultType", "ttlMs", "cacheScope", "requestState",
		"inputRequests", &KeyTree{anyMember: newTree("method", "params", question)})...)
}

func (t *KeyTree) parts() (parts []any) {
	for _, m := range t.members {
		parts = append(parts, m.name)
		if m.tree != nil {
			parts = append(parts, m.tree)
		}
	}
	return parts
}

var question = newTree("mode", "url", "elicitationId", "tools", "task", newTree("ttl"), "_meta", meta)

var results = sync.OnceValue(func() map[string]*KeyTree {
	block := asContentBlock(newTree("type", "uri", "resource", newTree("uri", uri)))
	treeState := []any{"taskId", "status", "ttl", "pollInterval"}
	call := []any{"content", arrayTree(block), "isError", "_meta", newTree(append([]any{"ui", newTree("resourceUri", uri), "ui/resourceUri", uri}, meta.parts()...)...)}
	return map[string]*KeyTree{
		"tools/call":          result(append(append([]any{"task", newTree(treeState...)}, call...), treeState...)...),
		"prompts/get":         result("messages", arrayTree(newTree("content", valueOrArray(block))), "_meta", meta),
		"resources/read":      result("contents", arrayTree(newTree("uri", uri, "mimeType")), "_meta", meta),
		"completion/complete": result("_meta", meta),
		"skills/get": result("skill", newTree("uri", uri, "frontmatter", newTree("name", "description"),
			"resources", arrayTree(newTree("uri", uri, "digest", "size"))), "_meta", meta),
		"resources/directory/read": result("resources", arrayTree(newTree("uri", uri, "mimeType")), "nextCursor", "_meta", meta),
		"tasks/get":                result(append([]any{"result", result(call...), "error", ErrorObject, "_meta", meta}, treeState...)...),
		"tasks/result":             result(call...),
		"tasks/cancel":             result(append(treeState, "_meta", meta)...),
		"tasks/update":             result(append(treeState, "_meta", meta)...),

		// Answers of clients to requests from servers.
		"elicitation/create":     newTree("action", "task", newTree(treeState...), "_meta", meta),
		"sampling/createMessage": newTree("task", newTree(treeState...), "_meta", meta),
		"roots/list":             newTree("roots", arrayTree(newTree("uri")), "_meta", meta),
	}
})

// Result returns the KeyTree of a request's result, or nil if only Goblin reads it.
func Result(method string) *KeyTree { return results()[method] }

// ErrorObject is the KeyTree of an error object.
var ErrorObject = newTree("code", "message",
	"data", newTree("uri", uri, "code", "requiredCapabilities", "elicitations", arrayTree(question)))
