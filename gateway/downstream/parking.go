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

// parkable are the requests that may be answered by a demand for input
// (2026-07-28, SEP-2322).
var parkable = map[string]bool{"tools/call": true, "prompts/get": true, "resources/read": true}

const (
	// collectTime is how long questions of one call are gathered, so that
	// those asked side by side reach the client together.
	collectTime = 10 * time.Millisecond
	// parkLimit is how long a call waits for its client to come back.
	parkLimit = 15 * time.Minute
	// maxParked bounds the calls that wait for their clients; beyond it the oldest
	// of whoever has most makes room. maxParkedSession is for one session on a byte
	// stream.
	maxParked        = 1024
	maxParkedSession = 256
)

var (
	errParked      = errors.New("answered by a demand for input")
	errParkOusted  = errors.New("the client did not come back before there was no room for its call any more")
	errParkExpired = errors.New("the client did not come back with what was asked for")
	// ErrNoRoom means that too many calls of the session wait for their client, or too
	// large ones.
	ErrNoRoom = errors.New("too many calls wait for their client")
)

// parked is a stateless request that asks its client while it is handled. Nothing
// can be sent to such a client: its request is answered by what there is to ask, and
// the handler goes on when the client comes back with that. A client that stays
// away ends the request's context.
type parked struct {
	lot *ParkedCalls
	x   *Request // that the handler has

	// at is the request that waits for the answer now, or did last; changed under mu.
	at atomic.Pointer[Request]

	mu        sync.Mutex
	present   bool          // at waits
	back      chan struct{} // closed when the client is present again
	concluded bool          // the handler has its answer: nothing more is asked
	left      bool          // nobody can come back
	gathering bool          // park is about to be called
	open      []*query
	queries   int       // queries so far
	token     []byte    // the progress token of at, nil for none
	ticket    ticket    // by which the client comes back
	owner     parkOwner // guarded by lot.mu
	number    uint64    // counts up; guarded by lot.mu
	bytes     int64     // what it takes while its client is away; guarded by lot.mu
	room      memlimit.Reservation
	timer     *time.Timer
}

// query is something that a client is asked.
type query struct {
	key   string
	input []byte       // as the client gets it
	done  chan outcome // capacity one
}

// outcome is an answer, or why there is none.
type outcome struct {
	answer []byte
	err    error
}

// now is the request that waits for the answer to x now, or did last.
func (x *Request) now() *Request {
	if p := x.parked.Load(); p != nil {
		return p.at.Load()
	}
	return x
}

// CanAsk reports whether the client can be asked by Request: in a session always, of
// stateless requests those that may be answered by a demand for input.
func (x *Request) CanAsk() bool { return x.modern == nil || x.Outer().CanPark() }

// IsAway reports whether the client has not come back for the answer.
func (x *Request) IsAway() bool {
	p := x.parked.Load()
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.present
}

// Parker is called by the handler of a request that is parked.
type Parker interface {
	// OnParked is called before each answer that is a demand for input, with that
	// answer. It must not block.
	OnParked(result []byte, edits []rawjson.Edit)
	// MayReturn reports whether the client may come back now. If not, its request is
	// handled as a new one, which has to be refused, and the first stays parked.
	MayReturn() bool
}

// ParkWith makes p the Parker of a request. The handler may call it before it asks
// anything.
func (x *Request) ParkWith(p Parker) { x.parker = p }

// ProgressToken is the progress token of the request that waits now, nil for none; first is
// that of x itself.
func (x *Request) ProgressToken(first []byte) []byte {
	p := x.parked.Load()
	if p == nil {
		return first
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.token
}

func tokenOf(params []byte) []byte { return rawjson.Path(params, "_meta", "progressToken") }

// consult asks a stateless client: see [Request.Ask].
func (x *Request) consult(ctx, scope context.Context, method string, params []byte) (jsonrpc.Reply, error) {
	p, err := x.parking()
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
	p.withdraw(q)
	return jsonrpc.Reply{}, err
}

// parking makes a request one that can be parked.
func (x *Request) parking() (*parked, error) {
	x.Context() // made before the first answer, which must not end it
	x.mu.Lock()
	defer x.mu.Unlock()
	if p := x.parked.Load(); p != nil {
		return p, nil
	}
	if x.concluded || x.over.Load() || !parkable[x.method] {
		return nil, ErrAnswered
	}
	p := &parked{lot: x.session.opt.Parked, x: x, present: true, token: tokenOf(x.Params())}
	p.at.Store(x)
	x.parked.Store(p)
	x.session.away.Add(1)
	x.session.held.Add(1)
	return p, nil
}

func (p *parked) ask(method string, params []byte) (*query, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.concluded || p.left {
		return nil, ErrAnswered
	}
	p.queries++
	q := &query{"input-" + strconv.Itoa(p.queries), input(method, params), make(chan outcome, 1)}
	p.open = append(p.open, q)
	p.gatherLocked()
	return q, nil
}

// gatherLocked parks the call soon, if there is anything to ask.
func (p *parked) gatherLocked() {
	if p.present && !p.gathering && len(p.open) > 0 {
		p.gathering = true
		time.AfterFunc(collectTime, p.park)
	}
}

// withdraw takes a question back.
func (p *parked) withdraw(q *query) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = slices.DeleteFunc(p.open, func(other *query) bool { return other == q })
}

// giveUpLocked leaves all questions without an answer.
func (p *parked) giveUpLocked(why error) {
	for _, q := range p.open {
		q.done <- outcome{err: why}
	}
	p.open = nil
}

// park answers the request that waits by what there is to ask.
func (p *parked) park() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gathering = false
	at := p.at.Load()
	if len(p.open) == 0 || !p.present || at.answered() {
		return
	}
	state, ousted, ok := p.lot.keep(p, at)
	if ousted != nil {
		go ousted.leave(errParkOusted)
	}
	if !ok {
		p.giveUpLocked(ErrNoRoom)
		return
	}
	p.present, p.back = false, make(chan struct{})
	if p.timer == nil {
		p.timer = time.AfterFunc(p.lot.limit, func() { p.leave(errParkExpired) })
	} else {
		p.timer.Reset(p.lot.limit)
	}
	inputs := []byte("{}")
	for _, q := range p.open {
		inputs = rawjson.SetMember(inputs, q.key, q.input)
	}
	result := inputRequired(inputs, state)
	edits := at.Envelope(result, nil, nil)
	if p.x.parker != nil {
		p.x.parker.OnParked(result, edits)
	}
	frame := jsonrpc.OneLine(jsonrpc.ResultFrame(at.id, result, edits...))
	at.end(errParked, func() { at.out.answer(frame, 0, nil, at.behind) })
	at.rest()
}

// input is a question as a client gets it.
func input(method string, params []byte) []byte {
	return rawjson.SetMember(rawjson.Object("method", method), "params", params)
}

func inputRequired(inputs []byte, state string) []byte {
	result := append([]byte(`{"resultType":"input_required","inputRequests":`), inputs...)
	result = append(result, `,"requestState":`...)
	return append(rawjson.AppendString(result, state), '}')
}

// maxInputs bounds what [Request.InputRequired] demands of a client.
const maxInputs = 64

// InputRequired is the result that asks a stateless client for all of inputs, the params
// of requests of that method, and to send its request again as a new one then.
func (x *Request) InputRequired(method string, inputs [][]byte) []byte {
	all := []byte("{}")
	for i, params := range inputs[:min(len(inputs), maxInputs)] {
		all = rawjson.SetMember(all, "input-"+strconv.Itoa(i+1), input(method, inputParams(params)))
	}
	return inputRequired(all, x.session.opt.Parked.state(ticket{}, x))
}

// inputParams leaves out of a question what only sessions know: ids of
// elicitations, tasks, and progress that nobody could report.
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

// leave ends a call that no client has come back for.
func (p *parked) leave(why error) {
	p.mu.Lock()
	late := !p.present
	if late {
		p.left = true
		p.giveUpLocked(why)
	}
	p.mu.Unlock()
	if late {
		p.lot.drop(p)
		p.x.cancel(why)
	}
}

// conclude ends the questions, and returns the request that the answer, of so many
// bytes, goes to. It waits for the client; nil if that stays away.
func (p *parked) conclude(size int) *Request {
	p.mu.Lock()
	p.concluded = true
	p.giveUpLocked(ErrAnswered)
	present, back := p.present, p.back
	p.mu.Unlock()
	if !present {
		if !p.lot.grow(p, size) {
			p.leave(errParkOusted)
		}
		select {
		case <-back:
		case <-p.x.ctx.Done():
			return nil
		}
	}
	return p.at.Load()
}

// finish forgets a call whose handler has returned, and returns the request that
// waited for it last.
func (p *parked) finish() *Request {
	p.mu.Lock()
	p.concluded, p.left = true, true
	p.giveUpLocked(ErrAnswered)
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	p.lot.drop(p)
	return p.at.Load()
}

// returned is the state that a stateless request brings.
type returned struct {
	ours    bool
	theirs  []byte // a server's, raw
	refused error  // why one of ours is no good
}

// join makes a stateless request that brings a state of ours the one that waits for
// the call which the state names. It reports false for all others: they are handled
// as new ones.
func (x *Request) join() bool {
	if !parkable[x.method] {
		return false
	}
	state := rawjson.Get(x.params, "requestState")
	if !x.session.opt.Parked.mine(state) {
		x.state = &returned{theirs: state}
		return false
	}
	x.state = &returned{ours: true}
	if rawjson.Params(x.method).Check(x.params) != nil {
		return false // the handler says what is wrong with them
	}
	p, ticket, err := x.session.opt.Parked.find(x, state)
	x.state.refused = err
	if p == nil {
		return false
	}
	if p.x.parker != nil && !p.x.parker.MayReturn() {
		x.state.refused = ErrForeignState
		return false
	}
	if !p.take(x, ticket) {
		x.state.refused = stateError("was used already")
		return false
	}
	return true
}

// take lets x wait for the call from now on, with the answers that it brings.
// It reports false when the ticket is not the latest.
func (p *parked) take(x *Request, t ticket) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.present || p.left || p.ticket != t {
		return false
	}
	x.mu.Lock()
	x.ctx, x.cancel = p.x.ctx, p.x.cancel
	over, cause := x.over.Load(), x.cause
	x.mu.Unlock()
	p.at.Store(x)
	p.present, p.token = true, tokenOf(x.Params())
	p.timer.Stop()
	close(p.back)
	answers := rawjson.Get(x.params, "inputResponses")
	p.open = slices.DeleteFunc(p.open, func(q *query) bool {
		a := rawjson.Get(answers, q.key)
		if !rawjson.IsObject(a) {
			return false // asked again
		}
		q.done <- outcome{answer: a}
		return true
	})
	p.gatherLocked()
	if over { // withdrawn already
		p.x.cancel(cause)
	}
	return true
}

// State came back from a stateless client for the server whose question it answers.
type State struct {
	Answers []byte // to the questions, raw; nil for none
	Raw     []byte // the server's own state, raw; nil for none
	IsOwn   bool   // the state was one of ours, and there is nothing for the server
}

// State is an error when the state was one of ours, but is not good any more.
func (x *Request) State() (State, error) {
	switch {
	case x.modern == nil || x.outer != nil || !parkable[x.method]:
		return State{}, nil
	case x.state != nil && x.state.ours:
		return State{IsOwn: true}, x.state.refused
	}
	s := State{Answers: rawjson.Get(x.params, "inputResponses")}
	if x.state != nil {
		s.Raw = x.state.theirs
	}
	return s, nil
}

// CanPark reports whether the request is a stateless one that may be answered by a
// demand for input.
func (x *Request) CanPark() bool { return x.modern != nil && parkable[x.method] }
