package tui

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

// question is a server's request to this screen's user.
type question struct {
	method string
	params json.RawMessage
	since  time.Time
	answer chan reply // capacity 1
	gone   <-chan struct{}
}

type reply struct {
	result json.RawMessage
	err    error
}

// questions are those that wait, the oldest first. Its methods may be called
// from any goroutine.
type questions struct {
	mu     sync.Mutex
	list   []*question
	closed chan struct{}
	shut   bool
	wake   func()
}

func newQuestions() *questions {
	return &questions{closed: make(chan struct{}), wake: func() {}}
}

var (
	errScreenClosed = errors.New("the screen that should answer was closed")
	errManyAsked    = errors.New("too many questions wait for an answer already")
)

// wakes says what is called when the list changed.
func (q *questions) wakes(wake func()) {
	q.mu.Lock()
	q.wake = wake
	q.mu.Unlock()
}

func (q *questions) ask(ctx context.Context, method string, params json.RawMessage, now time.Time) (json.RawMessage, error) {
	one := &question{method: method, params: params, since: now, answer: make(chan reply, 1), gone: ctx.Done()}
	q.mu.Lock()
	if q.shut || len(q.list) >= maxQuestions {
		shut := q.shut
		q.mu.Unlock()
		if shut {
			return nil, errScreenClosed
		}
		return nil, errManyAsked
	}
	q.list = append(q.list, one)
	wake := q.wake
	q.mu.Unlock()
	wake()
	defer q.drop(one)
	select {
	case r := <-one.answer:
		return r.result, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-q.closed:
		return nil, errScreenClosed
	}
}

func (q *questions) drop(one *question) {
	q.mu.Lock()
	q.list = slices.DeleteFunc(q.list, func(o *question) bool { return o == one })
	wake := q.wake
	q.mu.Unlock()
	wake()
}

func (q *questions) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.list)
}

// first is the one that waits longest, nil if none does.
func (q *questions) first() *question {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.list) == 0 {
		return nil
	}
	return q.list[0]
}

// close fails all that wait and those to come.
func (q *questions) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.shut {
		q.shut = true
		close(q.closed)
	}
}

// reply answers; a second answer is ignored.
func (o *question) reply(result json.RawMessage, err error) {
	select {
	case o.answer <- reply{result, err}:
	default:
	}
}

// over says whether nobody waits for the answer any more.
func (o *question) over() bool {
	select {
	case <-o.gone:
		return true
	default:
		return false
	}
}
