package oauth

import (
	"context"
	"errors"
	"sync"
	"time"
)

// attempt is a login under way at one server: one page, for all callers.
type attempt struct {
	cancel context.CancelCauseFunc
	pasted chan string
	done   chan struct{} // closed once login and err are there
	login  *Login
	err    error

	// Guarded by the mu of its Authorizer.
	page      string           // "" as long as it is not known
	question  *pendingQuestion // that no caller has answered; nil if there is none
	waiting   map[*caller]bool // its callers
	abandoned bool             // by all: it is about to end
}

// caller is a call of Login. Each channel has room for the last value.
type caller struct {
	pages     chan string
	questions chan *pendingQuestion
}

// pendingQuestion is a question to all callers of an attempt.
type pendingQuestion struct {
	SecretQuestion
	once      sync.Once
	confirmed chan struct{} // closed when a caller's user has agreed
}

// Causes for the end of an attempt.
var (
	errAbandoned = errors.New("the login was cancelled")
	errElsewhere = errors.New("somebody has logged in elsewhere")
)

// Login logs the user in by a browser, and keeps the login. All calls at a time take
// part in one login, and each is shown its page; it ends when nobody waits for it any
// more, or when somebody has logged in by another process, where nobody was. The end of
// ctx is returned by its cause. The question of [UserPrompts.ConfirmSecret] goes to all callers: the first
// whose user agrees answers it, and one whose user declines gets the error.
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

// join takes part in the login that is under way, or begins one.
func (a *Authorizer) join(ctx context.Context) (*attempt, *caller) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := &caller{pages: make(chan string, 1), questions: make(chan *pendingQuestion, 1)}
	if a.attempt == nil || a.attempt.abandoned {
		before := a.attempt
		run, cancel := context.WithCancelCause(context.WithoutCancel(ctx)) // others may come to want it
		t := &attempt{cancel: cancel, pasted: make(chan string), done: make(chan struct{}), waiting: map[*caller]bool{}}
		a.attempt = t
		go func() { // ends with the login, or when the last one leaves
			if before != nil {
				<-before.done // it has the port
			}
			go a.watchOtherLogin(run, cancel) // ends with run
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

// ask puts a question to all callers of a login, and waits until one has agreed.
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

// answer puts a question to the user of a caller. The error is why that user does not
// agree; it is nil if another user was faster, or the login is over.
func (t *attempt) answer(ctx context.Context, r *pendingQuestion, u UserPrompts) error {
	select {
	case <-r.confirmed: // before this caller looked; the page may have been shown since
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
	<-done // Agree returns at the end of ctx
	return nil
}

// watchOtherLogin ends a login, by cancel, when another process has logged in.
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

// leave cancels a login without callers, and waits for its end then.
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

// showPage sends a page to all waiting callers. A caller that reads late gets the last one.
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
