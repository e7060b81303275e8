package serverreq

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"goblin/gateway/downstream"
	"goblin/gateway/oauth"
	"goblin/gateway/servers"
)

var (
	errShutdown    = errors.New("the daemon is stopping")
	errAbandoned   = errors.New("no call waits for the login")
	errPageChanged = errors.New("the authorization server changed its login page")
	errDeclined    = errors.New("the login was declined")
)

// loginFlow is a login at one server, shared by all calls that wait for it.
type loginFlow struct {
	logins     *Logins
	server     *servers.Server
	moreRights bool // a login exists but its scopes are too narrow
	ctx        context.Context
	cancel     context.CancelCauseFunc
	waiting    int // number of calls; guarded by Logins.mu

	ready chan struct{} // closed when page and question are set
	page  string
	// question is confirmed by opening the page; nil if there is none.
	question *oauth.SecretQuestion
	agreed   chan struct{} // closed when a user agreed
	agree    func()
	done     context.Context
	finish   context.CancelFunc
	err      error

	mu      sync.Mutex
	clients map[*downstream.Session]*loginClient
}

// loginClient is a client that is asked to open the page once for all its calls.
type loginClient struct {
	slot chan struct{} // capacity one: held by the call that asks
	// guarded by slot, as is err
	asked bool
	err   error
}

func (f *loginFlow) run() {
	defer f.finish()
	defer f.cancel(nil)
	if f.err = f.logIn(); f.err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(f.ctx, f.server.Config().StartupTimeout)
	defer cancel()
	f.server.AwaitListed(ctx)
}

func (f *loginFlow) logIn() error {
	if !f.moreRights && !f.server.Authorizer().NeedsUser() { // completed elsewhere meanwhile
		f.server.LoggedIn()
		return nil
	}
	_, err := f.logins.servers.Login(f.ctx, f.server.Name(), oauth.UserPrompts{Show: func(page string) {
		switch f.page {
		case "":
			f.page = page
			close(f.ready)
		case page: // already set by ConfirmSecret
		default: // clients got the first page
			f.cancel(errPageChanged)
		}
	}, ConfirmSecret: func(ctx context.Context, q oauth.SecretQuestion) error {
		f.page, f.question = q.Page, &q
		close(f.ready)
		select {
		case <-f.agreed:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}})
	return err
}

func (f *loginFlow) message() string {
	about := ""
	if q := f.question; q != nil {
		about = fmt.Sprintf(" Your client secret will be sent to its authorization server, %s. Continue only if you trust it.", q.Issuer)
		if q.PreviousIssuer != "" {
			about += fmt.Sprintf(" It was %s before.", q.PreviousIssuer)
		}
	}
	return fmt.Sprintf("Server %q needs you to log in.%s Open the page in a browser on this machine; the call then continues.", f.server.Name(), about)
}

func (f *loginFlow) await(x *downstream.Request) error {
	ctx := x.Context()
	select {
	case <-f.ready:
	case <-f.done.Done():
		return f.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	opened, err := f.askToOpen(ctx, x)
	if err != nil {
		return err
	}
	select {
	case <-f.done.Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if f.err == nil {
		opened()
	}
	return f.err
}

// askToOpen asks the client of x to open the page, unless another of its calls did. It
// returns when the client agrees or the login finishes. opened notifies the client that
// its user is done.
func (f *loginFlow) askToOpen(ctx context.Context, x *downstream.Request) (opened func(), err error) {
	noop := func() {}
	g := f.client(x.Session())
	select {
	case g.slot <- struct{}{}:
		defer func() { <-g.slot }()
	case <-f.done.Done():
		return noop, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if g.asked {
		return noop, g.err
	}
	agreed, opened, err := f.logins.router.openPage(f.done, x, Page{
		Server: f.server.Name(), URL: f.page, Message: f.message(),
	})
	if agreed {
		f.agree()
	}
	switch {
	case f.done.Err() != nil:
		return opened, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx) // the client's next call asks again
	case err != nil:
		g.err = err
	case !agreed:
		g.err = errDeclined
	}
	g.asked = true
	if g.err != nil {
		f.forget(x.Session())
	}
	return opened, g.err
}

// client returns the state of a session. Stateless HTTP clients share a session, so each
// of their calls asks.
func (f *loginFlow) client(s *downstream.Session) *loginClient {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.clients[s]
	if g == nil || s.Stateless() {
		g = &loginClient{slot: make(chan struct{}, 1)}
		f.clients[s] = g
	}
	return g
}

func (f *loginFlow) forget(s *downstream.Session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.clients, s)
}
