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

// Logins lets calls wait while their users log in at a server. Each server has at most
// one login at a time, shared by all its calls. A login is cancelled when no call waits
// for it.
type Logins struct {
	servers *servers.Manager
	router  *Router

	mu     sync.Mutex
	closed bool
	flows  map[string]*loginFlow
	work   sync.WaitGroup
}

// NewLogins returns Logins without any login.
func NewLogins(servers *servers.Manager, asker *Router) *Logins {
	return &Logins{servers: servers, router: asker, flows: make(map[string]*loginFlow)}
}

// Close cancels all logins, prevents new ones and waits.
func (l *Logins) Close() {
	l.mu.Lock()
	l.closed = true
	for _, f := range l.flows {
		f.cancel(errShutdown)
	}
	l.mu.Unlock()
	l.work.Wait()
}

// IsLoginRequired reports whether a request failed because a login is missing.
func IsLoginRequired(err error) bool {
	var failed *upstream.Error
	return errors.As(err, &failed) && failed.Code == upstream.LoginRequired
}

// Await asks the client of a request that failed with err to log in at the server, and
// waits. It may block as long as a login takes. It returns nil after a login, so the
// request can be retried. Otherwise it returns the error for the client, which is err if
// the user can't be asked.
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

// join returns the login at a server, starting one if needed, or nil after Close. rights
// is set if a login exists but doesn't permit the call.
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

func (l *Logins) leave(f *loginFlow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.waiting--; f.waiting == 0 {
		f.cancel(errAbandoned)
	}
}
