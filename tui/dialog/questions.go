package dialog

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"
)

// maxQuestions wait for a user at a time.
const maxQuestions = 32

// Question is a server's request to this screen's user.
type Question struct {
	Method    string
	Params    json.RawMessage
	Since     time.Time
	Answer    chan Reply // capacity 1
	Withdrawn <-chan struct{}
}

// Reply is an answer, or why there is none.
type Reply struct {
	Result json.RawMessage
	Err    error
}

// Questions are those that wait, the oldest first. Its methods may be called
// from any goroutine.
type Questions struct {
	mu       sync.Mutex
	List     []*Question
	closed   chan struct{}
	isClosed bool
	onChange func()
}

// NewQuestions is an empty queue.
func NewQuestions() *Questions {
	return &Questions{closed: make(chan struct{}), onChange: func() {}}
}

var (
	// ErrScreenClosed ends the questions that wait when their screen closes.
	ErrScreenClosed     = errors.New("the screen that should answer was closed")
	errTooManyQuestions = errors.New("too many questions wait for an answer already")
)

// OnChange sets the function that is called when the queue changed.
func (q *Questions) OnChange(wake func()) {
	q.mu.Lock()
	q.onChange = wake
	q.mu.Unlock()
}

// Ask puts a question and waits for its answer.
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

// Len is how many wait.
func (q *Questions) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.List)
}

// first is the one that waits longest, nil if none does.
func (q *Questions) first() *Question {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.List) == 0 {
		return nil
	}
	return q.List[0]
}

// Close fails all that wait and those to come.
func (q *Questions) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.isClosed {
		q.isClosed = true
		close(q.closed)
	}
}

// Reply answers; a second answer is ignored.
func (o *Question) reply(result json.RawMessage, err error) {
	select {
	case o.Answer <- Reply{result, err}:
	default:
	}
}

// isWithdrawn reports whether the server no longer waits for the answer.
func (o *Question) isWithdrawn() bool {
	select {
	case <-o.Withdrawn:
		return true
	default:
		return false
	}
}
