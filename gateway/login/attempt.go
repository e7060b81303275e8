package login

import (
	"context"
	"errors"
	"time"
)

// attempt is a login under way at one server: one page, for all callers.
type attempt struct {
	cancel context.CancelCauseFunc
	pasted chan string
	over   chan struct{} // closed once login and err are there
	login  *Login
	err    error

	// Guarded by the mu of its Authorizer.
	page    string               // "" as long as it is not known
	waiting map[chan string]bool // who gets the page; each has room for the last one
	left    bool                 // by all: it is about to end
}

// Causes for the end of an attempt.
var (
	errLeft      = errors.New("the login was cancelled")
	errElsewhere = errors.New("somebody has logged in elsewhere")
)

// Login logs the user in by a browser, and keeps the login. All calls at a time take
// part in one login, and each is shown its page; it ends when nobody waits for it any
// more, or when somebody has logged in by another process, where nobody was. The end of
// ctx is returned by its cause.
func (a *Authorizer) Login(ctx context.Context, u User) (*Login, error) {
	t, pages := a.join(ctx)
	defer a.leave(t, pages)
	for {
		select {
		case page := <-pages:
			u.Show(page)
		case text, ok := <-u.Pasted:
			if !ok {
				u.Pasted = nil
				continue
			}
			select {
			case t.pasted <- text:
			case <-t.over:
			case <-ctx.Done():
			}
		case <-t.over:
			return t.login, t.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// join takes part in the login that is under way, or begins one.
func (a *Authorizer) join(ctx context.Context) (*attempt, chan string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	pages := make(chan string, 1)
	if a.attempt == nil || a.attempt.left {
		before := a.attempt
		run, cancel := context.WithCancelCause(context.WithoutCancel(ctx)) // others may come to want it
		t := &attempt{cancel: cancel, pasted: make(chan string), over: make(chan struct{}), waiting: map[chan string]bool{}}
		a.attempt = t
		go func() { // ends with the login, or when the last one leaves
			if before != nil {
				<-before.over // it has the port
			}
			go a.look(run, cancel) // ends with run
			var notice string
			t.login, notice, t.err = Do(run, a.folder, a.o, User{Show: func(page string) { a.show(t, page) }, Pasted: t.pasted})
			if t.err != nil && errors.Is(context.Cause(run), errElsewhere) {
				t.login, t.err = a.current()
			}
			a.note(notice)
			cancel(nil)
			a.mu.Lock()
			if a.attempt == t {
				a.attempt = nil
			}
			a.mu.Unlock()
			close(t.over)
		}()
	}
	t := a.attempt
	t.waiting[pages] = true
	if t.page != "" {
		pages <- t.page
	}
	return t, pages
}

// look ends a login, by cancel, when there is one that was made elsewhere.
func (a *Authorizer) look(ctx context.Context, cancel context.CancelCauseFunc) {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for waited := a.Waiting(); ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-every.C:
			waits := a.Waiting()
			if waited && !waits {
				cancel(errElsewhere)
			}
			waited = waits
		}
	}
}

// leave cancels a login without callers, and waits for its end then.
func (a *Authorizer) leave(t *attempt, pages chan string) {
	a.mu.Lock()
	delete(t.waiting, pages)
	t.left = len(t.waiting) == 0
	last := t.left
	a.mu.Unlock()
	if last {
		t.cancel(errLeft)
		<-t.over
	}
}

// show gives a page to all waiting callers; of several, the last.
func (a *Authorizer) show(t *attempt, page string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t.page = page
	for pages := range t.waiting {
		select {
		case <-pages:
		default:
		}
		pages <- page
	}
}
