package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// act performs the actions in order until one finishes the exchange.
func (s *server) act(x *exchange, acts []*action) {
	for _, a := range acts {
		if x.over {
			return
		}
		if s.due(a) {
			s.do(x, a)
		}
	}
}

// due counts the uses of an action and reports whether it still applies.
func (s *server) due(a *action) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.used++
	return (a.Starts == 0 || s.start <= a.Starts) && s.start > a.After && (a.Times == 0 || a.used <= a.Times)
}

func (s *server) do(x *exchange, a *action) {
	switch a.Do {
	case "result":
		s.succeed(x, a.Result)
	case "error":
		s.fail(x, a.Error)
	case "text":
		s.succeed(x, toolText(a.Text))
	case "answer":
		s.finish(x, s.text(x, a, 0))
	case "echo":
		s.succeed(x, toolText(string(x.params)))
	case "count":
		s.succeed(x, toolText(fmt.Sprintf("%d %d", os.Getpid(), s.counted.Add(1))))
	case "reply":
		s.verbatim(x)
	case "env":
		s.succeed(x, toolText(string(marshal(os.Environ()))))
	case "answers":
		s.succeed(x, toolText(string(marshal(x.answers))))
	case "big":
		s.succeed(x, toolText(strings.Repeat("x", a.Bytes)))
	case "status":
		if x.status != nil {
			x.over = true
			x.status(a)
		}
	case "delay", "wait", "hang", "progress", "request", "requests", "later":
		s.take(x, a)
	case "task":
		s.setStatus(x, a)
	case "notify", "write", "stderr", "raw":
		s.say(x, a)
	case "add", "remove", "set", "on", "release":
		s.change(a)
	default:
		s.break_(a)
	}
}

// verbatim answers with the reply in the request itself, unchanged. So a test can get any
// answer without a script.
func (s *server) verbatim(x *exchange) {
	var p struct {
		Reply json.RawMessage
		Notes []struct {
			Method string
			Params json.RawMessage
		}
	}
	err := json.Unmarshal(x.params, &p)
	var text string
	if json.Unmarshal(p.Reply, &text) == nil { // a text, because clients may sort the members of an object
		p.Reply = json.RawMessage(text)
	}
	if err != nil || len(p.Reply) == 0 || p.Reply[0] != '{' {
		s.fail(x, []byte(`{"code":-32602,"message":"no reply in the params"}`))
		return
	}
	token := progressToken(x.params)
	for _, n := range p.Notes {
		params := strings.Replace(string(n.Params), `"$token"`, string(token), 1)
		x.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s}`, n.Method, params))
	}
	s.finish(x, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s`, x.id, p.Reply[1:]))
}

// take performs an action that may block. If the request is cancelled, it stops without
// an answer.
func (s *server) take(x *exchange, a *action) {
	switch a.Do {
	case "delay":
		s.pause(x, time.After(time.Duration(a.Ms)*time.Millisecond), nil)
	case "wait":
		s.tell(event{Ev: "wait", Name: a.Name})
		s.pause(x, nil, s.gate(a.Name))
	case "hang":
		s.tell(event{Ev: "wait", Name: "hang"})
		s.pause(x, nil, nil)
	case "progress":
		s.progress(x, a)
	case "request":
		if x.job != nil && s.Era == "modern" {
			s.demand(x, a)
			return
		}
		if x.modern {
			s.require(x, []*action{a})
			return
		}
		s.await(x, a, s.ask(x, a))
	case "requests":
		if x.modern {
			s.require(x, a.Actions)
			return
		}
		var replies []<-chan json.RawMessage
		for _, each := range a.Actions {
			replies = append(replies, s.ask(x, each))
		}
		for i, reply := range replies {
			s.await(x, a.Actions[i], reply)
		}
	case "later":
		s.later(x, a)
	}
}

func (s *server) pause(x *exchange, timer <-chan time.Time, gate <-chan struct{}) {
	select {
	case <-timer:
	case <-gate:
	case <-x.cancelled:
		x.over = true
		s.tell(event{Ev: "gone", Name: x.key})
	}
}

func (s *server) gate(name string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gates[name] == nil {
		s.gates[name] = make(chan struct{})
	}
	return s.gates[name]
}

func progressToken(params json.RawMessage) json.RawMessage {
	var p struct {
		Meta struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(params, &p)
	return p.Meta.Token
}

func (s *server) progress(x *exchange, a *action) {
	token := progressToken(x.params)
	if token == nil {
		return
	}
	for i := range a.N {
		x.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":%d}}`,
			token, i+1, a.N))
		if a.Ms > 0 {
			s.pause(x, time.After(time.Duration(a.Ms)*time.Millisecond), nil)
		}
	}
}

func (s *server) ask(x *exchange, a *action) <-chan json.RawMessage {
	ch := make(chan json.RawMessage, 1)
	s.mu.Lock()
	s.lastAsk++
	id := strconv.Quote("ask-" + strconv.Itoa(s.lastAsk))
	s.asked[id] = ch
	s.mu.Unlock()
	x.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, a.Method, orObject(a.Params)))
	return ch
}

// await waits for the reply to a request. It records an error as {"error":…}.
func (s *server) await(x *exchange, a *action, ch <-chan json.RawMessage) {
	select {
	case reply := <-ch:
		x.answers = append(x.answers, reply)
		s.tell(event{Ev: "reply", Name: a.Method, Msg: reply})
	case <-x.cancelled:
		x.over = true
	}
}

func orObject(params json.RawMessage) json.RawMessage {
	if params == nil {
		return json.RawMessage(`{}`)
	}
	return params
}

// say sends or prints a message N times; 0 is once.
func (s *server) say(x *exchange, a *action) {
	for i := range max(1, a.N) {
		switch a.Do {
		case "notify":
			params := strings.ReplaceAll(string(orObject(a.Params)), "$n", strconv.Itoa(i))
			if (s.Era == "modern" || x.modern || s.dual() && announces(a.Method)) && !s.tagged(x, a.Method, json.RawMessage(params)) {
				continue
			}
			x.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s}`, a.Method, params))
		case "write":
			x.send(s.text(x, a, i))
		case "stderr":
			_, _ = os.Stderr.Write(append(s.text(x, a, i), '\n'))
		case "raw":
			if x.raw(s.text(x, a, i)) != nil {
				return
			}
		}
	}
}

func (s *server) text(x *exchange, a *action, n int) []byte {
	text := a.Text + string(a.Data)
	if !strings.Contains(text, "$") {
		return []byte(text)
	}
	if strings.Contains(text, "$count") {
		text = strings.ReplaceAll(text, "$count", strconv.FormatInt(s.counted.Add(1), 10))
	}
	var p struct {
		Cursor    string
		Arguments json.RawMessage
	}
	_ = json.Unmarshal(x.params, &p)
	page, _ := strconv.Atoi(p.Cursor)
	return []byte(strings.NewReplacer(
		"$id", string(x.id), "$next", strconv.Itoa(page+1), "$n", strconv.Itoa(n), "$x", strings.Repeat("x", a.Bytes),
		"$args", orNull(p.Arguments), "$token", orNull(progressToken(x.params)),
	).Replace(text))
}

func orNull(raw json.RawMessage) string { return cmp.Or(string(raw), "null") }

func (s *server) change(a *action) {
	if a.Do == "release" {
		close(s.gate(a.Name))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch a.Do {
	case "add":
		list := s.list(a.Kind)
		*list = append(*list, a.Entry)
	case "set":
		*s.list(a.Kind) = a.Entries
	case "remove":
		list := s.list(a.Kind)
		*list = slices.DeleteFunc(*list, func(entry json.RawMessage) bool { return named(entry, a.Name) })
	case "on":
		s.On[a.Key] = a.Actions
	}
}

func named(entry json.RawMessage, name string) bool {
	var e struct {
		Name     string
		URI      string `json:"uri"`
		Template string `json:"uriTemplate"`
	}
	return json.Unmarshal(entry, &e) == nil && (e.Name == name || e.URI == name || e.Template == name)
}

func (s *server) break_(a *action) {
	switch a.Do {
	case "sync":
	case "crash":
		if a.Text != "" {
			fmt.Fprintln(os.Stderr, a.Text)
		}
		os.Exit(a.Code)
	case "deaf":
		s.deaf.Store(true)
	case "closeout":
		_ = os.Stdout.Close()
	case "grandchild":
		cmd := exec.Command(os.Args[0], "-sleep", s.Control)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		err := cmd.Start()
		if err == nil {
			err = s.noteGrandchild(cmd.Process.Pid)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "testserver: grandchild:", err)
		}
	case "forget":
		s.sessions.forget()
	case "hangup":
		s.sessions.hangup()
		s.unlisten()
	default:
		fmt.Fprintln(os.Stderr, "testserver: unknown action", a.Do)
		os.Exit(3)
	}
}
