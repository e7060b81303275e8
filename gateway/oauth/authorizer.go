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
	// renewLimit is the maximum duration of a refresh, including the wait for other
	// processes. It is below the liveness timeout, because liveness checks need tokens
	// too.
	renewLimit = 20 * time.Second
	// faultTime is the time before a failed keyring is read again. The user may unlock
	// it.
	faultTime = 5 * time.Second
)

// Authorizer provides tokens for the requests to one server. It is safe for concurrent
// use; many Authorizers and processes can share one login.
type Authorizer struct {
	o           Options
	folder      string
	store       *loginStore
	log         *slog.Logger
	renewal     singleflight.Group
	invalidated atomic.Bool // a config change invalidated the login

	mu      sync.Mutex
	login   *Login
	version time.Time
	fault   error     // of the last read
	asked   time.Time // time of the last read
	attempt *attempt  // nil without running login
	untried string    // refreshed token that the server has not accepted yet
}

// NewAuthorizer returns the Authorizer of a server whose login is stored in folder. It
// reads nothing yet.
func NewAuthorizer(folder string, o Options, log *slog.Logger) *Authorizer {
	return &Authorizer{o: o, folder: folder, store: newLoginStore(folder, o), log: log}
}

// NeedsUser reports whether only a login by the user helps, in any process.
func (a *Authorizer) NeedsUser() bool {
	l, err := a.current()
	return errors.Is(err, ErrNotLoggedIn) && !a.o.ClientCredentials || err == nil && l.EndReason != ""
}

// MissingLogin returns the reason why there is no usable login, or nil.
func (a *Authorizer) MissingLogin() error {
	l, err := a.current()
	if err == nil {
		err = l.unusableReason()
	}
	return err
}

func (l *Login) unusableReason() error {
	if l.EndReason == "" {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrRefused, l.EndReason)
}

// ByUser reports whether a user logs in rather than Goblin itself.
func (a *Authorizer) ByUser() bool { return !a.o.ClientCredentials }

// Invalidate stops the Authorizer from sending tokens and secrets if the stored login
// doesn't match its successor next. It reports whether it did.
func (a *Authorizer) Invalidate(next *Authorizer) bool {
	l, err := next.store.load()
	if err != nil || next.o.mismatch(l) == nil {
		return false
	}
	a.invalidated.Store(true)
	return true
}

// current returns the login and rereads it after changes.
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

// load reads the login. It returns [ErrNotLoggedIn] if the login doesn't match the
// options.
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

// know records a login that this process just saved. The caller holds the login's lock:
// two changes can have the same time.
func (a *Authorizer) know(l *Login) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.login, a.fault, a.version = l, nil, a.store.version()
}

// Identity describes the current login for display.
type Identity struct {
	User    string    // from the tokens, otherwise the config's account
	Expires time.Time // zero if unknown
	Renews  bool      // refreshed automatically
}

// Identity returns the current login; ok is false without one.
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

// Authorization returns the header for a request, or "" without a login. It first
// refreshes a token that expires soon. If the authorization server fails, it returns a
// token that is still valid. It returns [ErrRefused] for an unusable login.
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

// HandleRefusal handles a 401, or a 403 because of missing scopes, for a request with
// header. again is set if the request was refused before with another header. better
// reports whether a retry with a new header makes sense. Otherwise err explains what to
// do, or is nil if the refusal has other reasons.
func (a *Authorizer) HandleRefusal(ctx context.Context, header string, again bool, status int, answer http.Header) (better bool, err error) {
	_, scopes, code := parseChallenges(answer)
	if status == http.StatusForbidden {
		if code != "insufficient_scope" {
			return false, nil
		}
		if l, err := a.current(); err == nil && len(union(l.RequiredScopes, scopes)) > len(l.RequiredScopes) {
			_ = a.change(ctx, func(l *Login) { l.RequiredScopes = union(l.RequiredScopes, scopes) }) // on failure the next login requests fewer scopes
		}
		if len(scopes) == 0 {
			return false, ErrInsufficientScope
		}
		return false, fmt.Errorf("%w (scope %s)", ErrInsufficientScope, truncate(strings.Join(scopes, " ")))
	}
	l, err := a.current()
	if header == "" && !a.o.ClientCredentials {
		if errors.Is(err, ErrNotLoggedIn) { // includes the reason
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

const reasonRefused = "the server refuses fresh tokens"

// RecordAccepted records that the server accepted a request with header. If the server
// refuses that token later, HandleRefusal refreshes it again.
func (a *Authorizer) RecordAccepted(header string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.untried != "" && header == "Bearer "+a.untried {
		a.untried = ""
	}
}

func (a *Authorizer) isUntried(token string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return token != "" && token == a.untried
}

// Abandon invalidates the login with the token in header and returns the reason: the server
// refused one request with several fresh tokens.
func (a *Authorizer) Abandon(ctx context.Context, header string) error {
	if l, err := a.current(); err == nil && header == "Bearer "+l.Access {
		return a.end(ctx, l, reasonRefused)
	}
	return fmt.Errorf("%w: %s", ErrRefused, reasonRefused)
}

func (a *Authorizer) end(ctx context.Context, l *Login, why string) error {
	access := l.Access
	_ = a.change(ctx, func(l *Login) { // on failure the next refusal tries again
		if l.Access == access {
			l.EndReason, l.Access, l.Refresh = why, "", ""
		}
	})
	return fmt.Errorf("%w: %s", ErrRefused, why)
}

func (a *Authorizer) change(ctx context.Context, edit func(*Login)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewLimit) // regardless of the caller
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

func (a *Authorizer) save(l *Login) error {
	notice, err := a.store.save(l)
	if err != nil {
		return fmt.Errorf("save the login: %w", err)
	}
	a.logNotice(notice)
	a.know(l)
	return nil
}

func (a *Authorizer) logNotice(notice string) {
	if notice != "" {
		a.log.Warn("login stored in a file", "server", a.o.Server, "why", notice)
	}
}

// renew refreshes the tokens of old, which may be nil. Concurrent calls and processes
// refresh only once.
func (a *Authorizer) renew(ctx context.Context, old *Login) (*Login, error) {
	stale := ""
	if old != nil {
		stale = old.Access
	}
	done := a.renewal.DoChan(stale, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewLimit) // others wait for it too
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
		return nil, a.endLocked(l, "the login expired and the authorization server issued no refresh token")
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
		return nil, fmt.Errorf("refresh the login at the authorization server %s: %w", l.Issuer, err)
	}
	if err := l.setTokens(t); err != nil {
		return nil, err
	}
	a.mu.Lock()
	a.untried = l.Access
	a.mu.Unlock()
	return l, a.save(l)
}

func (a *Authorizer) endLocked(l *Login, why string) error {
	l.EndReason, l.Access, l.Refresh = why, "", ""
	if err := a.save(l); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", ErrRefused, why)
}

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

// Logout is [Logout] for this Authorizer.
func (a *Authorizer) Logout(ctx context.Context) error { return Logout(ctx, a.folder, a.o) }

// ErrNotRevoked is the error of a logout that deleted the tokens but could not revoke
// them.
var ErrNotRevoked = errors.New("the tokens were deleted here but not revoked at the authorization server")

// Logout revokes the tokens (RFC 7009) and deletes them and the user's consent. It keeps
// the registered client for the next login. If the login doesn't match the config, it
// revokes without the client secret.
//
// It returns ErrNotRevoked if only revoking failed, and ErrNotLoggedIn if there was no
// login. After any other error the login still exists.
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
