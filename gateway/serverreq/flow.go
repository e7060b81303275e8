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

// Causes for the end of a login.
var (
	errShutdown = errors.New("the daemon ends")
	errNobody   = errors.New("nobody waits for the login any more")
	errAnother  = errors.New("the authorization server wants another page to be opened")
	errRefused  = errors.New("the login was declined")
)

// flow is a login at one server.
type flow struct {
	all     *Logins
	server  *servers.Server
	rights  bool // there is a login, which allows too little
	ctx     context.Context
	end     context.CancelCauseFunc
	waiting int // calls; guarded by Logins.mu

	shown chan struct{} // closed when page and question are there
	page  string
	// question is answered by opening the page; nil if there is none.
	question *oauth.SecretQuestion
	agreed   chan struct{}   // closed when a user has
	agree    func()          // closes it
	over     context.Context // ends when err says what came of it
	close    context.CancelFunc
	err      error // nil: somebody has logged in

	mu     sync.Mutex
	guests map[*downstream.Session]*guest
}

// guest is a client that is asked to open the page: once for all its calls that wait.
type guest struct {
	turn chan struct{} // capacity one: held by the call that asks
	// Guarded by turn.
	asked bool
	err   error // why it does not
}

// run has a user log in, and waits for the server to connect then.
func (f *flow) run() {
	defer f.close()
	defer f.end(nil)
	if f.err = f.logIn(); f.err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(f.ctx, f.server.Config().StartupTimeout)
	defer cancel()
	f.server.AwaitListed(ctx)
}

func (f *flow) logIn() error {
	if !f.rights && !f.server.Authorizer().NeedsUser() { // somebody has, just now
		f.server.LoggedIn()
		return nil
	}
	_, err := f.all.servers.Login(f.ctx, f.server.Name(), oauth.UserPrompts{Show: func(page string) {
		switch f.page {
		case "":
			f.page = page
			close(f.shown)
		case page: // Agree had it
		default: // clients have the first one
			f.end(errAnother)
		}
	}, ConfirmSecret: func(ctx context.Context, q oauth.SecretQuestion) error {
		f.page, f.question = q.Page, &q
		close(f.shown)
		select {
		case <-f.agreed:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}})
	return err
}

// message returns what the user of a client reads before the page is opened.
func (f *flow) message() string {
	about := ""
	if q := f.question; q != nil {
		about = fmt.Sprintf(" Your client secret goes to its authorization server, %s. Continue only if you trust that.", q.Issuer)
		if q.PreviousIssuer != "" {
			about += fmt.Sprintf(" Until now it was %s.", q.PreviousIssuer)
		}
	}
	return fmt.Sprintf("Server %q needs you to log in.%s Open the page in a browser on this machine; then the call goes on.", f.server.Name(), about)
}

// await waits until somebody has logged in, and asks the client of x to open the page.
// The error says why nobody has.
func (f *flow) await(x *downstream.Request) error {
	ctx := x.Context()
	select {
	case <-f.shown:
	case <-f.over.Done():
		return f.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	opened, err := f.invite(ctx, x)
	if err != nil {
		return err
	}
	select {
	case <-f.over.Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if f.err == nil {
		opened()
	}
	return f.err
}

// invite asks the client of x to open the page, unless another of its calls has. It
// returns when the client agrees, or the login is over; opened tells the client that its
// user is done.
func (f *flow) invite(ctx context.Context, x *downstream.Request) (opened func(), err error) {
	nobody := func() {}
	g := f.guest(x.Session())
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-f.over.Done():
		return nobody, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if g.asked {
		return nobody, g.err
	}
	agreed, opened, err := f.all.ask.OpenPage(f.over, x, Page{
		Server: f.server.Name(), URL: f.page, Message: f.message(),
	})
	if agreed {
		f.agree()
	}
	switch {
	case f.over.Err() != nil:
		return opened, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx) // the client's next call asks again
	case err != nil:
		g.err = err
	case !agreed:
		g.err = errRefused
	}
	g.asked = true
	if g.err != nil {
		f.forget(x.Session())
	}
	return opened, g.err
}

// guest is the client of a session. Stateless ones over HTTP are strangers to each other,
// so that each of their calls asks.
func (f *flow) guest(s *downstream.Session) *guest {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.guests[s]
	if g == nil || s.Stateless() {
		g = &guest{turn: make(chan struct{}, 1)}
		f.guests[s] = g
	}
	return g
}

// forget lets calls that come later ask the client anew.
func (f *flow) forget(s *downstream.Session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.guests, s)
}
