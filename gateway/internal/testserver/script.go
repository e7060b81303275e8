package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// script defines the behavior of a fake server. Raw members are sent unchanged.
type script struct {
	Name         string          // serverInfo.name, and the start of default answers
	Control      string          // Unix socket of the test
	Log          string          // file for received messages, one per line
	Version      json.RawMessage // protocolVersion of the answer; default: the client's
	Capabilities json.RawMessage // default: derived from the lists
	Instructions string
	Tools        []json.RawMessage
	Prompts      []json.RawMessage
	Resources    []json.RawMessage
	Templates    []json.RawMessage
	Skills       []json.RawMessage
	Folders      map[string][]json.RawMessage // contents of folders, by URI
	Hints        map[string]json.RawMessage   // additional members of results about skills, such as ttlMs
	Generate     map[string]int               // number of additional "tools", "resources", …
	PageSize     int                          // 0 is one page
	Reads        map[string]json.RawMessage   // by URI: a text, a contents array or a whole result
	Calls        map[string]json.RawMessage   // by tool: a text or a whole result
	Gets         map[string]json.RawMessage   // by prompt: a text or a whole result
	On           map[string][]*action
	Tasks        map[string]*tasking // tools that run as tasks: on the actions "task NAME", after "create NAME"
	ErrorNull    bool                // results also have the member "error": null
	Around       [][]byte            // lines instead of every answer, with "$answer" in them
	Serial       bool                // a message is handled before the next one is read
	IgnoreTerm   bool
	IgnoreEOF    bool
	ExitCode     int // after the end of the input
	IgnoreCancel bool
	SSE          bool     // HTTP: always answer as an event stream
	Stateless    bool     // HTTP: no session ids
	Era          string   // "": up to 2025-11-25; "modern": only 2026-07-28; "dual": both; "either": like "dual", but refuses initialize after server/discover; "discreet": like "dual", but lists only 2026-07-28; "mute": like "", but ignores server/discover
	DropURIs     []string // modern: never acknowledged
	NoStream     bool     // HTTP: refuse GET
}

// tasking defines how a tool runs as a task.
type tasking struct {
	Required bool
	Poll     int // pollInterval in ms
}

// action is one step. Do is its kind; the other members are arguments.
//
//	delay MS            | wait NAME (until release NAME) | release NAME
//	result RESULT       | error ERROR | text TEXT: answer the request
//	echo | env | answers: answer with the params, the environment, or the
//	                      replies to the requests made so far
//	count               : answer with the pid and the number of uses
//	reply               : send the notifications in the params' member "notes",
//	                      then answer with "reply", an object with "result" or
//	                      "error", or its JSON as a text; both unchanged
//	big BYTES           : answer with a text of that size
//	hang                : never answer
//	crash CODE          | deaf (stop reading) | closeout (close stdout)
//	write TEXT          : TEXT as a line of stdout, N times
//	stderr TEXT         : TEXT as a line of stderr, N times
//	raw TEXT            : TEXT unchanged, without a newline, N times
//	answer TEXT         : TEXT as the frame that answers the request
//	notify METHOD PARAMS: N times; in PARAMS, "$n" is the repetition
//	progress N          : N progress messages with the token of the request
//	request METHOD PARAMS: send a request to the client, wait for the reply
//	requests ACTIONS    : the same for several requests at once
//	later N             : modern: answer N times that it is not ready
//	task TEXT           : set the status of the action's task
//	add KIND ENTRY | remove KIND NAME | set KIND ENTRIES
//	on KEY ACTIONS      : set the actions for KEY
//	grandchild          : start a child that ignores signals and holds the pipes
//	sync                : nothing
//	forget              : HTTP: end all sessions
//	hangup              : HTTP: end all GET streams; modern: end all listens
//	status CODE         : HTTP: answer with that status, HEADERS and TEXT
//
// The TEXT of write, stderr, raw and answer may contain variables. "$id" is the request's
// id, "$next" the number after its cursor, "$n" the repetition, "$count" the number of
// uses. "$x" is BYTES bytes. "$args" are the arguments of the call and "$token" its
// progress token, or null. DATA replaces TEXT and need not be UTF-8.
type action struct {
	Do      string
	Ms      int
	N       int
	Bytes   int
	Code    int
	Name    string
	Kind    string
	Key     string
	Text    string
	Data    []byte
	Method  string
	Params  json.RawMessage
	Result  json.RawMessage
	Error   json.RawMessage
	Entry   json.RawMessage
	Entries []json.RawMessage
	Actions []*action
	Headers map[string]string

	Starts int // only in the first n processes of this script
	After  int // not in the first n processes
	Times  int // only the first n times in this process
	used   int
	ID     int64 // of a command of the test
}

func load(path string) (*script, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the script: %w", err)
	}
	var sc script
	if err := json.Unmarshal(text, &sc); err != nil {
		return nil, fmt.Errorf("script %s: %w", path, err)
	}
	if sc.On == nil {
		sc.On = map[string][]*action{}
	}
	for kind, n := range sc.Generate {
		list := sc.list(kind)
		if list == nil {
			return nil, fmt.Errorf("script %s: cannot generate %q", path, kind)
		}
		for i := range n {
			*list = append(*list, generated(kind, i))
		}
	}
	return &sc, nil
}

func (sc *script) list(kind string) *[]json.RawMessage {
	switch kind {
	case "tools":
		return &sc.Tools
	case "prompts":
		return &sc.Prompts
	case "resources":
		return &sc.Resources
	case "templates":
		return &sc.Templates
	case "skills":
		return &sc.Skills
	}
	return nil
}

func generated(kind string, i int) json.RawMessage {
	switch kind {
	case "resources":
		return fmt.Appendf(nil, `{"uri":"gen:///item/%06d","name":"item %d","mimeType":"text/plain"}`, i, i)
	case "templates":
		return fmt.Appendf(nil, `{"uriTemplate":"gen:///t%06d/{id}","name":"template %d"}`, i, i)
	case "tools":
		return fmt.Appendf(nil, `{"name":"tool_%06d","inputSchema":{"type":"object"}}`, i)
	}
	return fmt.Appendf(nil, `{"name":"%s_%06d"}`, strings.TrimSuffix(kind, "s"), i)
}

// capabilities returns the capabilities for the script's lists.
func (sc *script) capabilities() json.RawMessage {
	if sc.Capabilities != nil {
		return sc.Capabilities
	}
	caps := map[string]any{"logging": map[string]any{}, "completions": map[string]any{}}
	changes := map[string]any{"listChanged": true}
	if sc.Tools != nil {
		caps["tools"] = changes
	}
	if sc.Tasks != nil {
		caps["tasks"] = json.RawMessage(`{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`)
		caps["extensions"] = json.RawMessage(`{"io.modelcontextprotocol/tasks":{}}`)
	}
	if sc.Skills != nil {
		caps["extensions"] = map[string]any{"io.modelcontextprotocol/skills": map[string]any{"directoryRead": sc.Folders != nil}}
	}
	if sc.Prompts != nil {
		caps["prompts"] = changes
	}
	if sc.Resources != nil || sc.Templates != nil {
		caps["resources"] = map[string]any{"listChanged": true, "subscribe": true}
	}
	return marshal(caps)
}

// marshal encodes values that cannot fail, without HTML escapes.
func marshal(v any) json.RawMessage {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return json.RawMessage(strings.TrimSuffix(b.String(), "\n"))
}
