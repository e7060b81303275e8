// Logins lets calls wait while their users log in at the server: it begins the
// login, asks the client of each call to open its page, and has the server connected when
// somebody has logged in. There is one login at a time for each server, whoever waits for
// it, and none that nobody waits for.
//
// It must not know how a login is made (package oauth), nor what the calls are. Await
// waits for people, for as long as a login may take.

package serverreq

import (
	"context"
	"errors"
	"sync"

	"goblin/gateway/downstream"
	"goblin/gateway/oauth"
	"goblin/gateway/servers"
	"goblin/gateway/upstream"
)

// Logins are those that calls wait for.
type Logins struct {
	servers *servers.Manager
	router  *Router

	mu     sync.Mutex
	closed bool
	flows  map[string]*loginFlow // by server
	work   sync.WaitGroup
}

// NewLogins makes Logins without any.
func NewLogins(servers *servers.Manager, asker *Router) *Logins {
	return &Logins{servers: servers, router: asker, flows: make(map[string]*loginFlow)}
}

// Close ends all logins, and waits for that; none begins any more.
func (l *Logins) Close() {
	l.mu.Lock()
	l.closed = true
	for _, f := range l.flows {
		f.cancel(errShutdown)
	}
	l.mu.Unlock()
	l.work.Wait()
}

// IsLoginRequired reports whether a request failed for want of a login.
func IsLoginRequired(err error) bool {
	var failed *upstream.Error
	return errors.As(err, &failed) && failed.Code == upstream.LoginRequired
}

// Await lets the user of the client that made a request log in at the server which failed
// it with err for want of that. It is nil once somebody has; then the request can be made
// again. Else it is the error for the client: err, where its user cannot be asked.
func (l *Logins) Await(x *downstream.Request, err error) error {
	var failed *upstream.Error
	if !errors.As(err, &failed) || failed.Code != upstream.LoginRequired || !SupportsURLElicitation(x) {
		return err
	}
	b := l.servers.Get(failed.Server)
	if b == nil || b.Authorizer() == nil || !b.Authorizer().ByUser() {
		return err
	}
	f := l.join(b, errors.Is(err, oauth.ErrInsufficientScope))
	if f == nil {
		return err
	}
	defer l.leave(f)
	if why := f.await(x); why != nil {
		return b.LoginError(why, nil)
	}
	return nil
}

// join takes part in the login at a server, which begins if there is none; nil after
// Close. rights says that a login is there, but does not allow the call.
func (l *Logins) join(b *servers.Server, rights bool) *loginFlow {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	f := l.flows[b.Name()]
	if f == nil || f.waiting == 0 {
		f = &loginFlow{logins: l, server: b, moreRights: rights, ready: make(chan struct{}), clients: make(map[*downstream.Session]*loginClient)}
		f.agreed = make(chan struct{})
		f.agree = sync.OnceFunc(func() { close(f.agreed) })
		f.ctx, f.cancel = context.WithCancelCause(context.Background())
		f.done, f.finish = context.WithCancel(context.Background())
		l.flows[b.Name()] = f
		l.work.Go(func() {
			f.run()
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.flows[b.Name()] == f {
				delete(l.flows, b.Name())
			}
		})
	}
	f.waiting++
	return f
}

// leave ends a login that nobody waits for any more.
func (l *Logins) leave(f *loginFlow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.waiting--; f.waiting == 0 {
		f.cancel(errAbandoned)
	}
}
