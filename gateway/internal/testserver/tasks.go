package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Tasks of both kinds: clients of 2025-11-25 request them; otherwise the server creates one for a call
// if the client declares the extension
// io.modelcontextprotocol/tasks.

// jobs are the tasks of the process. changed is signalled when one changes.
type jobs struct {
	sync.Mutex
	changed *sync.Cond
	all     []*job
}

func newJobs() *jobs {
	j := &jobs{}
	j.changed = sync.NewCond(j)
	return j
}

// job is one task, guarded by the lock of jobs.
type job struct {
	*exchange        // does the work
	id        string // task-1, task-2, …
	key       string // of the session
	status    string
	ttl       any       // as requested
	poll      int       // in ms; 0 is none
	outcome   []byte    // members of a response: "result":… or "error":…
	inputs    obj       // modern: unanswered input requests
	results   []*origin // waiting tasks/result requests
	queue     [][]byte  // requests that wait for a tasks/result
}

type obj = map[string]json.RawMessage

// tasked returns false for requests without tasks.
func (s *server) tasked(x *exchange) bool {
	switch x.method {
	case "tools/call":
		return s.callTask(x)
	case "tasks/list":
		s.jobs.Lock()
		states := []obj{}
		for _, j := range s.jobs.all {
			if j.key == x.session {
				states = append(states, s.state(j))
			}
		}
		s.jobs.Unlock()
		s.succeed(x, marshal(map[string]any{"tasks": states}))
		return true
	case "tasks/get", "tasks/result", "tasks/cancel", "tasks/update":
		s.act(x, s.actions(x.method, ""))
		if !x.over {
			s.oneTask(x)
		}
		return true
	}
	return false
}

func (s *server) callTask(x *exchange) bool {
	how := s.Tasks[x.key]
	var p struct {
		Task *struct{ TTL any }
	}
	_ = json.Unmarshal(x.params, &p)
	var caps struct{ Extensions obj }
	_ = json.Unmarshal(meta(x.params, "clientCapabilities"), &caps)
	able := p.Task != nil
	if x.modern {
		able = caps.Extensions[metaKey+"tasks"] != nil
	}
	switch {
	case how == nil:
		return false
	case !able && how.Required && x.modern:
		s.fail(x, fmt.Appendf(nil, `{"code":-32021,"message":"tasks","data":{"requiredCapabilities":{"extensions":{"%stasks":{}}}}}`, metaKey))
		return true
	case !able && how.Required:
		s.fail(x, json.RawMessage(`{"code":-32601,"message":"only as a task"}`))
		return true
	case !able:
		return false
	}
	j := &job{key: x.session, status: "working", poll: how.Poll, inputs: obj{}}
	if p.Task != nil {
		j.ttl = p.Task.TTL
	}
	work := &exchange{id: x.id, method: x.method, key: x.key, params: x.params, cancelled: make(chan struct{}), job: j}
	work.send = func(frame []byte) { s.jobSends(j, frame) }
	work.origin.answer = func(frame []byte) { s.jobEnds(j, frame) }
	j.exchange = work
	s.jobs.Lock()
	s.jobs.all = append(s.jobs.all, j)
	j.id = fmt.Sprintf("task-%d", len(s.jobs.all))
	state := s.state(j)
	s.jobs.Unlock()
	s.tell(event{Ev: "task", Name: j.id})
	s.act(x, s.actions("create", x.key))
	if x.modern {
		state["resultType"] = json.RawMessage(`"task"`)
		s.succeed(x, marshal(state))
	} else {
		s.succeed(x, marshal(map[string]any{"task": state, "_meta": map[string]any{"vendor": 1}}))
	}
	go func() {
		s.act(work, s.actions("task", x.key))
		if !work.over {
			result, _ := s.result(work)
			s.succeed(work, result)
		}
	}()
	return true
}

// state requires the lock of jobs.
func (s *server) state(j *job) obj {
	o := obj{
		"taskId": marshal(j.id), "status": marshal(j.status),
		"createdAt": json.RawMessage(`"2025-11-25T10:30:00Z"`), "lastUpdatedAt": json.RawMessage(`"2025-11-25T10:30:00Z"`),
		"vendor": json.RawMessage(`1.50`),
	}
	ttl, poll := "ttl", "pollInterval"
	if s.Era == "modern" {
		ttl, poll = "ttlMs", "pollIntervalMs"
		var outcome obj
		_ = json.Unmarshal([]byte("{"+string(j.outcome)+"}"), &outcome)
		maps.Copy(o, outcome)
		if len(j.inputs) > 0 {
			o["inputRequests"] = marshal(j.inputs)
		}
	}
	o[ttl] = marshal(j.ttl)
	if j.poll > 0 {
		o[poll] = marshal(j.poll)
	}
	return o
}

func (s *server) oneTask(x *exchange) {
	var p struct {
		ID        string `json:"taskId"`
		Responses obj    `json:"inputResponses"`
	}
	_ = json.Unmarshal(x.params, &p)
	s.jobs.Lock()
	i := slices.IndexFunc(s.jobs.all, func(j *job) bool { return j.id == p.ID && j.key == x.session })
	if i < 0 {
		s.jobs.Unlock()
		s.fail(x, json.RawMessage(`{"code":-32602,"message":"no such task"}`))
		return
	}
	j := s.jobs.all[i]
	switch x.method {
	case "tasks/cancel":
		if over(j) {
			s.jobs.Unlock()
			if x.modern {
				s.succeed(x, json.RawMessage(`{}`))
				return
			}
			s.fail(x, json.RawMessage(`{"code":-32602,"message":"it is over"}`))
			return
		}
		j.status, j.outcome = "cancelled", []byte(`"error":{"code":-32000,"message":"cancelled"}`)
		close(j.cancelled)
	case "tasks/update":
		for k, v := range p.Responses {
			delete(j.inputs, k)
			j.answers = append(j.answers, v)
		}
	case "tasks/result":
		s.jobResult(x, j)
		return
	}
	s.jobs.changed.Broadcast()
	state := s.state(j)
	s.jobs.Unlock()
	if x.modern && x.method != "tasks/get" {
		state = obj{}
	}
	s.succeed(x, marshal(state))
}

func over(j *job) bool { return j.status != "working" && j.status != "input_required" }

// jobResult waits for the task and answers with its result. It requires the lock of jobs.
func (s *server) jobResult(x *exchange, j *job) {
	j.results = append(j.results, &x.origin)
	for _, frame := range j.queue {
		x.send(frame)
	}
	j.queue = nil
	go func() {
		<-x.cancelled
		s.jobs.Lock() // earlier checks are waiting now
		defer s.jobs.Unlock()
		s.jobs.changed.Broadcast()
	}()
	s.tell(event{Ev: "wait", Name: "result"})
	ended := func() bool {
		select {
		case <-x.cancelled:
			return true
		default:
			return false
		}
	}
	for !over(j) && !ended() {
		s.jobs.changed.Wait()
	}
	j.results = slices.DeleteFunc(j.results, func(o *origin) bool { return o == &x.origin })
	outcome := j.outcome
	s.jobs.Unlock()
	var m struct {
		Result, Error obj
	}
	_ = json.Unmarshal([]byte("{"+string(outcome)+"}"), &m)
	switch {
	case ended():
		s.tell(event{Ev: "gone", Name: "result"})
	case m.Error != nil:
		s.fail(x, marshal(m.Error))
	default:
		s.succeed(x, relate(marshal(m.Result), j))
	}
}

func relate(object json.RawMessage, j *job) json.RawMessage {
	var o, m obj
	_ = json.Unmarshal(object, &o)
	if o == nil {
		o = obj{}
	}
	_ = json.Unmarshal(o["_meta"], &m)
	if m == nil {
		m = obj{}
	}
	m[metaKey+"related-task"] = marshal(map[string]string{"taskId": j.id})
	o["_meta"] = marshal(m)
	return marshal(o)
}

// jobSends sends a task's message. Over HTTP it uses the stream of a tasks/result
// request; requests to the client wait for one.
func (s *server) jobSends(j *job, frame []byte) {
	var o obj
	_ = json.Unmarshal(frame, &o)
	if string(o["method"]) != `"notifications/tasks/status"` {
		o["params"] = relate(o["params"], j)
	}
	frame = marshal(o)
	s.jobs.Lock()
	defer s.jobs.Unlock()
	switch {
	case len(j.results) > 0:
		j.results[0].send(frame)
	case o["id"] != nil && j.key != "":
		j.queue = append(j.queue, frame)
	default:
		s.everybody(frame)
	}
}

func (s *server) jobEnds(j *job, frame []byte) {
	var o obj
	_ = json.Unmarshal(frame, &o)
	s.jobs.Lock()
	if !over(j) {
		j.status = "completed"
		j.outcome = append([]byte(`"result":`), o["result"]...)
		if o["error"] != nil {
			j.status, j.outcome = "failed", append([]byte(`"error":`), o["error"]...)
		}
	}
	s.jobs.Unlock()
	s.jobs.changed.Broadcast()
}

func (s *server) setStatus(x *exchange, a *action) {
	if x.job == nil {
		return
	}
	s.jobs.Lock()
	x.job.status = a.Text
	state := s.state(x.job)
	s.jobs.Unlock()
	x.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":%s}`, marshal(state)))
}

func (s *server) demand(x *exchange, a *action) {
	j := x.job
	s.jobs.Lock()
	defer s.jobs.Unlock()
	key := fmt.Sprintf("ask %d", len(x.answers))
	j.inputs[key] = marshal(map[string]any{"method": a.Method, "params": orObject(a.Params)})
	j.status = "input_required"
	for start := time.Now(); j.inputs[key] != nil && !over(j) && time.Since(start) < time.Hour; {
		s.jobs.changed.Wait()
	}
	if !over(j) {
		j.status = "working"
	}
}
