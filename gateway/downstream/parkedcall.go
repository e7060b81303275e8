package downstream

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/memlimit"
	"goblin/registry/rawjson"
)

// Methods that may be answered by input_required (2026-07-28, SEP-2322).
var parkableMethods = map[string]bool{"tools/call": true, "prompts/get": true, "resources/read": true}

const (
	// gatherDelay is the time for collecting concurrent queries into one answer.
	gatherDelay = 10 * time.Millisecond
	// parkTimeout limits a client's absence.
	parkTimeout = 15 * time.Minute
	// maxParked limits parked calls; the oldest call of the client with most is evicted.
	// maxParkedSession is the limit per session on a byte stream.
	maxParked        = 1024
	maxParkedSession = 256
)

var (
	errParked      = errors.New("answered by input_required")
	errParkEvicted = errors.New("the client did not return before its call was evicted")
	errParkExpired = errors.New("the client did not return with the requested input")
	// ErrNoRoom means that a session has too many or too large parked calls.
	ErrNoRoom = errors.New("too many calls wait for their client")
)

// parkedCall is a stateless request whose handler sends requests to the client. The client
// gets them as the answer to its own request. The handler waits until the client repeats
// that request with the results. If the client does not, the request's context ends.
type parkedCall struct {
	calls   *ParkedCalls
	request *Request // of the handler

	// current is the client's latest request; changed under mu.
	current atomic.Pointer[Request]

	mu          sync.Mutex
	clientWaits bool          // current is unanswered
	resumed     chan struct{} // closed when the client returns
	concluded   bool          // no more queries
	expired     bool
	scheduled   bool // park will be called
	openQueries []*query
	queryCount  int       // including answered ones
	token       []byte    // progress token of current, or nil
	ticket      ticket    // required from the client
	owner       parkOwner // guarded by calls.mu
	number      uint64    // guarded by calls.mu
	bytes       int64     // memory while the client is away; guarded by calls.mu
	reservation memlimit.Reservation
	timer       *time.Timer
}

type query struct {
	key   string
	input []byte           // as sent to the client
	done  chan queryResult // capacity one
}

type queryResult struct {
	answer []byte
	err    error
}

// current returns the client's latest request for the call of x, or x.
func (x *Request) current() *Request {
	if p := x.parked.Load(); p != nil {
		return p.current.Load()
	}
	return x
}

// CanAsk reports whether Ask can reach the client: always in a session, otherwise if the
// answer may be input_required.
func (x *Request) CanAsk() bool { return x.modern == nil || x.Outer().CanPark() }

// IsAway reports whether a parked request's client has not yet returned.
func (x *Request) IsAway() bool {
	p := x.parked.Load()
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.clientWaits
}

// Parker observes a parked request.
type Parker interface {
	// OnParked is called before each intermediate answer and must not block.
	OnParked(result []byte, edits []rawjson.Edit)
	// MayReturn reports whether the client may return now. Otherwise its request is
	// handled as a new one, which must be refused.
	MayReturn() bool
}

// ParkWith sets the Parker, before the first Ask.
func (x *Request) ParkWith(p Parker) { x.parker = p }

// ProgressToken returns the latest request's progress token, or nil. first is the token
// of x.
func (x *Request) ProgressToken(first []byte) []byte {
	p := x.parked.Load()
	if p == nil {
		return first
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.token
}

func progressToken(params []byte) []byte { return rawjson.Path(params, "_meta", "progressToken") }

func (x *Request) askStateless(ctx, scope context.Context, method string, params []byte) (jsonrpc.Reply, error) {
	p, err := x.parkedCall()
	if err != nil {
		return jsonrpc.Reply{}, err
	}
	q, err := p.ask(method, inputParams(params))
	if err != nil {
		return jsonrpc.Reply{}, err
	}
	select {
	case o := <-q.done:
		return jsonrpc.Reply{Result: o.answer}, o.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-scope.Done():
		err = context.Cause(scope)
	}
	p.cancelQuery(q)
	return jsonrpc.Reply{}, err
}

// parkedCall returns the request's parked call, creating it if necessary.
func (x *Request) parkedCall() (*parkedCall, error) {
	x.Context() // before the first answer, which must not end it
	x.mu.Lock()
	defer x.mu.Unlock()
	if p := x.parked.Load(); p != nil {
		return p, nil
	}
	if x.concluded || x.done.Load() || !parkableMethods[x.method] {
		return nil, ErrAnswered
	}
	p := &parkedCall{calls: x.session.opt.Parked, request: x, clientWaits: true, token: progressToken(x.Params())}
	p.current.Store(x)
	x.parked.Store(p)
	x.session.parkedHandlers.Add(1)
	x.session.parkedCount.Add(1)
	return p, nil
}

func (p *parkedCall) ask(method string, params []byte) (*query, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.concluded || p.expired {
		return nil, ErrAnswered
	}
	p.queryCount++
	q := &query{"input-" + strconv.Itoa(p.queryCount), encodeInput(method, params), make(chan queryResult, 1)}
	p.openQueries = append(p.openQueries, q)
	p.scheduleLocked()
	return q, nil
}

// scheduleLocked parks the call soon if it has open queries.
func (p *parkedCall) scheduleLocked() {
	if p.clientWaits && !p.scheduled && len(p.openQueries) > 0 {
		p.scheduled = true
		time.AfterFunc(gatherDelay, p.park)
	}
}

func (p *parkedCall) cancelQuery(q *query) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.openQueries = slices.DeleteFunc(p.openQueries, func(other *query) bool { return other == q })
}

func (p *parkedCall) failQueriesLocked(why error) {
	for _, q := range p.openQueries {
		q.done <- queryResult{err: why}
	}
	p.openQueries = nil
}

// park answers the current request with the open queries.
func (p *parkedCall) park() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scheduled = false
	at := p.current.Load()
	if len(p.openQueries) == 0 || !p.clientWaits || at.answered() {
		return
	}
	state, evicted, ok := p.calls.add(p, at)
	if evicted != nil {
		go evicted.expire(errParkEvicted)
	}
	if !ok {
		p.failQueriesLocked(ErrNoRoom)
		return
	}
	p.clientWaits, p.resumed = false, make(chan struct{})
	if p.timer == nil {
		p.timer = time.AfterFunc(p.calls.limit, func() { p.expire(errParkExpired) })
	} else {
		p.timer.Reset(p.calls.limit)
	}
	inputs := []byte("{}")
	for _, q := range p.openQueries {
		inputs = rawjson.SetMember(inputs, q.key, q.input)
	}
	result := encodeInputRequired(inputs, state)
	edits := at.Envelope(result, nil, nil)
	if p.request.parker != nil {
		p.request.parker.OnParked(result, edits)
	}
	frame := jsonrpc.OneLine(jsonrpc.ResultFrame(at.id, result, edits...))
	at.end(errParked, func() { at.out.answer(frame, 0, nil, at.predecessors) })
	at.removeInFlight()
}

func encodeInput(method string, params []byte) []byte {
	return rawjson.SetMember(rawjson.Object("method", method), "params", params)
}

func encodeInputRequired(inputs []byte, state string) []byte {
	result := append([]byte(`{"resultType":"input_required","inputRequests":`), inputs...)
	result = append(result, `,"requestState":`...)
	return append(rawjson.AppendString(result, state), '}')
}

const maxInputs = 64

// InputRequired returns a result that asks a stateless client for inputs, which are
// params of method. The client then sends its request as a new one.
func (x *Request) InputRequired(method string, inputs [][]byte) []byte {
	all := []byte("{}")
	for i, params := range inputs[:min(len(inputs), maxInputs)] {
		all = rawjson.SetMember(all, "input-"+strconv.Itoa(i+1), encodeInput(method, inputParams(params)))
	}
	return encodeInputRequired(all, x.session.opt.Parked.encodeState(ticket{}, x))
}

// inputParams removes members that only work in sessions.
func inputParams(params []byte) []byte {
	return rawjson.Filter(params, func(k rawjson.Key, v []byte) ([]byte, bool) {
		switch {
		case k.Is("elicitationId"), k.Is("task"):
			return nil, false
		case k.Is("_meta") && rawjson.IsObject(v):
			v = rawjson.RemoveMember(v, "progressToken")
			return v, len(v) > len("{}")
		}
		return v, true
	})
}

// expire cancels the call if its client is away.
func (p *parkedCall) expire(why error) {
	p.mu.Lock()
	late := !p.clientWaits
	if late {
		p.expired = true
		p.failQueriesLocked(why)
	}
	p.mu.Unlock()
	if late {
		p.calls.remove(p)
		p.request.cancel(why)
	}
}

// conclude fails the open queries and returns the request for an answer of size bytes. It
// waits for the client, and returns nil if it does not return.
func (p *parkedCall) conclude(size int) *Request {
	p.mu.Lock()
	p.concluded = true
	p.failQueriesLocked(ErrAnswered)
	present, back := p.clientWaits, p.resumed
	p.mu.Unlock()
	if !present {
		if !p.calls.grow(p, size) {
			p.expire(errParkEvicted)
		}
		select {
		case <-back:
		case <-p.request.ctx.Done():
			return nil
		}
	}
	return p.current.Load()
}

// finish removes a call after its handler, and returns its latest request.
func (p *parkedCall) finish() *Request {
	p.mu.Lock()
	p.concluded, p.expired = true, true
	p.failQueriesLocked(ErrAnswered)
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	p.calls.remove(p)
	return p.current.Load()
}

type requestState struct {
	isOwn bool
	raw   []byte // of a server
	err   error  // why Goblin's own state is invalid
}

// resume makes x the current request of the parked call in its state. It returns false if
// x is a new request.
func (x *Request) resume() bool {
	if !parkableMethods[x.method] {
		return false
	}
	state := rawjson.Get(x.params, "requestState")
	if !x.session.opt.Parked.isOwnState(state) {
		x.state = &requestState{raw: state}
		return false
	}
	x.state = &requestState{isOwn: true}
	if rawjson.Params(x.method).Check(x.params) != nil {
		return false // the handler reports the error
	}
	p, ticket, err := x.session.opt.Parked.find(x, state)
	x.state.err = err
	if p == nil {
		return false
	}
	if p.request.parker != nil && !p.request.parker.MayReturn() {
		x.state.err = ErrForeignState
		return false
	}
	if !p.resume(x, ticket) {
		x.state.err = stateError("was already used")
		return false
	}
	return true
}

// resume makes x current and passes its answers on. It returns false for an outdated
// ticket.
func (p *parkedCall) resume(x *Request, t ticket) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.clientWaits || p.expired || p.ticket != t {
		return false
	}
	x.mu.Lock()
	x.ctx, x.cancel = p.request.ctx, p.request.cancel
	over, cause := x.done.Load(), x.cause
	x.mu.Unlock()
	p.current.Store(x)
	p.clientWaits, p.token = true, progressToken(x.Params())
	p.timer.Stop()
	close(p.resumed)
	answers := rawjson.Get(x.params, "inputResponses")
	p.openQueries = slices.DeleteFunc(p.openQueries, func(q *query) bool {
		a := rawjson.Get(answers, q.key)
		if !rawjson.IsObject(a) {
			return false // ask again
		}
		q.done <- queryResult{answer: a}
		return true
	})
	p.scheduleLocked()
	if over { // already cancelled
		p.request.cancel(cause)
	}
	return true
}

// State is the state that a stateless client returned for a server.
type State struct {
	Answers []byte // may be nil
	Raw     []byte // may be nil
	IsOwn   bool   // Goblin's state, not a server's
}

// State returns the state in the request. It fails for an invalid state of Goblin.
func (x *Request) State() (State, error) {
	switch {
	case x.modern == nil || x.outer != nil || !parkableMethods[x.method]:
		return State{}, nil
	case x.state != nil && x.state.isOwn:
		return State{IsOwn: true}, x.state.err
	}
	s := State{Answers: rawjson.Get(x.params, "inputResponses")}
	if x.state != nil {
		s.Raw = x.state.raw
	}
	return s, nil
}

// CanPark reports whether the request may be answered by input_required.
func (x *Request) CanPark() bool { return x.modern != nil && parkableMethods[x.method] }
