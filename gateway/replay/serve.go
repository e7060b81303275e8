package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

const (
	maxFrame    = 1 << 30 // the gateway has the real limit
	maxRequests = 1024
)

// Real sends requests to the real server.
type Real interface {
	// Call returns the server's own answer. Without an answer it fails.
	Call(ctx context.Context, method string, params []byte, progress func(params []byte)) (jsonrpc.Reply, error)
}

// AskFunc sends a request of the real server to the client and returns its answer.
type AskFunc = func(ctx context.Context, method string, params []byte) (result []byte, err *jsonrpc.Error)

// Options configures [Server.Serve].
type Options struct {
	In  io.Reader
	Out io.Writer
	Log *slog.Logger
	// Fast skips the recorded waits.
	Fast bool
	// Connect returns the real server for requests that were not recorded. It is called at
	// the first one. Nil: they fail.
	Connect func(ask AskFunc) (Real, error)
}

// session is the one client of a replayed server.
type session struct {
	*Server
	o       Options
	ctx     context.Context
	out     *jsonrpc.SendQueue
	asked   jsonrpc.Pending[struct{}]
	running sync.WaitGroup
	slots   chan struct{}
	greeted sync.Once
	real    func() (Real, error)

	mu       sync.Mutex
	current  map[string][]json.RawMessage // lists
	requests map[string]context.CancelFunc
	listens  map[string]*listen // streams of 2026-07-28
	parked   map[string]*parked
	tasks    map[string]*task
	states   int // parked or created so far
}

// exchange is one request of the client.
type exchange struct {
	id     []byte
	method string
	params []byte
	token  []byte // of progress, or nil
	modern bool
}

// Serve answers requests until the input closes or ctx ends.
func (s *Server) Serve(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &session{
		Server: s, o: o, ctx: ctx, out: jsonrpc.NewStream(o.Out), slots: make(chan struct{}, maxRequests),
		current: maps.Clone(s.lists), requests: map[string]context.CancelFunc{}, listens: map[string]*listen{},
		parked: map[string]*parked{}, tasks: map[string]*task{},
	}
	if o.Connect != nil {
		p.real = sync.OnceValues(func() (Real, error) { return o.Connect(p.ask) })
	}
	for _, text := range s.Problems {
		o.Log.Warn("recording incomplete", "problem", text)
	}
	for _, side := range []any{o.In, o.Out} {
		if c, ok := side.(io.Closer); ok {
			defer context.AfterFunc(ctx, func() { _ = c.Close() })()
		}
	}
	written := make(chan error, 1)
	go func() {
		written <- p.out.Run()
		cancel()
	}()
	err := p.read()
	stopped := ctx.Err() != nil
	cancel()
	p.asked.Close(jsonrpc.ErrClosed)
	p.running.Wait()
	p.out.Finish()
	werr := <-written
	if stopped {
		return nil
	}
	return errors.Join(err, werr)
}

func (s *session) read() error {
	in := jsonrpc.NewReader(s.o.In, maxFrame)
	for {
		frame, err := in.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read: %w", err)
		}
		m, err := jsonrpc.Parse(frame)
		if err != nil {
			if bad, ok := errors.AsType[*jsonrpc.ParseError](err); ok {
				s.out.Send(bad.Reply().Frame(bad.ID))
			}
			continue
		}
		s.handle(m)
	}
}

func (s *session) handle(m jsonrpc.Message) {
	switch {
	case m.IsResponse():
		s.asked.Resolve(m.ID, jsonrpc.Reply{Result: m.Result, Error: m.Error}, nil)
	case m.IsRequest():
		x := &exchange{
			id: m.ID, method: m.Method, params: m.Params, token: rawjson.Path(m.Params, metaMember, "progressToken"),
			modern: rawjson.Path(m.Params, metaMember, protocolKey) != nil,
		}
		s.handleRequest(x)
	case m.Method == "notifications/cancelled":
		s.mu.Lock()
		cancel := s.requests[jsonrpc.IDString(rawjson.Get(m.Params, "requestId"))]
		s.mu.Unlock()
		if cancel != nil {
			cancel()
		}
	case m.Method == "notifications/initialized":
		s.greet()
	}
}

// greet starts the events before the first call.
func (s *session) greet() {
	s.greeted.Do(func() {
		s.running.Go(func() { s.performAll(s.ctx, s.initial) })
	})
}

// handleRequest chooses the recorded call at once, so that requests get them in the order
// of their arrival.
func (s *session) handleRequest(x *exchange) {
	if result, err, ok := s.protocol(x); ok {
		s.answer(x, result, err)
		return
	}
	if strings.HasPrefix(x.method, taskMethods) && s.handleTask(x) {
		return
	}
	if x.method == listenMethod {
		s.spawn(x, func(ctx context.Context) { s.listen(ctx, x) })
		return
	}
	if p := s.resume(x); p != nil {
		s.spawn(x, func(ctx context.Context) { s.play(ctx, x, p.call, p.next) })
		return
	}
	c, err := s.take(targetOf(x.method, x.params), orEmpty(x.params))
	if err == nil {
		s.spawn(x, func(ctx context.Context) { s.playNew(ctx, x, c) })
		return
	}
	if result, ok := s.defaultResult(x); ok {
		s.answer(x, result, nil)
		return
	}
	if s.real == nil || err.Code != jsonrpc.CodeInvalidParams || err.Data == nil {
		s.o.Log.Error("request was not recorded", "method", x.method, "err", err.Message)
		s.answer(x, nil, err)
		return
	}
	s.spawn(x, func(ctx context.Context) { s.pass(ctx, x, err) })
}

func orEmpty(params []byte) []byte {
	if params == nil {
		return []byte("{}")
	}
	return params
}

// spawn runs a request in a goroutine of its own until the client cancels it.
func (s *session) spawn(x *exchange, run func(ctx context.Context)) {
	select {
	case s.slots <- struct{}{}:
	default:
		s.answer(x, nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "more than %d requests in flight", maxRequests))
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	key := jsonrpc.IDString(x.id)
	s.mu.Lock()
	s.requests[key] = cancel
	s.mu.Unlock()
	s.running.Go(func() {
		run(ctx)
		s.mu.Lock()
		delete(s.requests, key)
		s.mu.Unlock()
		cancel()
		<-s.slots
	})
}

// answer sends a result, or err if it is not nil.
func (s *session) answer(x *exchange, result []byte, err *jsonrpc.Error) {
	switch {
	case err != nil && err.Data != nil:
		s.out.Send(jsonrpc.OneLine(jsonrpc.ToolErrorFrame(x.id, x.method, x.modern, err)))
	case err != nil:
		s.out.Send(err.Frame(x.id))
	default:
		if x.modern && rawjson.IsObject(result) && rawjson.Get(result, "resultType") == nil {
			result = rawjson.SetMember(result, "resultType", []byte(`"complete"`))
		}
		s.out.Send(jsonrpc.OneLine(jsonrpc.ResultFrame(x.id, result)))
	}
}

// defaultResult returns the results of requests that need no recorded call.
func (s *session) defaultResult(x *exchange) ([]byte, bool) {
	switch x.method {
	case "logging/setLevel", subscribe, unsubscribe:
		return []byte("{}"), true
	}
	return nil, false
}

func (s *session) pass(ctx context.Context, x *exchange, miss *jsonrpc.Error) {
	s.o.Log.Warn("request was not recorded; asking the real server", "method", x.method, "err", miss.Message)
	real, err := s.real()
	var reply jsonrpc.Reply
	if err == nil {
		reply, err = real.Call(ctx, x.method, x.params, func(params []byte) { s.progress(x, params) })
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		data := rawjson.Object("code", Miss, "server", s.Name)
		s.answer(x, nil, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: fmt.Sprintf("%s; the real server: %v", miss.Message, err), Data: data})
	case reply.Error != nil:
		s.out.Send(jsonrpc.OneLine(jsonrpc.ErrorFrame(x.id, reply.Error)))
	default:
		s.answer(x, reply.Result, nil)
	}
}

// ask sends a request to the client and waits for the answer.
func (s *session) ask(ctx context.Context, method string, params []byte) ([]byte, *jsonrpc.Error) {
	call, err := s.asked.Add(struct{}{})
	if err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "%v", err)
	}
	id := fmt.Appendf(nil, "%d", call.ID)
	s.out.Send(jsonrpc.OneLine(jsonrpc.RequestFrame(id, method, params)))
	select {
	case o := <-call.Done():
		reply, err := o.Take()
		if err != nil {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "%v", err)
		}
		if reply.Error != nil {
			return nil, jsonrpc.ParseErrorObject(reply.Error)
		}
		return reply.Result, nil
	case <-ctx.Done():
		if s.asked.Remove(call.ID) != nil {
			s.out.Send(jsonrpc.CancelFrame(id, "the call was cancelled"))
		}
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "cancelled")
	}
}

// sleep waits unless the replay is fast. It returns false if ctx ended.
func (s *session) sleep(ctx context.Context, wait time.Duration) bool {
	if wait > 0 && !s.o.Fast {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// pageBytes is the size of the definitions in a page of a list, in bytes.
const pageBytes = 1 << 20

// lists maps methods to the member of the result and the key of the recorded list.
var listMethods = map[string]struct{ member, list string }{
	"tools/list":               {"tools", "tools"},
	"prompts/list":             {"prompts", "prompts"},
	"resources/list":           {"resources", "resources"},
	"resources/templates/list": {"resourceTemplates", "templates"},
	"skills/list":              {"skills", "skills"},
}

// protocol answers requests of the protocol itself.
func (s *session) protocol(x *exchange) (result []byte, err *jsonrpc.Error, ok bool) {
	switch x.method {
	case "ping":
		return []byte("{}"), nil, true
	case "initialize":
		result, err = s.initialize()
		return result, err, true
	case "server/discover":
		result, err = s.discover()
		return result, err, true
	}
	l, ok := listMethods[x.method]
	if !ok {
		return nil, nil, false
	}
	s.mu.Lock()
	items := s.current[l.list]
	s.mu.Unlock()
	start := 0
	if cursor := rawjson.GetString(x.params, "cursor"); cursor != "" {
		if n, serr := fmt.Sscanf(cursor, "%d", &start); n != 1 || serr != nil || start < 0 || start > len(items) {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid cursor: the list has changed"), true
		}
	}
	size, end := 0, start
	for end < len(items) && (end == start || size+len(items[end]) <= pageBytes) {
		size += len(items[end])
		end++
	}
	page := make([][]byte, 0, end-start)
	for _, item := range items[start:end] {
		page = append(page, item)
	}
	result = rawjson.SetMember([]byte("{}"), l.member, rawjson.Array(page...))
	if end < len(items) {
		result = rawjson.SetMember(result, "nextCursor", rawjson.Quote(fmt.Sprint(end)))
	}
	if x.modern {
		result = rawjson.SetMember(rawjson.SetMember(result, "ttlMs", []byte("0")), "cacheScope", []byte(`"private"`))
	}
	return result, nil, true
}

func (s *session) initialize() ([]byte, *jsonrpc.Error) {
	if s.modern() {
		return nil, unsupportedVersion()
	}
	result := slices.Clone(s.handshake)
	for name, value := range map[string]string{"capabilities": "{}", "serverInfo": `{"name":"","version":""}`, "protocolVersion": `"2025-11-25"`} {
		if rawjson.Get(result, name) == nil {
			result = rawjson.SetMember(result, name, []byte(value))
		}
	}
	return result, nil
}
