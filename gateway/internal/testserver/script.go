package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// script is how one fake server behaves. Every raw member is sent as it stands
// in the file.
type script struct {
	Name         string          // serverInfo.name, and the start of default answers
	Control      string          // Unix socket of the test
	Log          string          // file that gets every received message as a line
	Version      json.RawMessage // protocolVersion of the answer; default: the client's
	Capabilities json.RawMessage // default: what the lists below suggest
	Instructions string
	Tools        []json.RawMessage
	Prompts      []json.RawMessage
	Resources    []json.RawMessage
	Templates    []json.RawMessage
	Skills       []json.RawMessage
	Folders      map[string][]json.RawMessage // by URI of a folder: what is in it
	Hints        map[string]json.RawMessage   // members of results about skills besides, for example ttlMs
	Generate     map[string]int               // so many entries more of "tools", "resources", …
	PageSize     int                          // 0: everything in one page
	Reads        map[string]json.RawMessage   // by URI: a text, a contents array or a whole result
	Calls        map[string]json.RawMessage   // by tool: a text or a whole result
	Gets         map[string]json.RawMessage   // by prompt: a text or a whole result
	On           map[string][]*action
	Tasks        map[string]*tasking // tools that run as tasks: on the actions "task NAME", after "create NAME"
	ErrorNull    bool                // results have the member "error": null beside them
	Around       [][]byte            // the lines in the place of every answer, with "$answer" in them
	Serial       bool                // a message is handled before the next one is read
	IgnoreTerm   bool
	IgnoreEOF    bool
	IgnoreCancel bool
	SSE          bool     // HTTP: always answer as an event stream
	Stateless    bool     // HTTP: no session ids
	Era          string   // "": up to 2025-11-25; "modern": 2026-07-28 alone; "dual": both; "either": as "dual", but a process that was asked server/discover takes no initialize; "discreet": as "dual", but names 2026-07-28 alone; "mute": as "", but ignores server/discover
	DropURIs     []string // modern: never acknowledged
	NoStream     bool     // HTTP: GET is refused
}

// tasking is how a tool runs as a task.
type tasking struct {
	Required bool
	Poll     int // pollInterval in ms
}

// action is one step. Do says which; the other members are its arguments.
//
//	delay MS            | wait NAME (until release NAME) | release NAME
//	result RESULT       | error ERROR | text TEXT: answer the request
//	echo | env | answers: answer with the params, the environment, or the
//	                      replies to the requests made so far
//	count               : answer with the pid and how often this process did so
//	reply               : send the notifications of the params' member "notes",
//	                      then answer with "reply", an object that holds
//	                      "result" or "error", or its JSON as a text; both as
//	                      they stand
//	big BYTES           : answer with a text of that size
//	hang                : never answer
//	crash CODE          | deaf (stop reading) | closeout (close stdout)
//	write TEXT          : TEXT as a line of stdout, N times
//	stderr TEXT         : TEXT as a line of stderr, N times
//	raw TEXT            : TEXT as it stands, without a line's end, N times
//	answer TEXT         : TEXT as the frame that answers the request
//	notify METHOD PARAMS: N times; in PARAMS, "$n" is the number of the time
//	progress N          : N progress messages with the token of the request
//	request METHOD PARAMS: ask the client, wait for the reply
//	requests ACTIONS    : the same for several requests at once
//	later N             : modern: answer N times that it is not ready
//	task TEXT           : the status of the task that the actions work for
//	add KIND ENTRY | remove KIND NAME | set KIND ENTRIES
//	on KEY ACTIONS      : set the actions for KEY
//	grandchild          : start a child that ignores signals and holds the pipes
//	sync                : nothing
//	forget              : HTTP: end all sessions
//	hangup              : HTTP: end all GET streams; modern: end all listens
//	status CODE         : HTTP: answer with that status, HEADERS and TEXT
//
// In the TEXT of write, stderr, raw and answer, "$id" is the request's id, "$next"
// the number after its cursor, "$n" the number of the time, "$count" how often this
// process used it, and "$x" so many BYTES. "$args" are the arguments of the call and "$token"
// its progress token, or null. DATA in its place need not be UTF-8.
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

	Starts int // only in the first so many processes of this script
	After  int // not in the first so many processes
	Times  int // only the first so many times in this process
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

// capabilities declares what the script has lists for.
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
