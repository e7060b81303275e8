//go:build agents && !windows

package agents

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// step is one action of the model: a call of the tool whose name ends with this.
type step struct {
	tool   string
	before func()         // runs once, before the model asks for the call
	args   func(turn) obj // arguments from the model's input; nil: none
	beside string         // calls a tool that isn't offered, with the prefix of this one
}

// model is a scripted model server. It speaks the interfaces for chat completions, for
// responses and of Gemini. A conversation with n tool results is at step n, so repeated
// requests get the same reply.
type model struct {
	t      *testing.T
	server *httptest.Server
	steps  []step

	replies atomic.Int64

	mu      sync.Mutex
	tools   []tool   // what the model was offered first
	texts   []string // the conversation before each step
	started map[int]bool
	strange []string // requests of an unknown interface
}

func newModel(t *testing.T, steps []step) *model {
	m := &model{t: t, steps: steps, started: map[int]bool{}}
	m.server = httptest.NewServer(m)
	t.Cleanup(m.server.Close)
	return m
}

// turn is a request to the model, independent of its interface.
type turn struct {
	tools   []tool
	results []string // tool results as JSON
	stream  bool
	json    bool // the agent wants JSON
}

// tool is a tool as an agent offers it. Some agents put a server's tools into a
// namespace.
type tool struct {
	Name      string
	Namespace string
	raw       json.RawMessage // its definition
}

func (t tool) full() string { return t.Namespace + t.Name }

// defined parses the definition of a tool.
func defined(raw json.RawMessage) (t tool) {
	decode(raw, &t)
	t.raw = raw
	return t
}

// reply is a text or a tool call.
type reply struct {
	id     string
	text   string
	call   tool
	args   string
	callID string // "" for a text
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the agent exited
	}
	var read func([]byte) turn
	var write func(http.ResponseWriter, turn, reply)
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/chat/completions"):
		read, write = readChat, writeChat
	case strings.HasSuffix(path, "/responses"):
		read, write = readResponses, writeResponses
	case strings.Contains(path, "enerateContent"):
		read, write = readGemini, writeGemini
	case strings.HasSuffix(path, ":countTokens"):
		_, _ = io.WriteString(w, `{"totalTokens":1}`)
		return
	default:
		m.mu.Lock()
		m.strange = append(m.strange, r.Method+" "+path)
		m.mu.Unlock()
		http.NotFound(w, r)
		return
	}
	u := read(body)
	u.stream = u.stream || strings.Contains(r.URL.Path, "stream")
	out := m.next(u, string(body))
	out.id = fmt.Sprint("reply_", m.replies.Add(1)) // agents merge messages with equal ids
	write(w, u, out)
}

// next returns the reply to a conversation. Agents also ask for titles and the like;
// those requests have no tools.
func (m *model) next(u turn, body string) reply {
	if len(u.tools) == 0 {
		if u.json {
			return reply{text: `{"next_speaker":"user","reasoning":"done"}`}
		}
		return reply{text: "A title"}
	}
	n := len(u.results)
	m.mu.Lock()
	if m.tools == nil {
		m.tools = u.tools
	}
	for len(m.texts) <= n {
		m.texts = append(m.texts, "")
	}
	m.texts[n] = body
	first := !m.started[n]
	m.started[n] = true
	m.mu.Unlock()
	if n >= len(m.steps) {
		return reply{text: "All is done."}
	}
	s := m.steps[n]
	if first && s.before != nil {
		s.before()
	}
	name := s.tool
	if s.beside != "" {
		name = s.beside
	}
	at := slices.IndexFunc(u.tools, func(t tool) bool { return strings.HasSuffix(t.Name, name) })
	if at < 0 {
		return reply{text: "There is no tool " + name}
	}
	call := u.tools[at]
	call.Name = strings.TrimSuffix(call.Name, name) + s.tool
	args := obj{}
	if s.args != nil {
		args = s.args(u)
	}
	text, _ := json.Marshal(args) // made of strings
	return reply{call: call, args: string(text), callID: fmt.Sprintf("call_%d", n)}
}

// after returns what the model was shown after a step, or "" if that step never came.
func (m *model) after(step int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if step+1 < len(m.texts) {
		return m.texts[step+1]
	}
	return ""
}

func decode(body []byte, into any) { _ = json.Unmarshal(body, into) } // a missing value fails a check later

func readChat(body []byte) (u turn) {
	var p struct {
		Stream   bool
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		Tools  []struct{ Function json.RawMessage }
		Format any `json:"response_format"`
	}
	decode(body, &p)
	for _, t := range p.Tools {
		u.tools = append(u.tools, defined(t.Function))
	}
	for _, m := range p.Messages {
		if m.Role == "tool" {
			u.results = append(u.results, string(m.Content))
		}
	}
	u.stream, u.json = p.Stream, p.Format != nil
	return u
}

func writeChat(w http.ResponseWriter, u turn, r reply) {
	message, reason := obj{"role": "assistant", "content": r.text}, "stop"
	if r.callID != "" {
		reason = "tool_calls"
		message = obj{"role": "assistant", "content": nil, "tool_calls": []obj{{
			"index": 0, "id": r.callID, "type": "function", "function": obj{"name": r.call.Name, "arguments": r.args},
		}}}
	}
	usage := obj{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
	if !u.stream {
		respond(w, obj{"id": r.id, "object": "chat.completion", "created": 1, "model": "scripted", "usage": usage, "choices": []obj{{
			"index": 0, "message": message, "finish_reason": reason,
		}}})
		return
	}
	chunk := func(choices ...obj) obj {
		return obj{"id": r.id, "object": "chat.completion.chunk", "created": 1, "model": "scripted", "choices": choices}
	}
	last := chunk([]obj{}...) // not null
	last["usage"] = usage
	events(w,
		chunk(obj{"index": 0, "delta": message, "finish_reason": nil}),
		chunk(obj{"index": 0, "delta": obj{}, "finish_reason": reason}),
		last)
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

func readResponses(body []byte) (u turn) {
	var p struct {
		Stream bool
		Input  []struct {
			Type   string
			Output json.RawMessage
		}
		Tools []json.RawMessage
	}
	decode(body, &p)
	for _, raw := range p.Tools {
		var of struct {
			Type  string
			Name  string
			Tools []json.RawMessage
		}
		decode(raw, &of)
		if of.Type == "function" {
			u.tools = append(u.tools, defined(raw))
		}
		for _, inner := range of.Tools {
			t := defined(inner)
			t.Namespace = of.Name
			u.tools = append(u.tools, t)
		}
	}
	for _, i := range p.Input {
		if i.Type == "function_call_output" {
			u.results = append(u.results, string(i.Output))
		}
	}
	u.stream = p.Stream
	return u
}

func writeResponses(w http.ResponseWriter, u turn, r reply) {
	item := obj{"type": "message", "id": "m" + r.id, "role": "assistant", "status": "completed", "content": []obj{{
		"type": "output_text", "text": r.text, "annotations": []obj{},
	}}}
	if r.callID != "" {
		item = obj{"type": "function_call", "id": "f" + r.id, "call_id": r.callID, "name": r.call.Name, "arguments": r.args, "status": "completed"}
		if r.call.Namespace != "" {
			item["namespace"] = r.call.Namespace
		}
	}
	response := obj{"id": r.id, "object": "response", "created_at": 1, "model": "scripted", "status": "completed", "output": []obj{item}, "usage": obj{
		"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
		"input_tokens_details": obj{"cached_tokens": 0}, "output_tokens_details": obj{"reasoning_tokens": 0},
	}}
	if !u.stream {
		respond(w, response)
		return
	}
	events(w,
		obj{"type": "response.created", "response": obj{"id": r.id, "object": "response", "created_at": 1, "model": "scripted", "status": "in_progress", "output": []obj{}}},
		obj{"type": "response.output_item.added", "output_index": 0, "item": item},
		obj{"type": "response.output_item.done", "output_index": 0, "item": item},
		obj{"type": "response.completed", "response": response})
}

func readGemini(body []byte) (u turn) {
	var p struct {
		Contents []struct {
			Parts []struct{ FunctionResponse json.RawMessage }
		}
		Tools            []struct{ FunctionDeclarations []json.RawMessage }
		GenerationConfig struct{ ResponseMimeType string }
	}
	decode(body, &p)
	for _, t := range p.Tools {
		for _, raw := range t.FunctionDeclarations {
			u.tools = append(u.tools, defined(raw))
		}
	}
	for _, c := range p.Contents {
		for _, part := range c.Parts {
			if part.FunctionResponse != nil {
				u.results = append(u.results, string(part.FunctionResponse))
			}
		}
	}
	u.json = p.GenerationConfig.ResponseMimeType == "application/json"
	return u
}

func writeGemini(w http.ResponseWriter, u turn, r reply) {
	part := obj{"text": r.text}
	if r.callID != "" {
		part = obj{"functionCall": obj{"name": r.call.Name, "args": json.RawMessage(r.args)}}
	}
	whole := obj{
		"candidates":    []obj{{"index": 0, "content": obj{"role": "model", "parts": []obj{part}}, "finishReason": "STOP"}},
		"usageMetadata": obj{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}, "modelVersion": "scripted",
	}
	if u.stream {
		events(w, whole)
		return
	}
	respond(w, whole)
}

type obj = map[string]any

func respond(w http.ResponseWriter, body obj) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // an agent that exited needs no reply
}

// events writes a stream of server-sent events, named by their type if they have one.
func events(w http.ResponseWriter, all ...obj) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range all {
		if name, ok := e["type"].(string); ok {
			_, _ = fmt.Fprintf(w, "event: %s\n", name)
		}
		text, _ := json.Marshal(e) // made of strings and numbers only
		_, _ = fmt.Fprintf(w, "data: %s\n\n", text)
	}
}
