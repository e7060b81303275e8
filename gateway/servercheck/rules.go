package servercheck

import "goblin/registry/report"

// Rule is a kind of findings.
type Rule struct {
	ID    string
	Level string // usual level: report.LevelError, LevelWarning or LevelNote
	Short string // the defect
	Why   string // the clients that it affects, and how
	Fix   string // for authors of the server
}

const (
	bad     = report.LevelError
	warning = report.LevelWarning
	note    = report.LevelNote

	sdks = "clients with the official SDKs"
)

// Rules returns all rules in the order of CHECKS.md.
func Rules() []Rule { return rules }

var rules = []Rule{
	{"start/failed", bad, "The server cannot be started or reached.", "no client can connect", "follow the diagnosis of goblin doctor"},
	{"start/slow", warning, "The server answers initialize late.", "Codex gives up after 10 s, other clients after 30 to 60 s", "load data after the handshake, and install packages in advance"},
	{"start/unstable", bad, "The server starts once and fails the next time.", "clients start a server for each session", "remove locks and state that one start leaves for the next"},
	{"handshake/failed", bad, "The server answers initialize with an error or not at all.", "no client can connect", "answer initialize with protocolVersion, capabilities and serverInfo"},
	{"handshake/result", bad, "The answer to initialize lacks a member or has one of a wrong type.", sdks + " refuse the connection", "send protocolVersion, capabilities and serverInfo with name and version"},
	{"handshake/version", bad, "The server answers with a protocol version that does not exist.", sdks + " disconnect", "answer with a published version"},
	{"handshake/unknown-version", bad, "The server refuses an unknown protocol version.", "newer clients cannot connect", "answer with the newest version that the server supports"},
	{"handshake/echoed-version", warning, "The server accepts a protocol version that does not exist.", "newer clients expect features that the server lacks", "answer with the newest version that the server supports"},

	{"stdout/noise", bad, "The server writes lines to stdout that are not messages.", "some clients disconnect, others show an error for each line", "write logs to stderr"},
	{"stdout/newline", bad, "A message spans several lines.", "clients read each line as one message", "write JSON without line breaks"},
	{"stdout/batch", bad, "The server sends an array of messages.", "batches exist only in revision 2025-03-26; clients skip them or disconnect", "send each message on its own line"},
	{"stdout/bom", bad, "Output begins with a byte order mark.", "JSON parsers of most clients refuse it", "write UTF-8 without a byte order mark"},
	{"stdout/encoding", bad, "A message is not valid UTF-8.", "clients refuse the message or show wrong characters", "encode stdout as UTF-8"},
	{"stdout/long", bad, "A line is longer than 32 MiB.", "clients run out of memory or disconnect", "split the list into pages, or shorten the answer"},

	{"message/shape", bad, "A message is not valid JSON-RPC 2.0.", sdks + " skip such messages and wait for an answer until their timeout", `send "jsonrpc": "2.0" and either a result, or an error with an integer code and a message`},
	{"message/id", bad, "An answer does not carry the id of its request.", "clients wait for the answer until their timeout", "repeat the id of the request with its JSON type"},
	{"message/unexpected", warning, "The server sends an answer that no request asked for.", "clients log an error; some disconnect", "answer each request once, and no notifications"},
	{"message/early", warning, "The server sends requests or notifications before the handshake is complete.", "clients refuse or drop them", "wait for notifications/initialized"},

	{"capability/missing-method", bad, "The server declares a capability and refuses its method.", "clients that list at the start show an error or disconnect", "implement the method, or do not declare the capability"},
	{"capability/undeclared", bad, "The server has entries of a kind that it does not declare.", "clients do not ask for them, so users never see them", "declare the capability in the answer to initialize"},
	{"capability/shape", bad, "A capability is not an object.", sdks + " refuse the connection", "write capabilities as objects, such as {\"tools\": {}}"},
	{"capability/subscribe", warning, "The server declares subscriptions and refuses them.", "clients that follow resources show an error", "implement resources/subscribe, or do not declare subscribe"},
	{"capability/logging", warning, "The server declares logging and refuses logging/setLevel.", "clients that set the level show an error", "implement logging/setLevel, or do not declare logging"},
	{"capability/completions", warning, "The server declares completions and refuses completion/complete.", "clients show an error while the user types", "implement completion/complete, or do not declare completions"},
	{"capability/templates", note, "The server declares resources and has no resources/templates/list.", "some clients ask for templates and log an error", "answer with an empty list"},
	{"capability/unannounced", warning, "The server sends notifications of a capability that it does not declare.", "clients ignore them, so they keep old lists", "declare listChanged or logging"},

	{"answer/none", bad, "The server does not answer a request.", "clients wait until their timeout, 60 s with the official SDKs", "answer each request with a result or an error"},
	{"answer/crash", bad, "The process exits during a request, or soon after one.", "clients lose the server and all its calls", "answer unknown or wrong requests with an error"},
	{"answer/ping", bad, "The server does not answer ping with an empty result.", "clients that check connections disconnect", "answer ping with {}"},
	{"answer/unknown-method", warning, "An unknown method does not get the error -32601.", "clients use this error to detect what a server supports", "answer unknown methods with -32601"},
	{"answer/unknown-name", warning, "A request for an unknown name succeeds.", "models believe that a misspelled call worked", "answer with the error -32602, or a result with isError"},
	{"answer/invalid-params", warning, "A request without its required parameters succeeds.", "clients do not notice their mistake", "answer with the error -32602"},
	{"answer/read", warning, "A listed resource cannot be read.", "clients show an error for a resource that they list", "list only resources that can be read"},

	{"list/failed", bad, "A list cannot be fetched.", "clients show none of its entries", "answer with the list, or with an empty one"},
	{"list/shape", bad, "The answer to a list has the wrong shape.", sdks + " refuse the whole list", "send an array under the name of the kind"},
	{"list/cursor", bad, "nextCursor is not a usable text.", sdks + " refuse the whole list, or ask forever", "leave nextCursor out on the last page"},
	{"list/cursor-refused", bad, "The server refuses its own cursor.", "clients lose the rest of the list, or all of it", "accept each cursor until the list changes"},
	{"list/cursor-loop", bad, "A cursor leads to a page that was sent before.", "clients ask forever", "leave nextCursor out on the last page"},
	{"list/endless", bad, "The list has more pages or entries than clients fetch.", "clients stop in the middle or run out of memory", "send larger pages and fewer entries"},
	{"list/empty-page", warning, "An empty page has a cursor.", "some clients stop at an empty page", "leave nextCursor out, or fill the page"},
	{"list/duplicate", bad, "A list contains a name or URI twice.", "model APIs refuse requests with two tools of one name", "make names unique"},
	{"list/order", warning, "Two requests return the list in another order.", "the prompt cache of models misses, which costs time and money", "sort the list"},
	{"list/slow", warning, "A list takes long.", "clients start without these entries", "compute lists in advance"},

	{"definition/dropped", bad, "An entry has no usable name or URI, or is not an object.", sdks + " refuse the whole list", "send objects with a name, or a uri for resources"},
	{"definition/member", bad, "A member of a definition is null or has the wrong type.", sdks + " refuse the whole list", "leave optional members out instead of sending null"},
	{"schema/input", bad, "inputSchema is missing or not an object schema.", sdks + " refuse the whole list", `send {"type": "object"} at least`},
	{"schema/output", bad, "outputSchema is not an object schema, or does not compile.", sdks + " refuse the whole list or each result", `use type "object" at the top, and JSON Schema that validators accept`},
	{"schema/invalid", bad, "A schema is not valid JSON Schema.", "model APIs refuse the whole request", "check the schema with a validator"},
	{"schema/reference", bad, "A $ref cannot be resolved within the schema.", "clients fetch no other documents; model APIs refuse the whole request", "copy the schema into $defs, or inline it"},
	{"schema/required", bad, "A schema requires a name that is not among its properties.", "the Gemini API refuses the whole request", "add the property, or remove the name from required"},
	{"schema/model", warning, "A schema uses a form that some model APIs reject.", "each request that offers the tool fails there", "use the simpler form"},
	{"schema/output-unsure", warning, "outputSchema uses a form that validators of TypeScript clients may not compile.", "such clients refuse the whole list", "use a simpler pattern, or draft 2020-12"},

	{"name/long", bad, "A tool name has more than 64 characters.", "model APIs refuse the whole request", "use a short name"},
	{"name/prefixed", warning, "A tool name is too long with the prefix of a client.", "Claude Code adds mcp__SERVER__ and its requests fail; Cursor drops the tool", "use a shorter name"},
	{"name/characters", bad, "A tool name has characters outside of A-Z, a-z, 0-9, _ and -.", "model APIs refuse the whole request unless the client changes the name", "use letters, digits, _ and - only"},
	{"name/collision", bad, "Two tool names are equal after clients replaced characters.", "clients call the wrong tool or drop one", "make names differ in letters or digits"},
	{"name/listed", note, "Goblin lists a tool under a shortened name.", "clients of Goblin see this name", "use a short name of letters, digits, _ and -"},

	{"description/missing", warning, "A tool has no description.", "models choose tools by their descriptions", "describe what the tool does and when to use it"},
	{"description/prompt", note, "A prompt or one of its arguments has no description.", "users see only the name", "describe it in one sentence"},
	{"description/argument", note, "An argument has no description.", "models guess what to send", "describe the value, its format and an example"},
	{"description/long", warning, "A description is longer than a client shows.", "Claude Code cuts descriptions after 2048 characters", "put the important parts first, and shorten it"},
	{"annotation/missing", note, "A tool has neither readOnlyHint nor destructiveHint.", "clients ask the user before each call", "set readOnlyHint, and destructiveHint for tools that write"},
	{"annotation/contradiction", warning, "Annotations of a tool contradict each other.", "clients may skip the question before a dangerous call", "set destructiveHint only for tools that are not read-only"},

	{"size/tool", warning, "One definition takes many tokens.", "each request of the model pays for it", "shorten the description and the schema"},
	{"size/total", warning, "All tool definitions together take many tokens.", "each request of the model pays for them, and models choose worse", "offer fewer tools, or shorten their definitions"},
	{"size/tools", warning, "The server has more tools than a client accepts.", "the client drops tools", "offer fewer tools"},
	{"size/instructions", warning, "The instructions are longer than a client shows.", "Claude Code cuts instructions after 2048 bytes", "put the important parts first, and shorten them"},

	{"meta/reserved", warning, "A _meta key uses a prefix that is reserved for MCP.", "later revisions may give the key a meaning", "use a prefix of a domain that you own, such as com.example/"},
	{"meta/key", warning, "A _meta key does not follow the naming rules.", "clients may drop it", "use a name of letters, digits, -, _ and ., with an optional prefix such as com.example/"},

	{"exit/stdin", warning, "The process does not exit after its stdin is closed.", "clients with the official SDKs wait 2 s at each exit and then terminate it; others leave it running", "exit when stdin ends"},
	{"exit/signal", warning, "The process ignores SIGTERM.", "clients leave it running or kill it, so it cannot save its state", "exit on SIGTERM"},
	{"exit/code", note, "The process reports a failure at a normal exit.", "clients may show the server as crashed", "exit with code 0 when stdin ends"},
	{"exit/orphans", warning, "The process leaves child processes behind.", "leftover processes use memory and ports until the machine restarts", "stop child processes before the exit"},
}

func find(id string) *Rule {
	for i := range rules {
		if rules[i].ID == id {
			return &rules[i]
		}
	}
	panic("servercheck: unknown rule " + id)
}
