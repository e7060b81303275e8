package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/registry"
	"goblin/registry/compare"
	"goblin/registry/rawjson"
	"goblin/registry/recording"
	"goblin/registry/termtext"
)

// Client sends requests to the servers of a gateway, by listed names.
type Client interface {
	Request(ctx context.Context, method string, params json.RawMessage, progress func(json.RawMessage)) (json.RawMessage, error)
}

// AgainstOptions configures [Against].
type AgainstOptions struct {
	Recording recording.Argument
	Filter    *Filter
	Ignore    compare.Patterns // paths that do not count
	// All also sends calls of tools that are not read-only.
	All bool
	// Connect returns a client of a profile, which uses ask for requests of servers.
	// It is called once per profile.
	Connect func(ctx context.Context, profile string, ask ClientAsk) (Client, error)
	// Before is called before a request is sent, Done after each request. They may be nil.
	Before func(at, of int, c *Comparison)
	Done   func(c *Comparison)
}

// ClientAsk answers a request of a server on behalf of a client.
type ClientAsk = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)

// reply is the answer to a request: a result or an error object.
type reply struct {
	text    []byte
	isError bool
}

// Difference is one difference of two answers.
type Difference struct {
	Path     string          `json:"path"`
	Recorded json.RawMessage `json:"recorded,omitempty"`
	Got      json.RawMessage `json:"got,omitempty"`
}

// String describes a difference in one line.
func (d Difference) String() string {
	return fmt.Sprintf("%s: recorded %s, got %s", d.Path, brief(d.Recorded), brief(d.Got))
}

func brief(text []byte) string {
	if len(text) == 0 {
		return "nothing"
	}
	return termtext.Cut(termtext.Line(string(text)), maxShownValue)
}

// States of a [Comparison].
const (
	Equal    = "equal"
	Differs  = "differs"
	Skipped  = "skipped"
	Unusable = "unusable" // there is nothing to compare with
)

// Comparison is the outcome of one recorded request.
type Comparison struct {
	Number      uint64        `json:"n"`
	Server      string        `json:"server"`
	Method      string        `json:"method"`
	Name        string        `json:"name"`
	State       string        `json:"state"`
	Reason      string        `json:"reason,omitempty"`
	Differences []Difference  `json:"differences,omitempty"`
	More        int           `json:"more,omitempty"` // differences that are not listed
	Recorded    time.Duration `json:"-"`
	Took        time.Duration `json:"-"`
}

// Summary counts the outcomes of [Against].
type Summary struct {
	Equal    int `json:"equal"`
	Differs  int `json:"differs"`
	Skipped  int `json:"skipped"`  // tools that may change something
	Unusable int `json:"unusable"` // without an answer in the recording, or with hidden secrets
}

// sentRequest is a recorded request of a client.
type sentRequest struct {
	Comparison
	time           time.Time
	profile        string
	params, answer bodyRef
	isError        bool
	problem        string
	asked          []step // requests of the server
}

// replayer sends recorded requests one after the other.
type replayer struct {
	o        AgainstOptions
	store    store
	requests []*sentRequest
	clients  map[string]*profileClient

	mu      sync.Mutex
	current *sentRequest
}

type profileClient struct {
	Client
	err      error
	readOnly map[string]bool // annotations by listed name
}

// Against sends recorded requests of clients to real servers, one after the other. It
// compares the answers with the recorded ones. Requests of servers get the recorded
// client's answers.
func Against(ctx context.Context, o AgainstOptions) (sum Summary, err error) {
	p := &replayer{o: o, clients: map[string]*profileClient{}}
	defer func() { err = errors.Join(err, p.store.close()) }()
	if err := p.load(); err != nil {
		return sum, err
	}
	for i, q := range p.requests {
		if o.Before != nil {
			o.Before(i+1, len(p.requests), &q.Comparison)
		}
		if err := p.send(ctx, q); err != nil {
			return sum, err
		}
		switch q.State {
		case Equal:
			sum.Equal++
		case Differs:
			sum.Differs++
		case Skipped:
			sum.Skipped++
		default:
			sum.Unusable++
		}
		if o.Done != nil {
			o.Done(&q.Comparison)
		}
		q.Differences = nil // reported
	}
	return sum, nil
}

func isReplayable(method string) bool {
	switch method {
	case callTool, getPrompt, readResource, complete:
		return true
	}
	return false
}

func (p *replayer) load() error {
	r, err := recording.Open(p.o.Recording.Path)
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // it was only read
	asked := map[uint64][]step{}
	for {
		line, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = p.add(r, line, asked)
		}
		if err != nil {
			return err
		}
	}
	if p.o.Recording.Number != 0 && len(p.requests) == 0 {
		return fmt.Errorf("%s: %w", p.o.Recording, recording.ErrNoRequest)
	}
	slices.SortStableFunc(p.requests, func(a, b *sentRequest) int { return cmp.Or(a.time.Compare(b.time), cmp.Compare(a.Number, b.Number)) })
	return nil
}

func (p *replayer) add(r *recording.Reader, line *recording.Line, asked map[uint64][]step) error {
	switch {
	case line.Type == recording.TypeRecording && !line.Bodies:
		return fmt.Errorf("%s: %w", r.File(), ErrNoBodies)
	case line.Type != recording.TypeRequest:
	case line.Direction == toClient:
		if line.Parent != 0 {
			answer, err := p.store.add(r.File(), line.Answer)
			if err != nil {
				return err
			}
			asked[line.Parent] = append(asked[line.Parent], step{time: line.Time, method: line.Method, answer: answer})
		}
	case isReplayable(line.Method) && line.Server != "" && line.Server != registry.Local:
		if n := p.o.Recording.Number; n != 0 && line.Number != n || !p.o.Filter.selects(r, line) {
			return nil
		}
		if len(p.requests) >= maxCalls {
			return fmt.Errorf("more than %d requests; select some with a filter", maxCalls)
		}
		return p.addRequest(r, line, asked)
	}
	return nil
}

func isReadOnly(tool []byte) bool {
	return string(rawjson.Path(tool, "annotations", "readOnlyHint")) == "true"
}

func (p *replayer) addRequest(r *recording.Reader, line *recording.Line, asked map[uint64][]step) error {
	rec := line.Record()
	q := &sentRequest{
		Comparison: Comparison{
			Number: line.Number, Server: line.Server, Method: line.Method, Name: line.Name, Recorded: rec.Duration - rec.UserWait,
		},
		time: line.Time, profile: line.Profile, asked: asked[line.Number], isError: line.Code != 0,
	}
	delete(asked, line.Number)
	params, err := r.Body(line.Params)
	switch {
	case err != nil:
		q.problem = err.Error()
	case !rawjson.IsObject(params):
		q.problem = "the params were not recorded"
	case hasHidden(params):
		q.problem = "the recording hides secrets in its params"
	case isCancelled(line.Outcome):
		q.problem = "the client cancelled it in the recording"
	case line.Answer == nil:
		q.problem = "the recording has no answer"
	}
	if q.params, err = p.store.add(r.File(), line.Params); err != nil {
		return err
	}
	if q.answer, err = p.store.add(r.File(), line.Answer); err != nil {
		return err
	}
	p.requests = append(p.requests, q)
	return nil
}

// send only fails if no further request can be sent.
func (p *replayer) send(ctx context.Context, q *sentRequest) error {
	if q.State = Unusable; q.problem != "" {
		q.Reason = q.problem
		return nil
	}
	params, err := p.store.get(q.params)
	var recorded []byte
	if err == nil {
		recorded, err = p.store.get(q.answer)
	}
	if err != nil {
		q.Reason = err.Error()
		return nil
	}
	c := p.client(ctx, q.profile)
	if c.err != nil {
		return c.err
	}
	// The recording is untrusted, so only the servers' own annotations count.
	if q.Method == callTool && !p.o.All && !c.readOnly[rawjson.GetString(params, nameMember)] {
		q.State, q.Reason = Skipped, "the tool is not marked as read-only"
		return nil
	}
	p.mu.Lock()
	p.current = q
	p.mu.Unlock()
	start := time.Now()
	result, err := c.Request(ctx, q.Method, withoutVolatileMeta(params), nil)
	q.Took = time.Since(start)
	got := reply{text: result}
	if err != nil {
		fault, answered := errors.AsType[*jsonrpc.Error](err)
		if !answered {
			return err
		}
		got = reply{fault.Object(), true}
	}
	p.compare(q, params, reply{recorded, q.isError}, got)
	return nil
}

func (p *replayer) compare(q *sentRequest, params []byte, recorded, got reply) {
	if fault := jsonrpc.ReadToolError(recorded.text); fault != nil {
		recorded = reply{fault.Object(), true}
	}
	differences, more, err := q.differences(params, recorded, got, p.o.Ignore)
	if err != nil {
		q.Reason = err.Error()
		return
	}
	q.State = Equal
	if len(differences)+more > 0 {
		q.State, q.More = Differs, more+max(0, len(differences)-maxDifferences)
		q.Differences = differences[:min(len(differences), maxDifferences)]
	}
}

// maxTools limits the tools whose annotations are read.
const maxTools = 1_000_000

func (p *replayer) client(ctx context.Context, profile string) *profileClient {
	if c := p.clients[profile]; c != nil {
		return c
	}
	c := &profileClient{readOnly: map[string]bool{}}
	p.clients[profile] = c
	if c.Client, c.err = p.o.Connect(ctx, profile, p.ask); c.err != nil {
		return c
	}
	cursor := ""
	for range maxTools {
		params := []byte("{}")
		if cursor != "" {
			params = rawjson.SetMember(params, "cursor", rawjson.Quote(cursor))
		}
		list, err := c.Request(ctx, "tools/list", params, nil)
		if err != nil {
			c.err = fmt.Errorf("list the tools: %w", err)
			return c
		}
		for tool := range rawjson.Elements(rawjson.Get(list, "tools")) {
			c.readOnly[rawjson.GetString(tool, nameMember)] = isReadOnly(tool)
		}
		if cursor = rawjson.GetString(list, "nextCursor"); cursor == "" {
			break
		}
	}
	return c
}

// ask answers a request of a server during the current call as the recorded client did.
func (p *replayer) ask(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil {
		for i, s := range p.current.asked {
			if s.method == method {
				p.current.asked = slices.Delete(p.current.asked, i, i+1)
				return p.store.get(s.answer)
			}
		}
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "the recording has no answer to this %s", method)
}

// withoutVolatileMeta removes what belongs to the recorded call only.
func withoutVolatileMeta(params []byte) []byte {
	meta := rawjson.Get(params, metaMember)
	if !rawjson.IsObject(meta) {
		return params
	}
	kept := rawjson.Filter(meta, func(name rawjson.Key, value []byte) ([]byte, bool) {
		return value, !isVolatileMeta(string(name.Name()))
	})
	return rawjson.SetMember(params, metaMember, kept)
}
