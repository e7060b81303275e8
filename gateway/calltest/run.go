package calltest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"goblin/gateway/jsonrpc"
	"goblin/registry/names"
	"goblin/registry/rawjson"
	"goblin/registry/savedcall"
	"goblin/registry/termtext"
)

// Conn is a session with a gateway. Request is as in mcpclient: an error answer has the
// methods ErrorCode() int and ErrorData() json.RawMessage.
type Conn interface {
	Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	Close() error
}

// Target is the entry that a call means.
type Target struct {
	Name       string          // or URI, for requests
	Server     string          // "" if unknown
	Definition json.RawMessage // as the server sent it, or nil
	// IsOwn reports that the call has the server's own name. Its answer then has the
	// server's own URIs.
	IsOwn bool
}

// AskedError is the error of a request during which the server asked for input.
type AskedError struct{ Method, Text string }

func (e *AskedError) Error() string {
	return fmt.Sprintf("the server asked for input (%s: %s), but a test has no user to answer", e.Method, cmp.Or(e.Text, "no text"))
}

// UnreachableError is the error of a request whose gateway or server cannot be reached.
type UnreachableError struct{ Err error }

func (e *UnreachableError) Error() string { return e.Err.Error() }

func (e *UnreachableError) Unwrap() error { return e.Err }

// maxFolders is the number of folders that run at the same time.
const maxFolders = 8

// DefaultTimeout limits one call.
const DefaultTimeout = 60 * time.Second

// Runner runs saved calls. Its fields must not change during a run.
type Runner struct {
	// Connect opens a session for the calls of one folder, which ends with ctx at the latest.
	Connect func(ctx context.Context) (Conn, error)
	// Find returns the entry that a name or URI means. For an unknown one it returns a
	// Target with the same name, and the gateway decides.
	Find func(ctx context.Context, kind savedcall.Kind, name string) (Target, error)
	// Env returns a variable of the environment; nil: there are none.
	Env func(name string) (string, bool)
	// Captures are variables of all folders at the start; nil: there are none.
	Captures map[string]json.RawMessage
	// Timeout limits one call; 0 is DefaultTimeout.
	Timeout time.Duration
	// FailFast stops after the first failure. Calls in flight finish.
	FailFast bool
	// Redact hides the secrets of the config in stored answers; nil hides none.
	Redact func(string) string
	// Update stores answers and definitions that differ from the files, if all other
	// checks passed.
	Update bool
}

var (
	errTimeout = errors.New("no answer in time")
	errHalted  = errors.New("not run: another call failed before")
)

// Run runs the calls and calls done for each of them, not concurrently. Calls of a folder
// keep their order. It returns the cause of the end of ctx if that ended the run; the
// remaining calls are then skipped.
func (r *Runner) Run(ctx context.Context, calls []*savedcall.Call, done func(savedcall.Result)) error {
	starting, halt := context.WithCancelCause(ctx)
	defer halt(nil)
	one := &run{Runner: r, starting: starting, halt: halt, results: make(chan savedcall.Result), servers: map[string]chan struct{}{}}
	go func() {
		var folders errgroup.Group
		folders.SetLimit(maxFolders)
		for _, folder := range byFolder(calls) {
			folders.Go(func() error { one.folder(ctx, folder); return nil })
		}
		_ = folders.Wait()
		close(one.results)
	}()
	for result := range one.results {
		done(result)
	}
	return context.Cause(ctx)
}

// byFolder divides calls and keeps their order.
func byFolder(calls []*savedcall.Call) (folders [][]*savedcall.Call) {
	at := map[string]int{}
	for _, c := range calls {
		name := filepath.Dir(c.Path)
		i, known := at[name]
		if !known {
			i = len(folders)
			at[name], folders = i, append(folders, nil)
		}
		folders[i] = append(folders[i], c)
	}
	return folders
}

type run struct {
	*Runner
	starting context.Context // its end skips the calls that have not started
	halt     context.CancelCauseFunc
	results  chan savedcall.Result

	mu      sync.Mutex
	servers map[string]chan struct{} // each with one token while the server is idle
}

// sequence is the state of one folder.
type sequence struct {
	conn     Conn
	captures map[string]json.RawMessage
	lost     map[string]string // path of the failed file, by the name of its capture
}

func (r *run) folder(ctx context.Context, calls []*savedcall.Call) {
	s := &sequence{captures: maps.Clone(r.Captures), lost: map[string]string{}}
	defer func() {
		if s.conn != nil {
			_ = s.conn.Close()
		}
	}()
	if s.captures == nil {
		s.captures = map[string]json.RawMessage{}
	}
	for _, c := range calls {
		result := r.call(ctx, s, c)
		if r.FailFast && result.State == savedcall.Failed {
			r.halt(errHalted)
		}
		for _, wanted := range c.Capture {
			if value, ok := result.Captured[wanted.Name]; ok {
				s.captures[wanted.Name] = value
				delete(s.lost, wanted.Name)
			} else {
				delete(s.captures, wanted.Name)
				s.lost[wanted.Name] = c.Path
			}
		}
		r.results <- result
	}
}

// call runs one call, or skips it.
func (r *run) call(ctx context.Context, s *sequence, c *savedcall.Call) savedcall.Result {
	result := savedcall.Result{Call: c, State: savedcall.Failed}
	if err := context.Cause(r.starting); err != nil {
		return skipped(result, err)
	}
	resolved, lost, err := r.resolve(s, c)
	switch {
	case len(lost) > 0:
		result.State, result.Problem = savedcall.Skipped, strings.Join(lost, "\n")
		return result
	case err != nil:
		result.Problem = err.Error()
		return result
	}
	name := rawjson.GetString(resolved.Params, c.Kind.NameMember())
	target, err := r.Find(ctx, c.Kind, name)
	if err != nil {
		return r.failed(ctx, result, err)
	}
	result.Server = target.Server
	release, err := r.acquire(target.Server)
	if err != nil {
		return skipped(result, err)
	}
	defer release()
	return r.send(ctx, s, resolved, target, result)
}

func skipped(result savedcall.Result, why error) savedcall.Result {
	result.State, result.Problem = savedcall.Skipped, why.Error()
	if errors.Is(why, context.Canceled) {
		result.Problem = "not run: interrupted"
	}
	return result
}

// resolve replaces the variables of a call. lost has a text for each variable that a failed
// file of the folder should have captured.
func (r *run) resolve(s *sequence, c *savedcall.Call) (resolved *savedcall.Request, lost []string, err error) {
	seen := map[string]bool{}
	resolved, err = c.Resolve(savedcall.Variables{Captures: s.captures, Env: func(name string) (string, bool) {
		if path, ok := s.lost[name]; ok {
			if !seen[name] {
				lost = append(lost, fmt.Sprintf("${%s} was not captured because %s failed", name, path))
			}
			seen[name] = true
			return "", false
		}
		if r.Env == nil {
			return "", false
		}
		return r.Env(name)
	}})
	return resolved, lost, err
}

// acquire waits until the server has no other call of the run.
func (r *run) acquire(server string) (release func(), err error) {
	r.mu.Lock()
	idle := r.servers[server]
	if idle == nil {
		idle = make(chan struct{}, 1)
		idle <- struct{}{}
		r.servers[server] = idle
	}
	r.mu.Unlock()
	select {
	case <-idle:
		return func() { idle <- struct{}{} }, nil
	case <-r.starting.Done():
		return nil, context.Cause(r.starting)
	}
}

func (r *run) send(ctx context.Context, s *sequence, c *savedcall.Request, target Target, result savedcall.Result) savedcall.Result {
	params := rawjson.SetMember(c.Params, c.Call.Kind.NameMember(), rawjson.Quote(target.Name))
	if s.conn == nil {
		conn, err := r.Connect(ctx)
		if err != nil {
			return r.failed(ctx, result, &UnreachableError{err})
		}
		s.conn = conn
	}
	limit := cmp.Or(r.Timeout, DefaultTimeout)
	limited, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	began := time.Now()
	raw, err := s.conn.Request(limited, c.Method, params)
	if target.IsOwn {
		raw, err = ownURIs(raw, err, target.Server)
	}
	answer := savedcall.Answer{
		Result: raw, Time: time.Since(began), Redact: r.Redact,
		Definition: target.Definition, OutputSchema: rawjson.Get(target.Definition, "outputSchema"),
	}
	result.Answer.Time = answer.Time
	if err != nil {
		if errors.As(err, new(*UnreachableError)) { // the session is lost
			_ = s.conn.Close()
			s.conn = nil
		}
		if answer.Result = deniedResult(c.Method, err); answer.Result == nil {
			object, problem := answerOf(err)
			if errors.Is(problem, errTimeout) {
				problem = fmt.Errorf("no answer within %s", termtext.Duration(limit))
			}
			if problem != nil && (object == nil || !c.ExpectsError()) {
				return r.failed(ctx, result, problem)
			}
			answer.Error = object
		}
	}
	return r.evaluate(c, answer, result)
}

func (r *run) evaluate(c *savedcall.Request, answer savedcall.Answer, result savedcall.Result) savedcall.Result {
	var err error
	if answer.Stored, err = storedAnswer(c.Call); err != nil {
		result.Problem = err.Error()
		return result
	}
	result.Answer = answer
	result.Outcomes = c.Evaluate(answer)
	result.Captured, err = c.Captures(answer)
	if err != nil && allOK(result.Outcomes) {
		result.Problem = err.Error()
	}
	if r.Update && result.Problem == "" {
		if err := accept(&result); err != nil {
			result.Problem = err.Error()
		}
	}
	if len(result.Failures()) == 0 {
		result.State = savedcall.Passed
	}
	return result
}

func allOK(outcomes []savedcall.Outcome) bool {
	return !slices.ContainsFunc(outcomes, func(o savedcall.Outcome) bool { return !o.OK })
}

// failed adds the reason why there is no answer.
func (r *run) failed(ctx context.Context, result savedcall.Result, err error) savedcall.Result {
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return skipped(result, context.Canceled)
	}
	var unreachable *UnreachableError
	result.Unreachable = errors.As(err, &unreachable)
	result.Problem = termtext.Line(err.Error())
	return result
}

// ownURIs replaces listed URIs in an answer.
func ownURIs(result json.RawMessage, err error, server string) (json.RawMessage, error) {
	var failed *jsonrpc.Error
	if errors.As(err, &failed) {
		own := *failed
		own.Data = names.OwnURIs(own.Data, server)
		return nil, &own
	}
	return names.OwnURIs(result, server), err
}

// deniedResult restores the result of a tool call that a rule denied, which the client
// turned into an error. It returns nil for other errors.
func deniedResult(method string, err error) json.RawMessage {
	var e *jsonrpc.Error
	if method != jsonrpc.MethodToolsCall || !errors.As(err, &e) || rawjson.GetString(e.Data, "code") != "DENIED" || rawjson.Get(e.Data, "server") == nil {
		return nil
	}
	return jsonrpc.ToolErrorResult(e)
}

// answerOf returns the error object that a server answered. Other errors explain why there
// is no answer: the gateway cannot reach the server, or knows no such entry. In the latter
// case, both results are set.
func answerOf(err error) (object json.RawMessage, problem error) {
	var coded interface {
		error
		ErrorCode() int
		ErrorData() json.RawMessage
	}
	var asked *AskedError
	if errors.As(err, &asked) || !errors.As(err, &coded) {
		return nil, err
	}
	data := coded.ErrorData()
	switch rawjson.GetString(data, "code") {
	case "LOGIN_REQUIRED":
		return nil, &UnreachableError{err}
	case "CONNECTION_ERROR", "REQUEST_TIMEOUT", "REPLAY_MISS":
		return nil, err
	case "TOOL_NOT_FOUND", "PROMPT_NOT_FOUND", "AMBIGUOUS":
		problem = err
	}
	code := strconv.AppendInt(nil, int64(coded.ErrorCode()), 10)
	object = rawjson.SetMember(rawjson.SetMember([]byte("{}"), "code", code), "message", rawjson.Quote(coded.Error()))
	if len(data) > 0 && rawjson.Valid(data) == nil {
		object = rawjson.SetMember(object, "data", data)
	}
	return object, problem
}
