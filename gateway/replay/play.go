package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
	"goblin/registry/recording"
)

// playNew plays a call from its start. It plays it as a task if the client wants one but
// the recorded server made none.
func (s *session) playNew(ctx context.Context, x *exchange, c *call) {
	if x.method == callTool && rawjson.Get(x.params, "task") != nil && !s.createdTask(c) {
		s.startTask(x, c)
		return
	}
	s.play(ctx, x, c, 0)
}

// play performs the steps of a call from one on, answers, and performs the events up to
// the next call.
func (s *session) play(ctx context.Context, x *exchange, c *call, from int) {
	for i := from; i < len(c.steps); i++ {
		step := &c.steps[i]
		if !s.sleep(ctx, step.wait) {
			return
		}
		if step.kind == serverRequest && x.modern {
			s.park(x, c, i)
			return
		}
		s.perform(ctx, x, step)
	}
	if !c.usable() {
		s.playUnanswered(ctx, x, c)
		return
	}
	if !s.sleep(ctx, c.wait) {
		return
	}
	s.sendAnswer(x, c)
	s.Server.mu.Lock()
	again := c.played
	c.played = true
	s.Server.mu.Unlock()
	if !again && len(c.after) > 0 {
		s.running.Go(func() { s.performAll(s.ctx, c.after) })
	}
}

func (s *session) sendAnswer(x *exchange, c *call) {
	text, err := s.text(c.answer)
	switch {
	case err != nil:
		s.fail(x, c, fmt.Sprintf("the answer cannot be read: %v", err))
	case c.isError && rawjson.IsObject(text):
		s.out.Send(jsonrpc.OneLine(jsonrpc.ErrorFrame(x.id, text)))
	default:
		s.answer(x, text, nil)
	}
}

// text returns a body with the client's own texts instead of placeholders.
func (s *session) text(r bodyRef) ([]byte, error) {
	text, err := s.store.get(r)
	if err != nil || len(text) == 0 {
		return text, err
	}
	s.Server.mu.Lock()
	defer s.Server.mu.Unlock()
	if text, err = s.secrets.restore(text); err != nil {
		return nil, err
	}
	return slices.Clone(text), nil // frames are edited in place
}

// playUnanswered plays a call whose recording has no answer. A cancelled one waits for
// the client to cancel it again, as long as it did in the recording.
func (s *session) playUnanswered(ctx context.Context, x *exchange, c *call) {
	if !c.wasCancelled() {
		s.fail(x, c, "the recording ends before the answer")
		return
	}
	if s.sleep(ctx, c.took) {
		s.fail(x, c, "the client cancelled it in the recording, so there is no answer")
	}
}

// fail reports a call that cannot be replayed.
func (s *session) fail(x *exchange, c *call, reason string) {
	text := fmt.Sprintf("%s: recorded request #%d of server %q: %s", Miss, c.number, s.Name, reason)
	s.o.Log.Error("request cannot be replayed", "method", x.method, "err", text)
	s.answer(x, nil, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: text, Data: rawjson.Object("code", Miss, "server", s.Name)})
}

func (s *session) performAll(ctx context.Context, steps []step) {
	for i := range steps {
		if !s.sleep(ctx, steps[i].wait) {
			return
		}
		s.perform(ctx, nil, &steps[i])
	}
}

// perform performs a step of a call, or one between calls if x is nil.
func (s *session) perform(ctx context.Context, x *exchange, step *step) {
	switch step.kind {
	case notification:
		params, err := s.text(step.params)
		switch {
		case err != nil:
			s.o.Log.Warn("recorded notification skipped", "method", step.method, "err", err)
		case step.method == progressMethod:
			s.progress(x, params)
		default:
			s.notify(step.method, params)
		}
	case serverRequest:
		s.askRecorded(ctx, step)
	case listChange:
		s.changeList(step.change)
	case newLists:
		s.replaceLists(step.lists)
	}
}

const progressMethod = "notifications/progress"

// progress sends progress with the token of this request.
func (s *session) progress(x *exchange, params []byte) {
	if x != nil && x.token != nil && rawjson.IsObject(params) {
		s.out.Send(jsonrpc.OneLine(jsonrpc.NotificationFrame(progressMethod, rawjson.SetMember(params, "progressToken", x.token))))
	}
}

// askRecorded sends a recorded request to the client. A different answer is logged: what
// follows may not fit.
func (s *session) askRecorded(ctx context.Context, step *step) {
	params, err := s.text(step.params)
	if err != nil {
		s.o.Log.Warn("recorded request skipped", "method", step.method, "err", err)
		return
	}
	if len(params) == 0 {
		params = nil
	}
	result, fault := s.ask(ctx, step.method, params)
	if fault != nil {
		result = fault.Object()
	}
	if ctx.Err() == nil {
		s.compareAnswer(step, result)
	}
}

func (s *session) compareAnswer(step *step, got []byte) {
	recorded, err := s.store.get(step.answer)
	if err != nil || step.method == "roots/list" {
		return
	}
	want, werr := decode(target{}, recorded, nil)
	have, herr := decode(target{}, got, nil)
	if werr != nil || herr != nil {
		return
	}
	s.Server.mu.Lock()
	work := maxWork
	c := newComparer(s.secrets, 1, &work)
	c.compare("", want, have)
	if work > 0 {
		s.secrets.add(c.found)
	}
	s.Server.mu.Unlock()
	switch {
	case work == 0:
		s.o.Log.Warn("client's answer is too large to compare with the recorded one", "method", step.method)
	case len(c.differences) > 0:
		s.o.Log.Warn("client's answer differs from the recorded one, which the next messages belong to", "method", step.method, "difference", c.differences[0].String())
	}
}

// notify sends a notification, on the streams that want it if the server is stateless.
func (s *session) notify(method string, params []byte) {
	if len(params) == 0 {
		params = nil
	}
	if s.modern() && isListened(method) {
		s.notifyListens(method, params)
		return
	}
	s.out.Send(jsonrpc.OneLine(jsonrpc.NotificationFrame(method, params)))
}

func (s *session) changeList(change *recording.Line) {
	s.mu.Lock()
	s.current = withChange(s.current, change)
	s.mu.Unlock()
	s.notifyChange(change.List)
}

// withChange returns a copy of lists after a change.
func withChange(lists map[string][]json.RawMessage, change *recording.Line) map[string][]json.RawMessage {
	changed := maps.Clone(lists)
	if changed == nil {
		changed = map[string][]json.RawMessage{}
	}
	changed[change.List] = change.Change(lists[change.List])
	return changed
}

func (s *session) notifyChange(list string) {
	switch list {
	case "templates":
		list = "resources"
	case "skills":
		return // clients ask again
	}
	if !strings.Contains("tools prompts resources", list) {
		return
	}
	s.notify("notifications/"+list+"/list_changed", nil)
}

// replaceLists follows a reconnection of the recorded server.
func (s *session) replaceLists(lists map[string][]json.RawMessage) {
	var changed []string
	s.mu.Lock()
	for _, l := range listMethods {
		same := slices.EqualFunc(s.current[l.list], lists[l.list], func(a, b json.RawMessage) bool { return string(a) == string(b) })
		if !same {
			changed = append(changed, l.list)
		}
	}
	s.current = lists
	s.mu.Unlock()
	slices.Sort(changed)
	for _, list := range changed {
		s.notifyChange(list)
	}
}
