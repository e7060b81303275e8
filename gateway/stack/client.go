package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"goblin/gateway/daemon"
	"goblin/gateway/downstream"
	"goblin/gateway/mcpclient"
	"goblin/gateway/oauth"
	"goblin/registry"
	"goblin/registry/report"
)

var errStopped = errors.New("the gateway has stopped")

// Client is a client session inside this process, through which a screen
// acts: for the gateway one like any other.
type Client struct {
	*mcpclient.Client
	stackActions
	serverActions
	stack   *Stack
	session *downstream.Session
	over    chan struct{} // closed when the session has ended
}

// stackActions are the methods that a Client takes from its [Stack] unchanged.
type stackActions interface {
	AddServer(name string, keys map[string]any) error
	RemoveServer(server string) error
	TryServer(ctx context.Context, name string, keys map[string]any) (lacks string, err error)
	SetDisabled(server string, disabled bool) error
	SetEnabled(server string, on bool) error
	SetEntriesDisabled(profile string, on bool, entries ...*registry.Entry) error
	Definition(server string) report.Definition
	Diagnose(ctx context.Context, server string) (report.Diagnosis, error)
}

// serverActions are the methods that a Client takes from [servers.Manager] unchanged.
type serverActions interface {
	Wake(server string) error
	Restart(server string) error
	Logout(ctx context.Context, server string) error
}

// OpenClient opens a session inside this process, with the handshake done. It
// goes on until Close, the end of ctx or the end of Run. name is what the
// session calls itself. Questions of servers go to ask; a nil ask declares that
// there is nobody to ask.
func (i *Stack) OpenClient(ctx context.Context, name string, ask mcpclient.AskFunc) (*Client, error) {
	if !i.addSession() {
		return nil, errStopped
	}
	near, far := net.Pipe()
	c := &Client{stackActions: i, serverActions: i.gateway.Servers, stack: i, over: make(chan struct{})}
	opened := make(chan struct{})
	go func() {
		defer i.serving.Done()
		o := i.localOptions()
		o.Handler = opener{o.Handler, func(s *downstream.Session) { c.session = s; close(opened) }}
		if err := i.serve(ctx, o, downstream.ScreenTransport, far, far, far); err != nil {
			i.o.Logger.Debug("Session ended", "err", err)
		}
		i.screens.Delete(c.session)
		close(c.over)
	}()
	<-opened
	var err error
	c.Client, err = mcpclient.Open(ctx, near, mcpclient.Options{
		Name: name, Version: i.o.Version, Revision: downstream.LatestLegacy, MaxMessage: i.o.Config.Gateway.Limits.Frame,
		Ask: ask, Logger: i.o.Logger.With("session", c.session.ID()),
	})
	if err == nil {
		select {
		case <-c.session.Initialized(): // from now on questions can come
			return c, nil
		case <-c.over:
			err = mcpclient.ErrClosed
		}
	}
	<-c.over
	return nil, fmt.Errorf("open a session: %w", err)
}

// opener reports the session that serves a stream.
type opener struct {
	downstream.Handler
	opened func(*downstream.Session)
}

func (o opener) SessionOpened(s *downstream.Session) {
	o.Handler.SessionOpened(s)
	o.opened(s)
}

// SetScreen makes [Stack.Status] tell where the screen is that acts through c. at
// may be called from any goroutine.
func (c *Client) SetScreen(at func() daemon.Screen) {
	c.stack.screens.Store(c.session, at)
	select {
	case <-c.over: // nobody else would take it out again
		c.stack.screens.Delete(c.session)
	default:
	}
}

// Session is the session's id, as in the registry's tables.
func (c *Client) Session() string { return c.session.ID() }

// InFlight are the requests of all clients that wait for their answers.
func (c *Client) InFlight() []registry.InFlight { return c.stack.gateway.Pending.All() }

// CancelRequest cancels one of those.
func (c *Client) CancelRequest(session, id string) bool {
	return c.stack.gateway.Pending.Cancel(session, id)
}

// SessionDetails tells of a session its profile, its project and what questions of servers its client
// can answer, in a few words each.
func (c *Client) SessionDetails(session string) (facts []string) {
	for _, s := range c.stack.gateway.Sessions() {
		if s.ID() != session || s.IsScreen() {
			continue
		}
		if profile := c.stack.gateway.Views.Profile(s); profile != "" {
			facts = append(facts, "profile "+profile)
		}
		if folder := s.Project(); folder != "" {
			facts = append(facts, "project "+folder)
		}
		var can []string
		for _, q := range []struct {
			word string
			path []string
		}{{"forms", []string{"elicitation"}}, {"URLs", []string{"elicitation", "url"}}, {"sampling", []string{"sampling"}}, {"roots", []string{"roots"}}} {
			if s.HasCapability(q.path...) {
				can = append(can, q.word)
			}
		}
		if len(can) > 0 {
			facts = append(facts, "answers "+strings.Join(can, ", "))
		} else if !s.Stateless() { // each request of those says it anew
			facts = append(facts, "answers no questions")
		}
	}
	return facts
}

// Disconnect ends the session of a client.
func (c *Client) Disconnect(session string) bool {
	return c.stack.gateway.Pending.Disconnect(session)
}

// Login logs the user in at a server by a browser and returns the user's name, or "" if it
// is unknown. show gets the page to open; pasted has URLs that a browser elsewhere ended
// at. agree reports whether the issuer may have the client secret; before is the issuer of
// the last login if that is another one, or "". It must return at the end of its context.
func (c *Client) Login(ctx context.Context, server string, show func(page string), agree func(ctx context.Context, issuer, before string) bool, pasted <-chan string) (user string, err error) {
	return c.stack.gateway.Servers.Login(ctx, server, oauth.UserPrompts{
		Show: show, ReadPasted: pasted,
		ConfirmSecret: func(ctx context.Context, q oauth.SecretQuestion) error {
			if !agree(ctx, q.Issuer, q.PreviousIssuer) {
				return q.Declined()
			}
			return nil
		},
	})
}

// Approve takes tools of a server for good as they were shown, see
// [Stack.Approve].
func (c *Client) Approve(server string, tools []registry.UnapprovedTool) error {
	what := daemon.Approval{Server: server, Seen: make(map[string]string, len(tools))}
	for i := range tools {
		what.Tools = append(what.Tools, tools[i].Name)
		what.Seen[tools[i].Name] = tools[i].Hash
	}
	_, err := c.stack.Approve(context.Background(), what)
	return err
}

// Close is that of [mcpclient.Client], and waits for the gateway's end of the
// session, too.
func (c *Client) Close() error {
	err := c.Client.Close()
	<-c.over
	return err
}
