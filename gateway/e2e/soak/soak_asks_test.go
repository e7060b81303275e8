//go:build soak

package soak

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"goblin/gateway/e2e"
)

// ask is a request and the requirements for its answer.
type ask struct {
	method string
	params e2e.Obj
	server string // that gets it; "" for Goblin itself
	token  bool   // with a progress token
	path   []any  // of want in the result
	want   string // unique to the request
	any    bool   // any result is valid
	prompt bool   // the server answers at once
}

func (a ask) String() string { return fmt.Sprintf("%s %.200s", a.method, e2e.Marshal(a.params)) }

// unique returns a value that no other request has.
func (s *soak) unique() string { return fmt.Sprintf("v%d", s.serial.Add(1)) }

// call returns a call of a tool whose answer repeats its arguments.
func (s *soak) call(server, tool string, more ...e2e.Obj) ask {
	args := e2e.Merge(e2e.Obj{"v": s.unique()}, more)
	return ask{
		method: "tools/call", server: server, params: e2e.Obj{"name": server + "_" + tool, "arguments": args},
		token: tool == "steps", prompt: tool == "echo", path: []any{"content", 0, "text"}, want: server + ":" + tool + ":" + string(e2e.Marshal(args)),
	}
}

func (s *soak) read(server string) ask {
	uri := "mem:///" + s.unique()
	return ask{
		method: "resources/read", server: server, params: e2e.Obj{"uri": e2e.In(server, uri)},
		path: []any{"contents", 0, "text"}, want: server + " " + uri,
	}
}

func (s *soak) prompt(server string) ask {
	args := e2e.Obj{"v": s.unique()}
	return ask{
		method: "prompts/get", server: server, params: e2e.Obj{"name": server + "/say", "arguments": args},
		path: []any{"messages", 0, "content", "text"}, want: server + ":say:" + string(e2e.Marshal(args)),
	}
}

func (s *soak) some(r *rand.Rand) string { return s.names[r.IntN(len(s.names))] }

// usual returns one of the frequent requests, without faults.
func (s *soak) usual(r *rand.Rand) ask {
	server := s.some(r)
	switch n := r.IntN(100); {
	case n < 45:
		return s.call(server, "echo")
	case n < 55:
		return s.call(server, "slow")
	case n < 60:
		return s.call(server, "echo", e2e.Obj{"pad": strings.Repeat("x", 1<<r.IntN(18))})
	case n < 65:
		return s.call(server, "steps")
	case n < 68:
		return s.call(server, "ask")
	case n < 78:
		return s.read(server)
	case n < 84:
		return s.prompt(server)
	case n < 90:
		kind := []string{"tools/list", "resources/list", "prompts/list", "resources/templates/list"}[r.IntN(4)]
		return ask{method: kind, params: e2e.Obj{}, any: true}
	case n < 93:
		return s.call(server, "updates")
	case n < 96:
		return s.call(server, "garbage")
	default:
		return s.call(server, "echo")
	}
}

// judge checks an answer and reports whether it was a result.
func (s *soak) judge(p *soakClient, f *flight, m e2e.Message) bool {
	a := f.ask
	took := time.Since(f.begun)
	if !m.Failed() {
		if got := e2e.Str(m.Result, a.path...); !a.any && got != a.want {
			s.wrong("%s: %s got the answer of another: %.300s", p.name, a, m.Result)
			return false
		}
		if a.server == calm && a.prompt && p.name != "stalled bridge" {
			s.took(took)
		}
		s.answered.Add(1)
		return true
	}
	var e e2e.RpcError
	_ = json.Unmarshal(m.Error, &e)
	lost := e.Code == -32603
	if m.Error == nil && a.method == "tools/call" {
		e, lost = e2e.RpcError{Message: e2e.Str(m.Result, "content", 0, "text"), Data: e2e.At(m.Result, "_meta", "goblin/error")}, true
	}
	code := e.Kind()
	documented := lost && slices.Contains([]string{"CONNECTION_ERROR", "REQUEST_TIMEOUT", "BAD_REPLY"}, code) &&
		e2e.Str(e.Data, "server") == a.server && strings.Contains(e.Message, a.server) ||
		slices.Contains([]string{"TOOL_NOT_FOUND", "PROMPT_NOT_FOUND", "RESOURCE_NOT_FOUND"}, code) ||
		code == "SESSION_REQUIRED" && a.server == "each" && p.web && p.modern
	switch {
	case a.server == calm || a.server == "":
		s.wrong("%s: %s of a healthy server failed after %v: %s", p.name, a, took, m.Raw)
	case !documented:
		s.wrong("%s: %s got an error that is not documented: %s", p.name, a, m.Raw)
	}
	s.count(a.server + " " + code)
	return false
}
