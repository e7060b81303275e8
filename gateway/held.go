package gateway

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// holdable are the requests that may be answered by a demand for input
// (2026-07-28, SEP-2322).
var holdable = map[string]bool{"tools/call": true, "prompts/get": true, "resources/read": true}

const (
	// collectTime is how long questions of one call are gathered, so that
	// those asked side by side reach the client together.
	collectTime = 10 * time.Millisecond
	// holdLimit is how long a call waits for its client to come back.
	holdLimit = 15 * time.Minute
)

// held is a stateless client's call at a server that asks while it works.
// Nothing can be asked of such a client: its request is answered by what the
// server wants to know, and goes on when the client comes back with that. In
// between the call is held: it has no slot, its timeout rests, and it ends
// with holdLimit.
type held struct {
	g       *Gateway
	session *downstream.Session
	flight  flight
	cancel  context.CancelCauseFunc
	news    chan struct{} // capacity one: a question was asked
	done    chan struct{} // closed when reply and err are set
	reply   jsonrpc.Reply
	err     error

	mu       sync.Mutex
	r        *request // that waits for the call, or did last
	attended bool     // r waits
	over     bool     // the call is, or nobody can come back for it
	open     []*question
	asked    int      // questions so far
	lacking  []string // a capability that the client did not declare, but was needed
	ticket   ticket   // by which the client comes back
	place    place
	timer    *time.Timer
}

// question is something that the server waits for.
type question struct {
	key, method string
	params      []byte
	answer      chan []byte // capacity one
	gone        chan struct{}
}

func (h *held) request() *request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.r
}

var (
	errHoldOusted  = errors.New("the client did not come back before there was no room for its call any more")
	errHoldExpired = errors.New("the client did not come back with what was asked for")
	errUnanswered  = jsonrpc.Errorf(jsonrpc.CodeInternal, "the client gave no answer")
)

// callHeld is call for a stateless client. parked says that the request was
// answered by what the server asks.
func (g *Gateway) callHeld(r *request, edits []rawjson.Edit) (reply jsonrpc.Reply, parked bool, err error) {
	h, own, foreign, err := g.resumed(r)
	switch {
	case err != nil:
		return reply, false, err
	case h != nil:
		return h.attend(r)
	}
	conn, release, err := g.slot(r)
	switch {
	case err != nil:
		return reply, false, err
	case conn.Info().Era == upstream.Modern:
		reply, parked, err = g.callModern(r, conn, release, edits, own)
		if err != nil || own || foreign || !g.screenMay(reply.Error) {
			return reply, parked, err
		}
		// Once more, as one that is held here, so that each question is put to
		// who can answer it.
		if conn, release, err = g.slot(r); err != nil {
			return reply, false, err
		}
	case foreign:
		release()
		return reply, false, errForeignState
	}
	return g.startHeld(r, conn, release, edits).attend(r)
}

var errForeignState = stateError("was not given for this request")

// resumed finds the call that a client comes back for; nil for one that begins
// anew. own says that the request brings a state of ours, foreign that it brings
// another.
func (g *Gateway) resumed(r *request) (h *held, own, foreign bool, err error) {
	state := rawjson.Get(r.Exchange.Params(), "requestState")
	if own = g.holds.mine(state); own {
		h, err = g.holds.resume(r, state)
	}
	return h, own, !own && state != nil && string(state) != "null", err
}

// newHeld makes a call that r waits for, and the context that it ends with.
func (g *Gateway) newHeld(r *request) (*held, context.Context) {
	ctx, cancel := context.WithCancelCause(r.Session().Context())
	r.token = rawjson.Path(r.Params(), "_meta", "progressToken")
	return &held{
		g: g, session: r.Session(), r: r, attended: true, cancel: cancel,
		news: make(chan struct{}, 1), done: make(chan struct{}),
	}, ctx
}

// startHeld sends a call that may outlive the request.
func (g *Gateway) startHeld(r *request, conn upstream.Conn, release func(), edits []rawjson.Edit) *held {
	h, ctx := g.newHeld(r)
	f := &h.flight
	f.held, f.release = h, release
	f.call.Context, f.call.Cause = ctx, f
	f.call.Method, f.call.Params, f.call.Edits = r.Method(), r.Params(), edits
	if r.token != nil {
		f.call.Token = rawjson.Replace(r.Params(), r.token, nil)
		f.call.Progress = h.progress
	}
	g.stampModern(r, conn, &f.call)
	if conn.Info().Era == upstream.Modern {
		f.call.Capabilities = g.relayable(r.Client().Capabilities, true)
	}
	g.flights.add(conn, f)
	g.work.Go(func() {
		reply, err := g.perform(r, conn, f)
		g.flights.remove(f, err == nil)
		f.land()
		h.finish(reply, err)
		h.cancel(nil)
	})
	return h
}

// progress goes to the request that waits now, by its own token.
func (h *held) progress(params []byte) {
	r, params := h.request(), unrelated(params)
	token, own := r.token, rawjson.Get(params, "progressToken")
	if token == nil || own == nil || len(token) > maxToken {
		return
	}
	r.Relay(r.server, "progress:"+string(token), "notifications/progress", params, rawjson.Replace(params, own, token))
	h.g.journal.Notification(registry.ToClient, r.Session(), r.server, "notifications/progress", r.name, params)
}

// finish ends the call. What it came to is kept for a client that comes back.
func (h *held) finish(reply jsonrpc.Reply, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reply, h.err = reply, err
	h.over = true
	if !h.attended {
		h.g.holds.grow(h, len(reply.Result)+len(reply.Error))
	}
	close(h.done)
	h.giveUp()
}

// giveUp leaves all questions without an answer. The lock is held.
func (h *held) giveUp() {
	for _, q := range h.open {
		close(q.gone)
	}
	h.open = nil
}

// attend waits, in the name of r, for the call's end or its questions.
func (h *held) attend(r *request) (reply jsonrpc.Reply, parked bool, err error) {
	var collected <-chan time.Time
	if h.asks() {
		collected = time.After(collectTime)
	}
	for {
		select {
		case <-h.done:
			h.g.holds.drop(h)
			return h.outcome(r)
		case <-h.news:
			if collected == nil {
				collected = time.After(collectTime)
			}
		case <-collected:
			collected = nil
			if h.park(r) {
				return reply, true, nil
			}
		case <-r.Context().Done():
			h.cancel(context.Cause(r.Context()))
			<-h.done
			h.g.holds.drop(h)
			return reply, false, context.Cause(r.Context())
		}
	}
}

func (h *held) asks() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.open) > 0
}

// outcome is what the call came to. One that failed for want of a capability
// says so.
func (h *held) outcome(r *request) (jsonrpc.Reply, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	failed := h.reply.Error != nil || string(rawjson.Get(h.reply.Result, "isError")) == "true"
	if h.err == nil && failed && h.lacking != nil {
		return jsonrpc.Reply{}, false, missingCapability(r.server, h.lacking)
	}
	return h.reply, false, h.err
}

// missingCapability is the error for a request that cannot be served without
// what its client did not declare (2026-07-28, SEP-2575).
func missingCapability(server string, path []string) *jsonrpc.Error {
	need := []byte("{}")
	for _, name := range slices.Backward(path) {
		need = rawjson.SetMember(emptyResult, name, need)
	}
	e := jsonrpc.Errorf(downstream.CodeMissingCapability, "Server '%s' needs a capability that the client did not declare: %s", server, path[len(path)-1])
	e.Data = rawjson.SetMember(emptyResult, "requiredCapabilities", need)
	return e
}

// park answers r by what the server asks. It reports false when there is
// nothing to ask any more, or no room to hold the call.
func (h *held) park(r *request) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.open) == 0 || h.over {
		return false
	}
	h.attended = false
	state, ousted, ok := h.g.holds.keep(h, r)
	if ousted != nil {
		h.g.work.Go(ousted.oust)
	}
	if !ok {
		h.attended = true
		h.g.log.Warn("Questions refused: too many calls wait for their client", "server", r.server, "limit", maxHeldSession)
		h.giveUp()
		return false
	}
	if h.timer == nil {
		h.timer = time.AfterFunc(h.g.holds.limit, h.expire)
	} else {
		h.timer.Reset(h.g.holds.limit)
	}
	inputs := []byte("{}")
	for _, q := range h.open {
		inputs = rawjson.SetMember(inputs, q.key, q.input())
	}
	r.parked = true
	r.reply(inputRequired(inputs, state))
	return true
}

// input is the question as a client gets it.
func (q *question) input() []byte {
	return rawjson.SetMember(rawjson.Object("method", q.method), "params", q.params)
}

func inputRequired(inputs []byte, state string) []byte {
	result := append([]byte(`{"resultType":"input_required","inputRequests":`), inputs...)
	result = append(result, `,"requestState":`...)
	return append(rawjson.AppendString(result, state), '}')
}

// expire ends a call that nobody came back for.
func (h *held) expire() { h.leave(errHoldExpired) }

// oust ends a call whose room is needed, unless its client has just come back.
func (h *held) oust() { h.leave(errHoldOusted) }

// leave ends a call that nobody has come back for.
func (h *held) leave(why error) {
	h.mu.Lock()
	late := !h.attended
	if late {
		h.over = true
		h.giveUp()
	}
	h.mu.Unlock()
	if late {
		h.g.holds.drop(h)
		h.cancel(why)
	}
}

// take lets r wait for the call from now on, with the answers that it brings.
// It reports false when the ticket is not the latest.
func (h *held) take(r *request, t ticket) bool {
	r.token = rawjson.Path(r.Params(), "_meta", "progressToken")
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.attended || h.ticket != t {
		return false
	}
	h.attended, h.r = true, r
	h.timer.Stop()
	answers := rawjson.Get(r.Exchange.Params(), "inputResponses")
	h.open = slices.DeleteFunc(h.open, func(q *question) bool {
		a := rawjson.Get(answers, q.key)
		if !rawjson.IsObject(a) {
			return false // asked again
		}
		q.answer <- a
		return true
	})
	return true
}

// ask puts a question; nil when nobody can answer any more.
func (h *held) ask(method string, params []byte) *question {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return nil
	}
	h.asked++
	q := &question{
		key: "input-" + strconv.Itoa(h.asked), method: method, params: params,
		answer: make(chan []byte, 1), gone: make(chan struct{}),
	}
	h.open = append(h.open, q)
	select {
	case h.news <- struct{}{}:
	default:
	}
	return q
}

// withdraw takes a question back.
func (h *held) withdraw(q *question) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = slices.DeleteFunc(h.open, func(other *question) bool { return other == q })
}

// hold puts a server's question to the stateless client whose call made it
// ask, and waits for the answer. h is the newest of the calls that may have.
func (g *Gateway) hold(ctx context.Context, q *inquiry, h *held) (*downstream.Session, []byte, *jsonrpc.Error) {
	if path := lacks(h.request(), q.capability, q.params); path != nil {
		session, result, fault := g.unable(ctx, q, able(h.request(), q.capability, q.params))
		if session == nil && fault != nil {
			h.mu.Lock()
			h.lacking = path
			h.mu.Unlock()
		}
		return session, result, fault
	}
	h.request().flight.asked.Store(true)
	defer rest(q.causes)()
	params := inputParams(q.params)
	for _, x := range slices.Backward(q.causes) {
		if x.held == nil {
			continue // of a kind that takes no questions
		}
		if answer, over := x.held.await(ctx, q.method, params); answer != nil {
			return h.session, answer, nil
		} else if !over {
			break
		}
		// That call had not asked: another one of this client's did.
	}
	result, fault := g.unanswered(q.capability)
	return h.session, result, fault
}

// await puts a question and waits for its answer; nil for none. over says that
// the call ended meanwhile by itself, so that it cannot be the one that asked.
func (h *held) await(ctx context.Context, method string, params []byte) (answer []byte, over bool) {
	q := h.ask(method, params)
	if q == nil {
		return nil, h.ended()
	}
	select {
	case answer := <-q.answer:
		return answer, false
	case <-q.gone:
		return nil, h.ended()
	case <-ctx.Done():
		h.withdraw(q)
		return nil, false
	}
}

// ended reports whether the call came to its end.
func (h *held) ended() bool {
	select {
	case <-h.done:
		return true
	default:
		return false
	}
}

// unanswered is what a server gets for a question that its client will not
// answer.
func (g *Gateway) unanswered(capability string) ([]byte, *jsonrpc.Error) {
	if capability == "elicitation" {
		return []byte(`{"action":"cancel"}`), nil
	}
	return nil, errUnanswered
}

// inputParams leaves out of a question what only sessions know: ids of
// elicitations, tasks, and progress that nobody could report.
func inputParams(params []byte) []byte {
	out := []byte{'{'}
	for k, v := range rawjson.Members(params) {
		switch {
		case k.Is("elicitationId"), k.Is("task"):
		case k.Is("_meta") && rawjson.IsObject(v):
			meta := []byte{'{'}
			for name, value := range rawjson.Members(v) {
				if !name.Is("progressToken") {
					meta = rawjson.AppendMember(meta, name, value)
				}
			}
			if len(meta) > 1 {
				out = rawjson.AppendMember(out, k, append(meta, '}'))
			}
		default:
			out = rawjson.AppendMember(out, k, v)
		}
	}
	return append(out, '}')
}

// demandURLs turns the error by which a server demands that URLs are opened
// first into a demand for input, as stateless clients know it. The client's
// next attempt is a call like the first.
func (g *Gateway) demandURLs(r *request, data []byte) error {
	if path := lacks(r, "elicitation", []byte(`{"mode":"url"}`)); path != nil {
		return missingCapability(r.server, []string{"elicitation", "url"})
	}
	inputs, n := []byte("{}"), 0
	for e := range rawjson.Elements(rawjson.Get(data, "elicitations")) {
		if rawjson.IsObject(e) && n < maxInputs {
			n++
			params := rawjson.SetMember(inputParams(e), "mode", []byte(`"url"`))
			q := question{method: "elicitation/create", params: params}
			inputs = rawjson.SetMember(inputs, "input-"+strconv.Itoa(n), q.input())
		}
	}
	if n == 0 {
		return &upstream.Error{Code: upstream.BadReply, Server: r.server, Reason: "it demands that a URL is opened, but names none"}
	}
	r.parked = true
	r.reply(inputRequired(inputs, g.holds.again(r)))
	return nil
}

// maxInputs bounds what one answer demands of a client.
const maxInputs = 64
