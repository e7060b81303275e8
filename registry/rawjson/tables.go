package rawjson

// The members of `_meta` that decide (2026-07-28, basic, general fields; 2025-11-25,
// progress and tasks).
var meta = object(
	"progressToken",
	"io.modelcontextprotocol/protocolVersion",
	"io.modelcontextprotocol/clientCapabilities",
	"io.modelcontextprotocol/clientInfo",
	"io.modelcontextprotocol/logLevel",
	"io.modelcontextprotocol/serverInfo",
	"io.modelcontextprotocol/subscriptionId",
	"io.modelcontextprotocol/related-task", object("taskId"),
)

// uri is the value of a member that is a URI of the server.
var uri = &KeyTree{uri: true}

func asBlock(t *KeyTree) *KeyTree {
	t.block = true
	return t
}

// oneOrMore is the Tree of a value that is either as t says, or an array of such.
func oneOrMore(t *KeyTree) *KeyTree {
	more := *t
	more.each = t
	return &more
}

// The definitions in lists.
var (
	Tool = object("name",
		"execution", object("taskSupport"),
		"_meta", object("ui", object("resourceUri"), "ui/resourceUri"))
	Prompt   = object("name")
	Resource = object("uri")
	Template = object("uriTemplate")
	Skill    = object("uri", "frontmatter", object("name", "description"), "resources", array(object("uri", "digest", "size")))
)

// params are those of requests and notifications, in whatever direction.
var params = map[string]*KeyTree{
	"tools/call":               object("name", "arguments", "task", object("ttl"), "inputResponses", "requestState", "_meta", meta),
	"prompts/get":              object("name", "arguments", "inputResponses", "requestState", "_meta", meta),
	"resources/read":           object("uri", "inputResponses", "requestState", "_meta", meta),
	"skills/get":               object("uri", "_meta", meta),
	"resources/directory/read": object("uri", "cursor", "_meta", meta),
	"resources/subscribe":      object("uri", "_meta", meta),
	"resources/unsubscribe":    object("uri", "_meta", meta),
	"completion/complete":      object("ref", object("type", "name", "uri"), "argument", object("name", "value"), "_meta", meta),
	"tasks/get":                task,
	"tasks/result":             task,
	"tasks/cancel":             task,
	"tasks/update":             task,
	"logging/setLevel":         object("level", "_meta", meta),
	"subscriptions/listen": object("_meta", meta, "notifications", object(
		"toolsListChanged", "promptsListChanged", "resourcesListChanged", "resourceSubscriptions", "taskIds")),

	"sampling/createMessage": object("tools", "task", object("ttl"), "_meta", meta),
	"elicitation/create":     object("mode", "url", "elicitationId", "task", object("ttl"), "_meta", meta),

	"notifications/progress":             object("progressToken", "_meta", meta),
	"notifications/cancelled":            object("requestId", "reason", "_meta", meta),
	"notifications/message":              object("level", "logger", "_meta", meta),
	"notifications/resources/updated":    object("uri", "_meta", meta),
	"notifications/elicitation/complete": object("elicitationId", "_meta", meta),
	"notifications/tasks/status":         object("taskId", "status", "ttl", "pollInterval", "_meta", meta),
}

var (
	task     = object("taskId", "inputResponses", "requestState", "_meta", meta)
	otherKey = object("_meta", meta)
)

// ExtensionParams is the Tree of the params of a request or notification of an extension that
// Goblin does not know: what says whose it is.
var ExtensionParams = object("uri", "name", "taskId", "_meta", meta)

// NotificationParams is the Tree of the params of a server's notification that Goblin does not
// know.
var NotificationParams = object("uri", uri, "_meta", meta)

// Params is the Tree of the params of a request or notification.
func Params(method string) *KeyTree {
	if t := params[method]; t != nil {
		return t
	}
	return otherKey
}

// What the results have in common that pass through to clients: what makes them
// something else than the result of the method (2026-07-28, MRTR and tasks).
func result(more ...any) *KeyTree {
	return object(append(more,
		"resultType", "ttlMs", "cacheScope", "requestState",
		"inputRequests", &KeyTree{values: object("method", "params", question)})...)
}

// parts are written into the Tree by object.
func (t *KeyTree) parts() (parts []any) {
	for _, m := range t.members {
		parts = append(parts, m.name)
		if m.tree != nil {
			parts = append(parts, m.tree)
		}
	}
	return parts
}

var (
	question  = object("mode", "url", "elicitationId", "tools", "task", object("ttl"), "_meta", meta)
	block     = asBlock(object("type", "uri", "resource", object("uri", uri)))
	treeState = []any{"taskId", "status", "ttl", "pollInterval"}
	call      = []any{"content", array(block), "isError", "_meta", object(append([]any{"ui", object("resourceUri", uri), "ui/resourceUri", uri}, meta.parts()...)...)}
)

var results = map[string]*KeyTree{
	"tools/call":          result(append(append([]any{"task", object(treeState...)}, call...), treeState...)...),
	"prompts/get":         result("messages", array(object("content", oneOrMore(block))), "_meta", meta),
	"resources/read":      result("contents", array(object("uri", uri, "mimeType")), "_meta", meta),
	"completion/complete": result("_meta", meta),
	"skills/get": result("skill", object("uri", uri, "frontmatter", object("name", "description"),
		"resources", array(object("uri", uri, "digest", "size"))), "_meta", meta),
	"resources/directory/read": result("resources", array(object("uri", uri, "mimeType")), "nextCursor", "_meta", meta),
	"tasks/get":                result(append([]any{"result", result(call...), "error", ErrorObject, "_meta", meta}, treeState...)...),
	"tasks/result":             result(call...),
	"tasks/cancel":             result(append(treeState, "_meta", meta)...),
	"tasks/update":             result(append(treeState, "_meta", meta)...),

	// Answers of clients to questions of servers.
	"elicitation/create":     object("action", "task", object(treeState...), "_meta", meta),
	"sampling/createMessage": object("task", object(treeState...), "_meta", meta),
	"roots/list":             object("roots", array(object("uri")), "_meta", meta),
}

// Result is the Tree of the result of a request; nil where Goblin alone reads it.
func Result(method string) *KeyTree { return results[method] }

// ErrorObject is the Tree of an error object.
var ErrorObject = object("code", "message",
	"data", object("uri", uri, "code", "requiredCapabilities", "elicitations", array(question)))
