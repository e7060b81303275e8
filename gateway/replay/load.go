package replay

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/registry/recording"
)

const (
	// maxCalls is the number of requests and events per server that are replayed.
	maxCalls = 1_000_000
	// maxWait limits one wait of a replay.
	maxWait = 24 * time.Hour

	toClient = "client"
)

// ErrNoBodies is the error of a recording without params and answers.
var ErrNoBodies = errors.New("recorded without bodies, so it cannot be replayed; record again with \"bodies: true\"")

// stepKind is the kind of a message or change at its place in a recording.
type stepKind uint8

const (
	notification stepKind = iota
	serverRequest
	listChange // of one list
	newLists   // all lists, after a reconnection
)

// step is a message of the server, or a change of its lists. wait is the time since the
// previous step or the call's start, without the user's.
type step struct {
	kind   stepKind
	time   time.Time
	took   time.Duration
	wait   time.Duration
	method string
	params bodyRef
	answer bodyRef // of the client

	change *recording.Line
	lists  map[string][]json.RawMessage
}

// call is one recorded request to a server.
type call struct {
	number  uint64
	time    time.Time
	ended   time.Time
	took    time.Duration // without waiting for the user, the server's start and slots
	lead    time.Duration // before the server got it
	target  target
	params  bodyRef
	answer  bodyRef
	isError bool
	outcome string
	steps   []step // before the answer
	after   []step // until the next call
	wait    time.Duration
	played  bool // its after steps ran; guarded by Server.mu
}

// group is the calls with equal params, in recorded order.
type group struct {
	calls  []*call
	next   int
	hidden map[string]any // decoded params with placeholders, or nil
}

// targetCalls is the calls of one target.
type targetCalls struct {
	groups map[digest]*group
	hidden []*group
	calls  []*call
}

// Server is one server of a recording.
type Server struct {
	Name string
	// Problems describes what could not be read.
	Problems []string

	rules     *Rules
	store     store
	connected time.Time
	handshake json.RawMessage
	protocol  string
	noMeta    bool // the config does not forward `_meta`
	lists     map[string][]json.RawMessage
	initial   []step // before the first call
	targets   map[target]*targetCalls
	hidden    []target // with placeholders in the name

	mu      sync.Mutex
	secrets secrets // guarded by mu, like group.next and call.played
}

// loader reads the lines of a server.
type loader struct {
	*Server
	r        *recording.Reader
	calls    []*call
	children map[uint64][]step
	running  map[uint64]*call    // without an answer so far
	parked   map[string]openCall // calls that a stateless client continues, by requestState
	early    []*recording.Line   // requests that continue a call whose line may follow
	between  []step
	last     step // the last event between calls
	count    int
}

// Load reads a server's part of a recording: a file, or a folder. rules may be nil. The
// caller must call Close.
func Load(path, server string, rules *Rules) (*Server, error) {
	r, err := recording.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // it was only read
	l := &loader{
		Server: &Server{Name: server, rules: rules.of(server), targets: map[target]*targetCalls{}, secrets: secrets{}},
		r:      r, children: map[uint64][]step{}, running: map[uint64]*call{}, parked: map[string]openCall{},
	}
	for {
		line, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = l.add(line)
		}
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	for _, line := range l.early { // their calls are not in the recording
		if err := l.addCall(line); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	if l.handshake == nil {
		return nil, errors.Join(fmt.Errorf("server %q was never connected in %s", server, path), l.Close())
	}
	l.finish()
	return l.Server, nil
}

// Close removes temporary files.
func (s *Server) Close() error { return s.store.close() }

func (l *loader) add(line *recording.Line) error {
	if line.Type == recording.TypeRecording {
		if !line.Bodies {
			return fmt.Errorf("%s: %w", l.r.File(), ErrNoBodies)
		}
		forwards := rawjson.Path(line.Settings, "servers", l.Name, "forward_meta")
		l.noMeta = string(forwards) == "false"
		return nil
	}
	if line.Server != l.Name {
		return nil
	}
	if l.count++; l.count > maxCalls {
		if l.count == maxCalls+1 {
			l.Problems = append(l.Problems, fmt.Sprintf("only the first %d events are replayed", maxCalls))
		}
		return nil
	}
	switch line.Type {
	case recording.TypeServer:
		for _, list := range slices.Sorted(maps.Keys(line.Lists)) { // each step keeps its own lists
			line.Lists[list] = l.r.Keep(l.Name, fmt.Sprint(list, l.count), line.Lists[list])
		}
		l.addServer(line)
	case recording.TypeList:
		line.Added = l.r.Keep(l.Name, fmt.Sprint(line.List, l.count), line.Added)
		l.between = append(l.between, step{kind: listChange, time: line.Time, change: &recording.Line{List: line.List, Added: line.Added, Removed: line.Removed}})
	case recording.TypeNotification:
		return l.addNotification(line)
	case recording.TypeRequest, recording.TypeRunning:
		switch {
		case line.Direction != toClient && l.isEarly(line):
			l.early = append(l.early, line)
		case line.Direction != toClient:
			return l.addCall(line)
		case line.Type == recording.TypeRequest:
			return l.addServerRequest(line)
		}
	}
	return nil
}

func (l *loader) addServer(line *recording.Line) {
	switch {
	case len(line.Handshake) == 0 || !rawjson.IsObject(line.Handshake):
	case l.handshake == nil:
		l.handshake, l.lists, l.connected = line.Handshake, line.Lists, line.Time
		l.protocol = cmp.Or(rawjson.GetString(line.Handshake, "protocolVersion"), line.Protocol)
	default:
		l.between = append(l.between, step{kind: newLists, time: line.Time, lists: line.Lists})
	}
}

func (l *loader) addNotification(line *recording.Line) error {
	if line.Direction != toClient || isListChanged(line.Method) {
		return nil // list lines have these
	}
	params, err := l.store.add(l.r.File(), firstBody(line.Own, line.Sent, line.Params))
	if err != nil {
		return err
	}
	s := step{kind: notification, time: line.Time, method: line.Method, params: params}
	if line.Parent != 0 {
		l.children[line.Parent] = append(l.children[line.Parent], s)
		return nil
	}
	if l.last.method == s.method && l.last.time.Equal(s.time) {
		return nil // the same one for another client
	}
	l.last = s
	l.between = append(l.between, s)
	return nil
}

func isListChanged(method string) bool {
	switch method {
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed":
		return true
	}
	return method == "notifications/cancelled"
}

func firstBody(all ...*recording.Body) *recording.Body {
	for _, b := range all {
		if b != nil {
			return b
		}
	}
	return nil
}

func (l *loader) addServerRequest(line *recording.Line) error {
	params, err := l.store.add(l.r.File(), line.Params)
	if err != nil {
		return err
	}
	answer, err := l.store.add(l.r.File(), line.Answer)
	if err != nil {
		return err
	}
	s := step{kind: serverRequest, time: line.Time, took: millis(line.Took), method: line.Method, params: params, answer: answer}
	if line.Parent != 0 {
		l.children[line.Parent] = append(l.children[line.Parent], s)
	} else {
		l.between = append(l.between, s)
	}
	return nil
}

func (l *loader) addCall(line *recording.Line) error {
	if len(line.Rules) > 0 && !line.Answered && line.Type == recording.TypeRequest {
		delete(l.running, line.Number)
		return nil // a rule or the user answered instead of the server
	}
	rec := line.Record()
	name := cmp.Or(rec.Original, rec.Name)
	state := l.requestState(line)
	open, continued := l.parked[state]
	if !continued {
		open = openCall{start: line.Time, number: line.Number}
	}
	start := open.start
	params, err := l.serverParams(line, name, continued)
	if err != nil {
		l.problem("request %d: %v", line.Number, err)
		return nil
	}
	c := &call{
		number: line.Number, time: start, ended: line.Time.Add(rec.Duration), outcome: line.Outcome, isError: line.Code != 0,
		target: targetOf(line.Method, params), lead: rec.StartWait + rec.QueueWait,
	}
	c.took = max(0, rec.Duration-rec.UserWait-c.lead)
	if c.params, err = l.store.add(l.r.File(), &recording.Body{JSON: params}); err != nil {
		return err
	}
	if line.Type == recording.TypeRunning {
		l.running[c.number] = c
		return nil
	}
	delete(l.running, c.number)
	answer := line.Answer
	switch {
	case !line.Answered && c.wasCancelled():
		answer = nil // Goblin's note that it was cancelled
	case line.Answered && line.Own != nil:
		answer = line.Own
		if len(line.Rules) > 0 { // a rule may have replaced an error by a result, or the reverse
			c.isError = l.isErrorObject(answer)
		}
	}
	if c.answer, err = l.store.add(l.r.File(), answer); err != nil {
		return err
	}
	delete(l.parked, state)
	if next := l.parkedState(c); next != "" && !line.Answered {
		answer, _ := l.store.get(c.answer) // parkedState has read it
		open.steps, open.number, open.asked, open.requests = l.asked(open, line), line.Number, c.ended, rawjson.Get(answer, "inputRequests")
		l.parked[next] = open
		return l.continueCall(next)
	}
	c.steps = l.asked(open, line)
	for _, s := range l.children[line.Number] {
		if !s.time.Before(start) && !s.time.After(c.ended) { // numbers start again with each process
			c.steps = append(c.steps, s)
		}
	}
	delete(l.children, line.Number)
	l.calls = append(l.calls, c)
	return nil
}

// isEarly reports whether line continues a call whose line may follow. Lines are written
// when requests end, and a fast client may continue the call earlier.
func (l *loader) isEarly(line *recording.Line) bool {
	if line.Type != recording.TypeRequest || len(l.early) == maxEarly {
		return false
	}
	state := l.requestState(line)
	_, continued := l.parked[state]
	return state != "" && !continued
}

// continueCall adds the early request that continues the call parked as state.
func (l *loader) continueCall(state string) error {
	i := slices.IndexFunc(l.early, func(line *recording.Line) bool { return l.requestState(line) == state })
	if i < 0 {
		return nil
	}
	line := l.early[i]
	l.early = slices.Delete(l.early, i, i+1)
	return l.addCall(line)
}

func (l *loader) isErrorObject(b *recording.Body) bool {
	text, err := l.r.Body(b)
	if err != nil {
		return false
	}
	_, hasCode := rawjson.Int(rawjson.Get(text, "code"))
	_, hasMessage := rawjson.String(rawjson.Get(text, "message"))
	return hasCode && hasMessage
}

// openCall is a call that waits for the answers of a stateless client. They follow in the
// next request.
type openCall struct {
	start, asked time.Time
	number       uint64
	requests     []byte // inputRequests of the last answer
	steps        []step // of earlier answers
}

// asked returns the steps of a call with the requests that line answers. Requests of a
// server with sessions have lines of their own, and the number of the call stays.
func (l *loader) asked(open openCall, line *recording.Line) []step {
	steps := open.steps
	if open.number == line.Number {
		return steps
	}
	params, err := l.r.Body(line.Params)
	if err != nil {
		return steps
	}
	for key, request := range rawjson.Members(open.requests) {
		s := step{kind: serverRequest, time: open.asked, took: max(0, line.Time.Sub(open.asked)), method: rawjson.GetString(request, "method")}
		s.params.text = rawjson.Get(request, "params")
		s.answer.text = rawjson.Path(params, inputResponses, string(key.Name()))
		steps = append(steps, s)
	}
	return steps
}

// parkedState returns the requestState of an answer that asks a stateless client for
// input, or "".
func (l *loader) parkedState(c *call) string {
	answer, err := l.store.get(c.answer)
	if err != nil || rawjson.GetString(answer, "resultType") != "input_required" {
		return ""
	}
	return rawjson.GetString(answer, requestState)
}

func (l *loader) requestState(line *recording.Line) string {
	params, err := l.r.Body(line.Params)
	if err != nil || !rawjson.IsObject(params) {
		return ""
	}
	return rawjson.GetString(params, requestState)
}

// serverParams returns the params as sent to the server. continued is set if a stateless
// client added answers for Goblin.
func (l *loader) serverParams(line *recording.Line, name string, continued bool) ([]byte, error) {
	params, err := l.r.Body(firstBody(line.Sent, line.Params))
	if err != nil {
		return nil, err
	}
	if len(params) == 0 || string(params) == "null" {
		params = []byte("{}")
	}
	if !rawjson.IsObject(params) {
		return nil, errors.New("the params are not an object")
	}
	if line.Sent == nil {
		params = withName(line.Method, params, name)
	}
	if l.noMeta {
		params = rawjson.RemoveMember(params, metaMember)
	}
	if continued || !l.modern() {
		params = rawjson.RemoveMember(rawjson.RemoveMember(params, inputResponses), requestState)
	}
	return params, nil
}

const (
	maxProblems = 20
	maxEarly    = 100
)

func (l *loader) problem(format string, args ...any) {
	if len(l.Problems) < maxProblems {
		l.Problems = append(l.Problems, fmt.Sprintf(format, args...))
	}
}

// finish orders the calls and puts the events between them into their place.
func (l *loader) finish() {
	first, more := l.r.Problems()
	for _, p := range first {
		l.problem("%s", p)
	}
	if more > 0 {
		l.problem("%d further problems", more)
	}
	for _, c := range l.running { // the recording ends before the answer
		c.steps, c.ended = l.children[c.number], c.time.Add(maxWait)
		l.calls = append(l.calls, c)
	}
	byTime := func(a, b step) int { return a.time.Compare(b.time) }
	slices.SortStableFunc(l.calls, func(a, b *call) int { return cmp.Or(a.time.Compare(b.time), cmp.Compare(a.number, b.number)) })
	slices.SortStableFunc(l.between, byTime)
	n := 0
	for _, s := range l.between {
		for n < len(l.calls) && !l.calls[n].time.After(s.time) {
			n++
		}
		switch {
		case n == 0 && s.kind == listChange: // such as the first list after the handshake
			l.lists = withChange(l.lists, s.change)
		case n == 0 && s.kind == newLists:
			l.lists = s.lists
		case n == 0:
			l.initial = append(l.initial, s)
		case s.kind != listChange && s.kind != newLists && s.time.Before(l.calls[n-1].ended):
			l.calls[n-1].steps = append(l.calls[n-1].steps, s)
		default: // changed lists never delay the answer
			l.calls[n-1].after = append(l.calls[n-1].after, s)
		}
	}
	setWaits(l.initial, l.connected)
	for _, c := range l.calls {
		slices.SortStableFunc(c.steps, byTime)
		asked := setWaits(c.steps, c.time.Add(c.lead))
		c.wait = min(maxWait, max(0, c.took-asked))
		setWaits(c.after, c.ended)
		l.index(c)
	}
}

// setWaits sets the waits of steps and returns the time until the last one, without that
// of the user.
func setWaits(steps []step, start time.Time) (total time.Duration) {
	for i := range steps {
		s := &steps[i]
		s.wait = min(maxWait, max(0, s.time.Sub(start)))
		total += s.wait
		if end := s.time.Add(s.took); end.After(start) {
			start = end
		}
	}
	return total
}

func (l *loader) index(c *call) {
	params, err := l.store.get(c.params)
	if err != nil {
		l.problem("request %d: %v", c.number, err)
		return
	}
	members, err := decode(c.target, params, l.rules)
	if err != nil {
		l.problem("request %d: %v", c.number, err)
		return
	}
	key, err := digestOf(members)
	if err != nil {
		l.problem("request %d: %v", c.number, err)
		return
	}
	t := l.targets[c.target]
	if t == nil {
		t = &targetCalls{groups: map[digest]*group{}}
		l.targets[c.target] = t
		if hasHidden([]byte(c.target.name)) {
			l.hidden = append(l.hidden, c.target)
		}
	}
	g := t.groups[key]
	if g == nil {
		g = new(group)
		t.groups[key] = g
		if hasHidden(params) {
			g.hidden = members
			t.hidden = append(t.hidden, g)
		}
	}
	g.calls = append(g.calls, c)
	t.calls = append(t.calls, c)
}

// usable reports whether there is an answer to replay.
func (c *call) usable() bool { return !c.answer.missing() }

func (c *call) wasCancelled() bool { return isCancelled(c.outcome) }

func isCancelled(outcome string) bool {
	return outcome == registry.StatusCancelled || outcome == registry.StatusLeft
}

func millis(ms float64) time.Duration {
	if ms <= 0 || ms > float64(maxWait/time.Millisecond) {
		return 0
	}
	return time.Duration(ms * float64(time.Millisecond))
}

func (s *Server) modern() bool { return s.protocol == modernRevision }
