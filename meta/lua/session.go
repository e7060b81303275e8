package lua

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"goblin/meta/lua/worker"
	"goblin/registry/rawjson"
)

const (
	maxInFlight   = 16       // requests of one script in flight
	maxHint       = 1 << 10  // bytes
	maxLabel      = 256      // bytes of a call's label
	maxError      = 64 << 10 // bytes of the message of an error response
	uncountedSize = 1 << 17  // uncounted bytes of a request or answer
)

type session struct {
	runner   *Runner
	host     Backend
	limits   Limits
	ctx      context.Context // an exceeded limit is its cause
	cancel   context.CancelCauseFunc
	in       io.Writer // stdin of the process
	begun    bool      // the process received the script
	calls    int       // started; reading goroutine only
	result   Result    // same
	printed  []byte    // same
	inFlight atomic.Int32

	writing        sync.Mutex
	progress       sync.Mutex // guards the next two
	done           int        // finished calls
	progressClosed bool
	growing        sync.Mutex // guards hasGrown
	hasGrown       bool       // the script may use all of its memory
}

// cancelRequests stops the progress of the script and releases its memory slot.
func (s *session) cancelRequests() {
	s.progress.Lock()
	s.progressClosed = true
	s.progress.Unlock()
	s.growing.Lock()
	defer s.growing.Unlock()
	if s.hasGrown {
		<-s.runner.largeSlots
	}
}

func (s *session) send(head any, body []byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return worker.WriteFrame(s.in, head, body)
}

var errProtocol = errors.New("protocol violation")

// listen answers a process, whose stdout is out, until it exits. It returns an error of
// the script or of the process.
func (s *session) listen(out io.Reader) (failed *Error, err error) {
	in := bufio.NewReaderSize(out, 16<<10)
	for {
		var q worker.ScriptMessage
		size, err := worker.ReadHead(in, worker.MaxHead, &q)
		if err != nil {
			return nil, err
		}
		if q.End != nil {
			return s.readOutcome(in, q.End, size)
		}
		s.begun = true
		switch {
		case size < 0:
			return nil, errProtocol
		case q.Ask == worker.NotifyPrint, q.Ask == worker.NotifyResult:
			err = s.addOutput(in, q.Ask, size)
		case size > s.limits.Memory:
			return nil, errProtocol
		case isTooLong(&q):
			if err = discard(in, size); err == nil {
				s.answer(&q, nil, errors.New("a name or URI is too long"))
			}
		default:
			err = s.handleQuestion(in, &q, size)
		}
		if err != nil {
			return nil, err
		}
	}
}

func discard(in io.Reader, n int64) error {
	_, err := io.CopyN(io.Discard, in, n)
	return err
}

func (s *session) outputLeft() int64 {
	return s.limits.Output - int64(len(s.printed)+len(s.result.JSON))
}

func (s *session) addOutput(in io.Reader, what string, size int64) error {
	if what == worker.NotifyResult {
		s.result.JSON = nil
	}
	if s.ctx.Err() != nil {
		return discard(in, size)
	}
	if size > s.outputLeft() {
		s.cancel(&Error{Kind: Output, Message: fmt.Sprintf("the script's result and prints exceed %s (lua.output)", worker.FormatSize(s.limits.Output))})
		return discard(in, size)
	}
	body, err := worker.ReadBody(in, size)
	switch {
	case err != nil:
		return err
	case what == worker.NotifyPrint:
		s.printed = append(s.printed, body...)
	case rawjson.Valid(body) != nil:
		return errProtocol
	default:
		s.result.JSON = body
	}
	return nil
}

func isTooLong(q *worker.ScriptMessage) bool {
	name := worker.MaxName
	if q.Ask == worker.AskRead {
		name = worker.MaxURI
	}
	return len(q.Name) > name || max(len(q.Server), len(q.Tool), len(q.Kind), len(q.MIME)) > worker.MaxName
}

func (s *session) readOutcome(in io.Reader, e *worker.Outcome, size int64) (*Error, error) {
	if size < 0 || size > s.limits.Output+worker.MaxMessage || len(e.Hint) > maxHint {
		return nil, errProtocol
	}
	message, err := worker.ReadBody(in, size)
	if err != nil {
		return nil, err
	}
	if e.Failure != "" {
		text := worker.TruncateError(string(message), s.outputLeft())
		return &Error{Kind: e.Failure, Line: e.Line, Message: strings.ToValidUTF8(text, "\uFFFD")}, nil
	}
	if s.result.JSON == nil && len(s.printed) == 0 {
		s.result.Hint = "the script returned nothing; end it with `return value`, or call `result(value)`." + e.Hint
	}
	return nil, nil
}

// handleQuestion reads the rest of a request and answers it, slow ones in a goroutine.
func (s *session) handleQuestion(in io.Reader, q *worker.ScriptMessage, size int64) error {
	switch q.Ask {
	case worker.AskTool, worker.AskList:
		s.catalog(q)
		return discard(in, size)
	case worker.AskCall, worker.AskRead, worker.AskPrompt, worker.AskSearch:
		if s.calls >= s.limits.Calls {
			s.cancel(&Error{Kind: Calls, Message: fmt.Sprintf("the script makes more than %d calls (lua.calls)", s.limits.Calls)})
			return discard(in, size)
		}
		s.calls++
	case worker.AskMemory:
	case worker.NotifyStarted:
		return discard(in, size)
	default:
		return errProtocol
	}
	if s.inFlight.Add(1) > maxInFlight || !s.runner.addTask() {
		return errProtocol
	}
	back, ok := s.reserve(size)
	body, err := []byte(nil), error(nil)
	if ok {
		body, err = worker.ReadBody(in, size)
	} else {
		err = discard(in, size)
	}
	go func() {
		defer s.runner.tasks.Done()
		defer s.inFlight.Add(-1)
		defer back()
		switch {
		case err != nil:
		case !ok:
			s.answer(q, nil, errNoRoom)
		case q.Ask == worker.AskMemory:
			if s.waitForMemory() {
				_ = s.send(worker.GoblinMessage{ID: q.ID}, nil)
			}
		default:
			raw, err := s.request(q, body)
			if s.reportProgress(q) {
				s.answer(q, raw, err)
			}
		}
	}()
	return err
}

func (s *session) request(q *worker.ScriptMessage, body []byte) ([]byte, error) {
	if len(body) > 0 && (!rawjson.IsObject(body) || rawjson.Valid(body) != nil) {
		return nil, errors.New("the arguments are not a JSON object")
	}
	named := func(member string) []byte { return rawjson.AppendString([]byte(`{"`+member+`":`), q.Name) }
	params := named("name")
	if len(body) > 0 {
		params = append(append(params, `,"arguments":`...), body...)
	}
	switch q.Ask {
	case worker.AskCall:
		return s.host.Request(s.ctx, "tools/call", append(params, '}'))
	case worker.AskPrompt:
		return s.host.Request(s.ctx, "prompts/get", append(params, '}'))
	case worker.AskRead:
		return s.host.Request(s.ctx, "resources/read", append(named("uri"), '}'))
	default:
		return s.host.Search(s.ctx, q.Name, SearchOptions{Kind: q.Kind, Server: q.Server, Limit: q.Limit})
	}
}

// reportProgress returns false once the script is done.
func (s *session) reportProgress(q *worker.ScriptMessage) bool {
	var label string
	switch q.Ask {
	case worker.AskCall:
		label = q.Server + "." + q.Tool
	case worker.AskRead:
		label = "resources.read " + q.Name
	case worker.AskPrompt:
		label = "prompts.get " + q.Name
	case worker.AskSearch:
		label = "search " + q.Name
	}
	s.progress.Lock()
	defer s.progress.Unlock()
	if s.progressClosed || s.ctx.Err() != nil {
		return false
	}
	s.done++
	s.host.Progress(s.done, strings.ToValidUTF8(label[:min(len(label), maxLabel)], ""))
	return true
}

type responseError interface {
	ErrorCode() int
	ErrorData() json.RawMessage
}

var errNoRoom = errors.New("not enough memory for this call: too many scripts use much memory; try again later")

func (s *session) answer(q *worker.ScriptMessage, raw []byte, err error) {
	head := worker.GoblinMessage{ID: q.ID}
	size := int64(len(raw))
	switch {
	case err != nil:
		raw = nil
		head.Error = cmp.Or(err.Error(), "error without a message")
		if len(head.Error) > maxError {
			head.Error = strings.ToValidUTF8(head.Error[:maxError], "") + "…"
		}
		var a responseError
		if errors.As(err, &a) {
			code := a.ErrorCode()
			head.Code, raw = &code, a.ErrorData()
		}
	case size > s.limits.Memory:
		s.cancel(worker.MemoryError(s.limits.Memory))
		return
	case size > s.limits.freeMemory()/4 && !s.waitForMemory():
		return
	}
	back, ok := s.reserve(int64(len(raw)))
	defer back()
	if !ok {
		head, raw = worker.GoblinMessage{ID: q.ID, Error: errNoRoom.Error()}, nil
	}
	_ = s.send(head, raw) // fails if the process exited
}

// reserve counts n bytes as in flight until back is called. It returns false if they
// exceed the limit.
func (s *session) reserve(n int64) (back func(), ok bool) {
	if n <= uncountedSize {
		return func() {}, true
	}
	moving := &s.runner.inFlightBytes
	if moving.Add(n) > maxLargeScripts*s.limits.Memory {
		moving.Add(-n)
		return func() {}, false
	}
	return func() { moving.Add(-n) }, true
}

// waitForMemory waits until the script may use all of its memory. It returns false once
// the script is done.
func (s *session) waitForMemory() bool {
	s.growing.Lock()
	defer s.growing.Unlock()
	if s.hasGrown || s.ctx.Err() != nil {
		return s.hasGrown
	}
	select {
	case s.runner.largeSlots <- struct{}{}:
		s.hasGrown = true
	case <-s.ctx.Done():
	}
	return s.hasGrown
}
