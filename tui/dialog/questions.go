package dialog

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"
)

// maxQuestions is the maximum number of waiting requests.
const maxQuestions = 32

// Question is a request from a server to the user of this UI.
type Question struct {
	Method    string
	Params    json.RawMessage
	Since     time.Time
	Answer    chan Reply // capacity 1
	Withdrawn <-chan struct{}
}

// Reply is a result or an error.
type Reply struct {
	Result json.RawMessage
	Err    error
}

// Questions is a queue of waiting requests, the oldest first. It is safe for concurrent
// use.
type Questions struct {
	mu       sync.Mutex
	List     []*Question
	closed   chan struct{}
	isClosed bool
	onChange func()
}

// NewQuestions returns an empty queue.
func NewQuestions() *Questions {
	return &Questions{closed: make(chan struct{}), onChange: func() {}}
}

var (
	// ErrScreenClosed is the result of requests that wait when their UI closes.
	ErrScreenClosed     = errors.New("the UI that should answer was closed")
	errTooManyQuestions = errors.New("too many requests are waiting for an answer")
)

// OnChange sets the function that is called after each change of the queue.
func (q *Questions) OnChange(wake func()) {
	q.mu.Lock()
	q.onChange = wake
	q.mu.Unlock()
}

// Ask queues a request and waits for its answer. It fails if ctx ends, the UI closes or
// the queue is full.
func (q *Questions) Ask(ctx context.Context, method string, params json.RawMessage, now time.Time) (json.RawMessage, error) {
	one := &Question{Method: method, Params: params, Since: now, Answer: make(chan Reply, 1), Withdrawn: ctx.Done()}
	q.mu.Lock()
	if q.isClosed || len(q.List) >= maxQuestions {
		shut := q.isClosed
		q.mu.Unlock()
		if shut {
			return nil, ErrScreenClosed
		}
		return nil, errTooManyQuestions
	}
	q.List = append(q.List, one)
	wake := q.onChange
	q.mu.Unlock()
	wake()
	defer q.drop(one)
	select {
	case r := <-one.Answer:
		return r.Result, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-q.closed:
		return nil, ErrScreenClosed
	}
}

func (q *Questions) drop(one *Question) {
	q.mu.Lock()
	q.List = slices.DeleteFunc(q.List, func(o *Question) bool { return o == one })
	wake := q.onChange
	q.mu.Unlock()
	wake()
}

// Len returns the number of waiting requests.
func (q *Questions) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.List)
}

func (q *Questions) first() *Question {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.List) == 0 {
		return nil
	}
	return q.List[0]
}

// Close fails all waiting and future requests.
func (q *Questions) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.isClosed {
		q.isClosed = true
		close(q.closed)
	}
}

// reply answers the request once; later answers are ignored.
func (o *Question) reply(result json.RawMessage, err error) {
	select {
	case o.Answer <- Reply{result, err}:
	default:
	}
}

// isWithdrawn reports whether the server stopped waiting.
func (o *Question) isWithdrawn() bool {
	select {
	case <-o.Withdrawn:
		return true
	default:
		return false
	}
}
