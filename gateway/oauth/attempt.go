package oauth

import (
	"context"
	"errors"
	"sync"
	"time"
)

// attempt is a running login at one server, shared by all callers.
type attempt struct {
	cancel context.CancelCauseFunc
	pasted chan string
	done   chan struct{} // closed when login and err are set
	login  *Login
	err    error

	// Guarded by Authorizer.mu.
	page      string
	question  *pendingQuestion
	waiting   map[*caller]bool
	abandoned bool // has no callers; about to end
}

// caller is a call of Login. Each channel holds the latest value.
type caller struct {
	pages     chan string
	questions chan *pendingQuestion
}

type pendingQuestion struct {
	SecretQuestion
	once      sync.Once
	confirmed chan struct{} // closed when a user agreed
}

var (
	errAbandoned = errors.New("the login was cancelled")
	errElsewhere = errors.New("another process has logged in")
)

// Login logs the user in with a browser and stores the login. Concurrent calls share one
// login, and each shows its page. Without callers it is cancelled. It succeeds early if
// another process logs in while no login existed. Cancelling ctx returns its cause.
//
// The question of [UserPrompts.ConfirmSecret] goes to all callers. The first user who
// agrees answers it; a caller whose user declines gets the error.
func (a *Authorizer) Login(ctx context.Context, u UserPrompts) (*Login, error) {
	t, c := a.join(ctx)
	defer a.leave(t, c)
	for {
		select {
		case page := <-c.pages:
			u.Show(page)
		case r := <-c.questions:
			if err := t.answer(ctx, r, u); err != nil {
				return nil, cause(ctx, err)
			}
		case text, ok := <-u.ReadPasted:
			if !ok {
				u.ReadPasted = nil
				continue
			}
			select {
			case t.pasted <- text:
			case <-t.done:
			case <-ctx.Done():
			}
		case <-t.done:
			return t.login, t.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (a *Authorizer) join(ctx context.Context) (*attempt, *caller) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := &caller{pages: make(chan string, 1), questions: make(chan *pendingQuestion, 1)}
	if a.attempt == nil || a.attempt.abandoned {
		before := a.attempt
		run, cancel := context.WithCancelCause(context.WithoutCancel(ctx)) // other callers may join
		t := &attempt{cancel: cancel, pasted: make(chan string), done: make(chan struct{}), waiting: map[*caller]bool{}}
		a.attempt = t
		go func() { // exits with the login or its last caller
			if before != nil {
				<-before.done // it uses the port
			}
			go a.watchOtherLogin(run, cancel) // exits with run
			var notice string
			t.login, notice, t.err = LogIn(run, a.folder, a.o, UserPrompts{
				Show: func(page string) { a.showPage(t, page) }, ReadPasted: t.pasted,
				ConfirmSecret: func(ctx context.Context, q SecretQuestion) error { return a.ask(ctx, t, q) },
			})
			if t.err != nil && errors.Is(context.Cause(run), errElsewhere) {
				t.login, t.err = a.current()
			}
			a.logNotice(notice)
			cancel(nil)
			a.mu.Lock()
			if a.attempt == t {
				a.attempt = nil
			}
			a.mu.Unlock()
			close(t.done)
		}()
	}
	t := a.attempt
	t.waiting[c] = true
	if t.page != "" {
		c.pages <- t.page
	}
	if t.question != nil {
		c.questions <- t.question
	}
	return t, c
}

func (a *Authorizer) ask(ctx context.Context, t *attempt, q SecretQuestion) error {
	r := &pendingQuestion{SecretQuestion: q, confirmed: make(chan struct{})}
	a.mu.Lock()
	t.question = r
	for c := range t.waiting {
		select {
		case <-c.questions:
		default:
		}
		c.questions <- r
	}
	a.mu.Unlock()
	select {
	case <-r.confirmed:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	t.question = nil
	return nil
}

// answer asks the user of a caller. It returns the reason if the user declines, or nil if
// another user agreed or the login is over.
func (t *attempt) answer(ctx context.Context, r *pendingQuestion, u UserPrompts) error {
	select {
	case <-r.confirmed: // answered meanwhile; the page may have been shown
		return nil
	default:
	}
	if u.ConfirmSecret == nil {
		return r.noUserError()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = u.ConfirmSecret(ctx, r.SecretQuestion)
	}()
	select {
	case <-done:
		if err == nil {
			r.once.Do(func() { close(r.confirmed) })
		}
		return err
	case <-r.confirmed:
	case <-t.done:
	}
	cancel()
	<-done // ConfirmSecret returns when ctx is done
	return nil
}

func (a *Authorizer) watchOtherLogin(ctx context.Context, cancel context.CancelCauseFunc) {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for waited := a.NeedsUser(); ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-every.C:
			waits := a.NeedsUser()
			if waited && !waits {
				cancel(errElsewhere)
			}
			waited = waits
		}
	}
}

// leave removes a caller. If it was the last, it cancels the login and waits.
func (a *Authorizer) leave(t *attempt, c *caller) {
	a.mu.Lock()
	delete(t.waiting, c)
	t.abandoned = len(t.waiting) == 0
	last := t.abandoned
	a.mu.Unlock()
	if last {
		t.cancel(errAbandoned)
		<-t.done
	}
}

// showPage shows slow callers only the last page.
func (a *Authorizer) showPage(t *attempt, page string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t.page = page
	for c := range t.waiting {
		select {
		case <-c.pages:
		default:
		}
		c.pages <- page
	}
}
