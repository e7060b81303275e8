package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	// renewLimit bounds a refresh, with the wait for other processes: less than what a
	// server has to show that it is there, for that asks with the login, too.
	renewLimit = 20 * time.Second
	// faultTime is how long a keyring that failed is left alone: it may be unlocked.
	faultTime = 5 * time.Second
)

// Authorizer gives the requests to one server their tokens. It may be used by any
// number of goroutines; several, in any number of processes, can be for one login.
type Authorizer struct {
	o           Options
	folder      string
	store       *loginStore
	log         *slog.Logger
	renewal     singleflight.Group
	invalidated atomic.Bool // an edit of the config made the login no login

	mu      sync.Mutex
	login   *Login // nil: none
	version time.Time
	fault   error     // why the login could not be read
	asked   time.Time // when
	attempt *attempt  // nil: nobody logs in
	untried string    // access token of the last refresh here, until the server accepts it
}

// NewAuthorizer returns the Authorizer of a server whose login is kept in folder. It
// reads nothing yet.
func NewAuthorizer(folder string, o Options, log *slog.Logger) *Authorizer {
	return &Authorizer{o: o, folder: folder, store: newLoginStore(folder, o), log: log}
}

// NeedsUser reports whether nothing but a login by the user helps, in whatever process.
func (a *Authorizer) NeedsUser() bool {
	l, err := a.current()
	return errors.Is(err, ErrNotLoggedIn) && !a.o.ClientCredentials || err == nil && l.EndReason != ""
}

// MissingLogin says why nobody is logged in; nil if somebody is.
func (a *Authorizer) MissingLogin() error {
	l, err := a.current()
	if err == nil {
		err = l.unusableReason()
	}
	return err
}

// unusableReason returns why a login cannot be used any more.
func (l *Login) unusableReason() error {
	if l.EndReason == "" {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrRefused, l.EndReason)
}

// ByUser reports whether it is a user who logs in, rather than Goblin itself.
func (a *Authorizer) ByUser() bool { return !a.o.ClientCredentials }

// Invalidate stops the Authorizer from sending tokens and secrets if the stored login does not
// fit next, which replaces it after an edit of the config. It reports whether it did.
func (a *Authorizer) Invalidate(next *Authorizer) bool {
	l, err := next.store.load()
	if err != nil || next.o.mismatch(l) == nil {
		return false
	}
	a.invalidated.Store(true)
	return true
}

// current is the login, read again if it has changed.
func (a *Authorizer) current() (*Login, error) {
	if a.invalidated.Load() {
		return nil, ErrNotLoggedIn
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	version := a.store.version()
	if version.IsZero() {
		a.login, a.version = nil, version
		return nil, ErrNotLoggedIn
	}
	if !version.Equal(a.version) || a.fault != nil && time.Since(a.asked) > faultTime {
		a.login, a.fault = a.load()
		a.version, a.asked = version, time.Now()
	}
	return a.login, a.fault
}

// load reads the login. One that does not fit the options is [ErrNotLoggedIn].
func (a *Authorizer) load() (*Login, error) {
	if a.invalidated.Load() {
		return nil, ErrNotLoggedIn
	}
	l, err := a.store.load()
	if err == nil {
		err = a.o.mismatch(l)
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// know takes over what this process has just kept, with the lock of the login held: two
// changes can be of one moment.
func (a *Authorizer) know(l *Login) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.login, a.fault, a.version = l, nil, a.store.version()
}

// Identity is who is logged in at a server, for people to see.
type Identity struct {
	User    string    // as far as the tokens say so, else the account of the config
	Expires time.Time // when the login ends; zero: nobody knows
	Renews  bool      // it is refreshed, and has no end
}

// Identity tells who is logged in, and whether anybody is.
func (a *Authorizer) Identity() (who Identity, ok bool) {
	l, err := a.current()
	if err != nil || l.EndReason != "" {
		return Identity{}, false
	}
	who = Identity{User: cmp.Or(l.User, a.o.Account), Expires: l.Expiry.UTC(), Renews: l.Refresh != "" || a.o.ClientCredentials}
	if a.o.ClientCredentials {
		who.User = cmp.Or(l.User, a.o.ClientID)
	}
	if who.Renews {
		who.Expires = time.Time{}
	}
	return who, true
}

// Authorization is the header for a request to the server, "" if nobody is logged in.
// A token that is about to end is refreshed first; while the authorization server is
// out of order, one that has not ended goes on. The error of a login that is of no
// use any more is [ErrRefused].
func (a *Authorizer) Authorization(ctx context.Context) (string, error) {
	l, err := a.current()
	switch {
	case errors.Is(err, ErrNotLoggedIn) && a.o.ClientCredentials:
	case errors.Is(err, ErrNotLoggedIn):
		return "", nil
	case err != nil:
		return "", err
	case l.EndReason != "":
		return "", l.unusableReason()
	case !l.needsRefresh():
		return "Bearer " + l.Access, nil
	}
	next, err := a.renew(ctx, l)
	if err != nil {
		if l != nil && !l.isExpired() && !errors.Is(err, ErrRefused) {
			return "Bearer " + l.Access, nil
		}
		return "", err
	}
	return "Bearer " + next.Access, nil
}

// HandleRefusal handles a refusal of a request with this header: by 401, or by 403 because
// rights are missing. again reports whether the same request was refused with another
// header before. Refused reports whether there is a better one now; if not, the error
// says what to do, or is nil if the refusal is not about the login.
func (a *Authorizer) HandleRefusal(ctx context.Context, header string, again bool, status int, answer http.Header) (better bool, err error) {
	_, scopes, code := parseChallenges(answer)
	if status == http.StatusForbidden {
		if code != "insufficient_scope" {
			return false, nil
		}
		if l, err := a.current(); err == nil && len(union(l.RequiredScopes, scopes)) > len(l.RequiredScopes) {
			_ = a.change(ctx, func(l *Login) { l.RequiredScopes = union(l.RequiredScopes, scopes) }) // else it asks for less than it could
		}
		if len(scopes) == 0 {
			return false, ErrInsufficientScope
		}
		return false, fmt.Errorf("%w (scope %s)", ErrInsufficientScope, truncate(strings.Join(scopes, " ")))
	}
	l, err := a.current()
	if header == "" && !a.o.ClientCredentials {
		if errors.Is(err, ErrNotLoggedIn) { // with the reason
			return false, err
		}
		return false, ErrNotLoggedIn
	}
	switch {
	case err != nil:
		return false, err
	case l.EndReason != "":
		return false, l.unusableReason()
	case header != "Bearer "+l.Access:
		return true, nil
	case again && a.isUntried(l.Access):
		return false, a.end(ctx, l, reasonRefused)
	}
	if _, err := a.renew(ctx, l); err != nil {
		return false, err
	}
	return true, nil
}

// reasonRefused is the reason of a login whose tokens the server refuses even after a refresh.
const reasonRefused = "the server refuses tokens that were just given"

// RecordAccepted notes that the server accepted a request with this header. If it refuses the
// same token later, Refused refreshes that again.
func (a *Authorizer) RecordAccepted(header string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.untried != "" && header == "Bearer "+a.untried {
		a.untried = ""
	}
}

// isUntried reports whether a token comes from a refresh here and no request with it was
// accepted yet.
func (a *Authorizer) isUntried(token string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return token != "" && token == a.untried
}

// Abandon closes the login whose token is in header and returns the reason: the server
// refused one request with several fresh tokens.
func (a *Authorizer) Abandon(ctx context.Context, header string) error {
	if l, err := a.current(); err == nil && header == "Bearer "+l.Access {
		return a.end(ctx, l, reasonRefused)
	}
	return fmt.Errorf("%w: %s", ErrRefused, reasonRefused)
}

// end notes that a login is of no use any more.
func (a *Authorizer) end(ctx context.Context, l *Login, why string) error {
	access := l.Access
	_ = a.change(ctx, func(l *Login) { // if it is not noted, the next refusal does so
		if l.Access == access {
			l.EndReason, l.Access, l.Refresh = why, "", ""
		}
	})
	return fmt.Errorf("%w: %s", ErrRefused, why)
}

// change edits the login that is kept.
func (a *Authorizer) change(ctx context.Context, edit func(*Login)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewLimit) // whoever waits for the answer
	defer cancel()
	release, err := a.store.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	l, err := a.load()
	if err != nil {
		return err
	}
	edit(l)
	return a.save(l)
}

// save stores a login. The caller holds its lock.
func (a *Authorizer) save(l *Login) error {
	notice, err := a.store.save(l)
	if err != nil {
		return fmt.Errorf("keep the login: %w", err)
	}
	a.logNotice(notice)
	a.know(l)
	return nil
}

// logNotice logs why a login is in a file, if there is a notice.
func (a *Authorizer) logNotice(notice string) {
	if notice != "" {
		a.log.Warn("a login went into a file", "server", a.o.Server, "why", notice)
	}
}

// renew gets other tokens than those of old, which is nil if there are none: once for
// all calls, and once for all processes.
func (a *Authorizer) renew(ctx context.Context, old *Login) (*Login, error) {
	stale := ""
	if old != nil {
		stale = old.Access
	}
	done := a.renewal.DoChan(stale, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewLimit) // others wait for it, too
		defer cancel()
		return a.renewNow(ctx, stale)
	})
	select {
	case r := <-done:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*Login), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (a *Authorizer) renewNow(ctx context.Context, stale string) (*Login, error) {
	release, err := a.store.lock(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock the login: %w", err)
	}
	defer release()
	l, err := a.load()
	h := l.newHTTP(a.o.URL)
	switch {
	case errors.Is(err, ErrNotLoggedIn) && a.o.ClientCredentials && !a.invalidated.Load():
		return a.loginMachine(ctx, h)
	case err != nil:
		return nil, err
	case l.EndReason != "":
		return nil, l.unusableReason()
	case l.Access != stale && !l.needsRefresh():
		return l, nil // another process was faster
	}
	grant, params := "refresh_token", url.Values{"refresh_token": {l.Refresh}}
	if a.o.ClientCredentials {
		grant, params = "client_credentials", url.Values{}
	} else if l.Refresh == "" {
		return nil, a.endLocked(l, "the login has ended, and the authorization server gave nothing to go on with")
	}
	switch err := l.refreshSecret(ctx, a.o); {
	case errors.Is(err, errNewSecret):
		return nil, a.endLocked(l, err.Error())
	case err != nil:
		return nil, err
	}
	var scopes []string
	if a.o.ClientCredentials {
		scopes = l.Scopes
	}
	t, err := l.ask(ctx, h, grant, params, scopes)
	switch {
	case err != nil && isRefused(err):
		return nil, a.endLocked(l, err.Error())
	case err != nil:
		return nil, fmt.Errorf("the authorization server %s does not refresh the login: %w", l.Issuer, err)
	}
	if err := l.setTokens(t); err != nil {
		return nil, err
	}
	a.mu.Lock()
	a.untried = l.Access
	a.mu.Unlock()
	return l, a.save(l)
}

// endLocked is end for callers that hold the lock.
func (a *Authorizer) endLocked(l *Login, why string) error {
	l.EndReason, l.Access, l.Refresh = why, "", ""
	if err := a.save(l); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", ErrRefused, why)
}

// loginMachine logs in by client credentials.
func (a *Authorizer) loginMachine(ctx context.Context, h *http.Client) (*Login, error) {
	p, err := discover(ctx, h, a.o, a.o.Issuer)
	if err != nil {
		return nil, err
	}
	l, err := byClientCredentials(ctx, h, a.o, p)
	if err != nil {
		return nil, err
	}
	l.Local = isLocal(ctx, h)
	return l, a.save(l)
}

// Logout is [Logout] for the login of the Authorizer.
func (a *Authorizer) Logout(ctx context.Context) error { return Logout(ctx, a.folder, a.o) }

// ErrNotRevoked is the error of a logout that removed the tokens here, but could not revoke them.
var ErrNotRevoked = errors.New("the tokens are forgotten, but the authorization server did not take them back")

// Logout takes the tokens back at the authorization server (RFC 7009) and forgets
// them, and what the user agreed to; the client that was registered is kept for the next
// login. A login that does not fit the config is taken back without the client secret. The error is
// ErrNotRevoked if they could not be taken back, which changes nothing of the rest, and
// ErrNotLoggedIn if there was no login. With any other, the login is there still.
func Logout(ctx context.Context, folder string, o Options) error {
	rec := newLoginStore(folder, o)
	if rec.version().IsZero() {
		return ErrNotLoggedIn
	}
	ctx, cancel := context.WithTimeout(ctx, renewLimit)
	defer cancel()
	release, err := rec.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	l, err := rec.load()
	if err != nil {
		return rec.forget(err)
	}
	if l.Access == "" && l.Refresh == "" && !l.SecretAgreed {
		return ErrNotLoggedIn
	}
	none := l.Access == "" && l.Refresh == ""
	if !l.Client.Registered && o.mismatch(l) != nil {
		l.ClientSecret = ""
	}
	fault := l.revoke(ctx, l.newHTTP(o.URL))
	l.SecretAgreed = false
	if !l.Client.Registered {
		l.ClientSecret = ""
	}
	l.Access = ""
	l.Refresh = ""
	l.User = ""
	l.Expiry = time.Time{}
	l.EndReason = "logged out"
	if _, err := rec.save(l); err != nil {
		return rec.forget(err)
	}
	switch {
	case none:
		return ErrNotLoggedIn
	case fault != nil:
		return fmt.Errorf("%w: %w", ErrNotRevoked, fault)
	}
	return nil
}

// revoke takes tokens back, the refresh token first.
func (l *Login) revoke(ctx context.Context, h *http.Client) error {
	if l.RevokeURL == "" {
		return nil
	}
	var fault error
	for _, token := range []struct{ kind, value string }{{"refresh_token", l.Refresh}, {"access_token", l.Access}} {
		if token.value == "" {
			continue
		}
		resp, err := l.post(ctx, h, l.RevokeURL, url.Values{"token": {token.value}, "token_type_hint": {token.kind}})
		if err != nil {
			fault = errors.Join(fault, err)
			continue
		}
		_ = resp.Body.Close()
		if resp.StatusCode >= 300 {
			fault = errors.Join(fault, fmt.Errorf("HTTP status %d", resp.StatusCode))
		}
	}
	return fault
}

func union(all, more []string) []string {
	for _, s := range more {
		if !slices.Contains(all, s) && len(all) < 200 {
			all = append(all, s)
		}
	}
	return all
}
