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
	"goblin/registry/candidate"
	"goblin/registry/recording"
	"goblin/registry/report"
	"goblin/registry/savedcall"
)

var errStopped = errors.New("the gateway has stopped")

// Client is a UI's client session in this process.
type Client struct {
	*mcpclient.Client
	stackActions
	serverActions
	savedActions
	saved   *savedCalls
	stack   *Stack
	session *downstream.Session
	over    chan struct{} // closed with the session
}

// stackActions are unchanged methods of [Stack].
type stackActions interface {
	OpenConfig(server string) (path string, line int, reload func() report.Reload, err error)
	ServerEntry(server string) (*report.ServerEntry, error)
	PreviewEdit(edit report.ServerEdit) (*report.EditPreview, error)
	TryEdit(ctx context.Context, edit report.ServerEdit) (lacks string, err error)
	SaveEdit(edit report.ServerEdit) (report.Reload, error)
	ClientServers() (*candidate.ClientServers, error)
	SearchRegistry(ctx context.Context, words []string) (*candidate.SearchResult, error)
	AddDefinition(ctx context.Context, d *candidate.Definition, untested bool) (lacks string, err error)
	RemoveServer(server string) error
	SetDisabled(server string, disabled bool) error
	SetEnabled(server string, on bool) error
	SetEntriesDisabled(profile string, on bool, entries ...*registry.Entry) error
	Definition(server string) report.Definition
	Diagnose(ctx context.Context, server string) (report.Diagnosis, error)
	Recording() *report.Recording
	TrafficHead() ([]recording.Line, error)
	ToggleRecording() (running, stopped *report.Recording, err error)
	AddRule(text string) (uint64, error)
	ChangeRule(id uint64, text string) error
	SetRuleEnabled(id uint64, on bool) error
	RemoveRule(id uint64) error
	DecideStop(id uint64, d registry.Decision) error
	RevokeApproval(id string) error
	Redact(text string) string
}

// savedActions are unchanged methods of savedCalls.
type savedActions interface {
	SavedCalls() (*savedcall.Folder, error)
	StoredAnswer(name string) ([]byte, error)
	SaveCall(name string, c *savedcall.Call, overwrite bool) (where string, err error)
	StoreAnswer(name string, answer []byte) error
	MoveSavedCall(from, to string, keep bool) error
	DeleteSavedCall(name string) error
}

// serverActions are unchanged methods of [servers.Manager].
type serverActions interface {
	Wake(server string) error
	Restart(server string) error
	Logout(ctx context.Context, server string) error
}

// OpenClient opens an initialized session in this process until Close, the end of ctx or
// of Run. ask answers requests from servers; if nil, the client declares no such
// capability.
func (i *Stack) OpenClient(ctx context.Context, name string, ask mcpclient.AskFunc) (*Client, error) {
	if !i.addSession() {
		return nil, errStopped
	}
	near, far := net.Pipe()
	c := &Client{stackActions: i, serverActions: i.gateway.Servers, savedActions: &i.saved, saved: &i.saved, stack: i, over: make(chan struct{})}
	opened := make(chan struct{})
	go func() {
		defer i.serving.Done()
		o := i.localOptions()
		o.Handler = opener{o.Handler, func(s *downstream.Session) { c.session = s; close(opened) }}
		if err := i.serve(ctx, o, downstream.ScreenTransport, far, far, far); err != nil {
			i.o.Logger.Debug("session closed", "err", err)
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
		case <-c.session.Initialized(): // requests can arrive now
			return c, nil
		case <-c.over:
			err = mcpclient.ErrClosed
		}
	}
	<-c.over
	return nil, fmt.Errorf("open a session: %w", err)
}

type opener struct {
	downstream.Handler
	opened func(*downstream.Session)
}

func (o opener) SessionOpened(s *downstream.Session) {
	o.Handler.SessionOpened(s)
	o.opened(s)
}

// SetScreen adds the location of the UI to [Stack.Status]. at may be called from any
// goroutine.
func (c *Client) SetScreen(at func() daemon.Screen) {
	c.stack.screens.Store(c.session, at)
	select {
	case <-c.over: // its cleanup may be over
		c.stack.screens.Delete(c.session)
	default:
	}
}

// Session returns the session id.
func (c *Client) Session() string { return c.session.ID() }

// InFlight returns all clients' requests in flight.
func (c *Client) InFlight() []registry.InFlight { return c.stack.gateway.Pending.All() }

// CancelRequest cancels a request in flight.
func (c *Client) CancelRequest(session, id string) bool {
	return c.stack.gateway.Pending.Cancel(session, id)
}

// SessionDetails describes a session's profile, project and capabilities.
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
			facts = append(facts, "supports "+strings.Join(can, ", "))
		} else if !s.Stateless() { // they declare them per request
			facts = append(facts, "no elicitation, no sampling")
		}
	}
	return facts
}

// Disconnect closes a client's session.
func (c *Client) Disconnect(session string) bool {
	return c.stack.gateway.Pending.Disconnect(session)
}

// Login logs the user in at a server with a browser and returns the user's name, or "".
// show receives the page to open. pasted receives the final URL of another machine's
// browser. agree reports whether the issuer may have the client secret, until its context
// ends. before is the last login's issuer if it differs.
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

// Approve approves tools as they were shown; see [Stack.Approve].
func (c *Client) Approve(server string, tools []registry.UnapprovedTool) error {
	what := daemon.Approval{Server: server, Seen: make(map[string]string, len(tools))}
	for i := range tools {
		what.Tools = append(what.Tools, tools[i].Name)
		what.Seen[tools[i].Name] = tools[i].Hash
	}
	_, err := c.stack.Approve(context.Background(), what)
	return err
}

// Close waits until the gateway has closed the session.
func (c *Client) Close() error {
	err := c.Client.Close()
	<-c.over
	return err
}
