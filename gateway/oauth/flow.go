package oauth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"goblin/gateway/config"
)

const (
	loginTimeout = 10 * time.Minute
	callbackPath = "/callback"
)

// UserPrompts connects a login with its user.
type UserPrompts struct {
	// Show shows the login page. It must not block.
	Show func(url string)
	// ReadPasted receives the final URL of a browser on another machine; may be nil.
	ReadPasted <-chan string
	// Device shows a page for any device and the code to enter there. If set, it replaces
	// the redirect (RFC 8628).
	Device func(url, code string)
	// ConfirmSecret asks the user whether to send the configured client secret, and waits
	// for the answer. A nil error means yes. It must return when ctx is done. If it is
	// not set, the secret is not sent.
	ConfirmSecret func(ctx context.Context, q SecretQuestion) error
}

// LogIn logs a user in at a server within ten minutes and stores the login in folder.
// notice is the reason if the tokens are stored in a file, or "".
func LogIn(ctx context.Context, folder string, o Options, u UserPrompts) (l *Login, notice string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, loginTimeout, errTimeout)
	defer cancel()
	rec := newLoginStore(folder, o)
	before, _ := rec.load() // replaces a damaged one
	h := newHTTP(o.URL)
	p, err := discover(ctx, h, o, o.preferred(before))
	if err != nil {
		return nil, "", cause(ctx, err)
	}
	if o.ClientCredentials {
		l, err = byClientCredentials(ctx, h, o, p)
	} else {
		l, err = byUser(ctx, h, o, p, before, u)
	}
	if err != nil {
		return nil, "", cause(ctx, err)
	}
	l.Local = isLocal(ctx, h)
	release, err := rec.lock(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("save the login: %w", err)
	}
	defer release()
	if notice, err = rec.save(l); err != nil {
		return nil, "", fmt.Errorf("save the login: %w", err)
	}
	return l, notice, nil
}

func byUser(ctx context.Context, h *http.Client, o Options, p discovery, before *Login, u UserPrompts) (*Login, error) {
	ln, err := listen(ctx, o, before)
	if err != nil {
		return nil, err
	}
	defer ln.Close()
	way := byBrowser
	if u.Device != nil {
		way = byDevice
	}
	l, err := way(ctx, h, o, p, ln, before, u, false)
	if errors.Is(err, errUnknownClient) {
		l, err = way(ctx, h, o, p, ln, before, u, true)
	}
	return l, err
}

var errUnknownClient = errors.New("the authorization server does not know this client")

var errTimeout error = timeoutError(fmt.Sprintf("no login within %s", config.ShortDuration(loginTimeout)) + hintLoginAgain)

type timeoutError string

func (e timeoutError) Error() string { return string(e) }

// Is makes the error match context.DeadlineExceeded.
func (timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// listen opens the redirect port: that of the config, or that of the last login, since
// the authorization server may compare it, or any.
func listen(ctx context.Context, o Options, before *Login) (*net.TCPListener, error) {
	open := func(host string) (*net.TCPListener, error) {
		var c net.ListenConfig
		ln, err := c.Listen(ctx, "tcp", host)
		if err != nil {
			return nil, err
		}
		return ln.(*net.TCPListener), nil
	}
	if o.RedirectPort != 0 {
		ln, err := open(net.JoinHostPort("127.0.0.1", strconv.Itoa(o.RedirectPort)))
		if err != nil {
			return nil, fmt.Errorf("oauth.redirect_port (another login may be running): %w", err)
		}
		return ln, nil
	}
	if before != nil {
		for _, redirect := range before.Client.Redirects {
			if r, err := url.Parse(redirect); err == nil && r.Hostname() == "127.0.0.1" { // ignores addresses in a damaged record
				if ln, err := open(r.Host); err == nil {
					return ln, nil
				}
			}
		}
	}
	return open("127.0.0.1:0")
}

// byBrowser performs the authorization code flow with PKCE (RFC 7636).
func byBrowser(ctx context.Context, h *http.Client, o Options, p discovery, ln *net.TCPListener, before *Login, u UserPrompts, again bool) (*Login, error) {
	redirect := "http://" + ln.Addr().String() + callbackPath
	l, err := begin(ctx, h, o, p, redirect, before, false, again)
	if err != nil {
		return nil, err
	}
	authCode := oauth2.Config{
		ClientID: l.Client.ID, RedirectURL: redirect, Scopes: l.Scopes, Endpoint: oauth2.Endpoint{AuthURL: p.meta.AuthorizationEndpoint},
	}
	state, verifier := rand.Text(), oauth2.GenerateVerifier()
	params := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", p.resource)}
	if slices.Contains(l.Scopes, "offline_access") { // required for a refresh token (OpenID Connect Core, section 11)
		params = append(params, oauth2.SetAuthURLParam("prompt", "consent"))
	}
	page := authCode.AuthCodeURL(state, params...)
	if l.known(before) && !again && isUnknownClient(ctx, h, page) {
		return nil, errUnknownClient
	}
	if err := l.confirmSecret(ctx, o, before, u, page); err != nil {
		return nil, err
	}
	code, err := awaitRedirect(ctx, ln, u, page, func(q url.Values) (string, error) { return parseRedirect(q, state, p) })
	if err != nil {
		return nil, err
	}
	t, err := l.ask(ctx, h, "authorization_code", url.Values{"code": {code}, "redirect_uri": {redirect}, "code_verifier": {verifier}}, nil)
	if err != nil {
		if r, ok := errors.AsType[*answerError](err); ok && r.code == "invalid_client" && l.known(before) && !again {
			return nil, errUnknownClient
		}
		return nil, fmt.Errorf("the authorization server %s issued no token: %w%s", p.meta.Issuer, err, hintLoginAgain)
	}
	return l, l.setTokens(t)
}

func begin(ctx context.Context, h *http.Client, o Options, p discovery, redirect string, before *Login, device, again bool) (*Login, error) {
	who, secret, err := identify(ctx, h, o, p, redirect, before, device, again)
	if err != nil {
		return nil, err
	}
	return newLogin(o, p, who, secret, before), nil
}

func newLogin(o Options, p discovery, who client, secret string, before *Login) *Login {
	return &Login{
		Server: o.Server, URL: o.URL, Resource: p.resource, Issuer: p.meta.Issuer, Client: who,
		TokenURL: p.meta.TokenEndpoint, RevokeURL: p.meta.RevocationEndpoint, Scopes: requestedScopes(o, p, before),
		tokens: tokens{ClientSecret: secret},
	}
}

func (l *Login) known(before *Login) bool {
	return l.Client.Registered && before != nil && before.Client.ID == l.Client.ID
}

// requestedScopes returns the scopes to request: the config's, otherwise the server's. If a
// call was refused for missing scopes, it adds them and the scopes granted before.
func requestedScopes(o Options, p discovery, before *Login) []string {
	scopes := slices.Clone(o.Scopes)
	if scopes == nil {
		scopes = slices.Clone(p.scopes)
		if slices.Contains(p.meta.ScopesSupported, "offline_access") {
			scopes = append(scopes, "offline_access")
		}
	}
	if before != nil && before.Issuer == p.meta.Issuer && len(before.RequiredScopes) > 0 {
		scopes = slices.Concat(scopes, before.Scopes, before.RequiredScopes)
	}
	seen := make(map[string]bool)
	return slices.DeleteFunc(scopes, func(s string) bool {
		known := seen[s]
		seen[s] = true
		return known
	})
}

// isUnknownClient requests the login page like a browser and reports whether the
// authorization server forgot the client.
func isUnknownClient(ctx context.Context, h *http.Client, page string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, http.NoBody)
	if err != nil {
		return false
	}
	look := *h
	look.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := look.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		text = []byte(resp.Header.Get("Location"))
	}
	return resp.StatusCode >= 300 && resp.StatusCode < 500 &&
		(strings.Contains(string(text), "invalid_client") || strings.Contains(string(text), "unauthorized_client"))
}

func parseRedirect(q url.Values, state string, p discovery) (string, error) {
	if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) != 1 {
		return "", errForeignRedirect
	}
	iss, promised := q.Get("iss"), p.meta.AuthorizationResponseIssParameterSupported
	switch {
	case iss == "" && promised:
		return "", errors.New("the redirect lacks the promised issuer (iss)" + hintLoginAgain)
	case iss != "" && iss != p.meta.Issuer:
		return "", errors.New("the redirect comes from another authorization server (iss)" + hintLoginAgain)
	}
	if code := q.Get("error"); code != "" {
		if code == "access_denied" {
			return "", errors.New("the login was denied" + hintLoginAgain)
		}
		return "", fmt.Errorf("the authorization server refused: %s%s", truncate(strings.TrimSpace(code+" "+q.Get("error_description"))), hintLoginAgain)
	}
	if q.Get("code") == "" {
		return "", errors.New("the redirect has no code" + hintLoginAgain)
	}
	return q.Get("code"), nil
}

// errForeignRedirect is the error of a redirect of another login. This login continues.
var errForeignRedirect = errors.New("this redirect does not belong to the current login")

func awaitRedirect(ctx context.Context, ln *net.TCPListener, u UserPrompts, page string, check func(url.Values) (string, error)) (string, error) {
	type answer struct {
		code string
		err  error
	}
	answers := make(chan answer, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+callbackPath, func(w http.ResponseWriter, r *http.Request) {
		code, err := check(r.URL.Query())
		writePage(w, err)
		if errors.Is(err, errForeignRedirect) {
			return
		}
		select {
		case answers <- answer{code, err}:
		default:
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = server.Serve(reusableListener{ln})
		_ = ln.SetDeadline(time.Time{})
	}()
	defer func() {
		soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if server.Shutdown(soon) != nil { // lets the browser finish loading
			_ = server.Close()
		}
		<-over
	}()
	u.Show(page)
	for {
		select {
		case a := <-answers:
			return a.code, a.err
		case text, ok := <-u.ReadPasted:
			if !ok {
				u.ReadPasted = nil
				continue
			}
			pasted, err := url.Parse(strings.TrimSpace(text))
			if err != nil {
				return "", errors.New("the pasted text is not a URL; start the login again and paste the full final address of the browser")
			}
			return check(pasted.Query())
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// reusableListener keeps a listener open after its server stopped, because a second
// attempt needs the same port.
type reusableListener struct{ *net.TCPListener }

// Close interrupts Accept.
func (l reusableListener) Close() error { return l.SetDeadline(time.Now()) }

func writePage(w http.ResponseWriter, err error) {
	head := w.Header()
	head.Set("Content-Type", "text/html; charset=utf-8")
	head.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	head.Set("Cache-Control", "no-store")
	title, text := "You are logged in", "You can close this page."
	if err != nil {
		title, text = "Login failed", err.Error()
		w.WriteHeader(http.StatusBadRequest)
	}
	_, _ = fmt.Fprintf(w, `<!doctype html><title>Goblin</title>
<style>body{font:1.1rem system-ui;display:grid;place-content:center;min-height:90vh;text-align:center;color-scheme:light dark}</style>
<h1>%s</h1><p>%s</p>
`, title, html.EscapeString(text))
}

// byClientCredentials logs in without a user (RFC 6749 section 4.4).
func byClientCredentials(ctx context.Context, h *http.Client, o Options, p discovery) (*Login, error) {
	if o.Issuer == "" {
		return nil, fmt.Errorf("oauth.grant: client_credentials requires oauth.issuer, since no user can approve sending the secret to %s; set oauth.issuer to the right authorization server", p.meta.Issuer)
	}
	secret, err := o.secret(ctx)
	if err != nil {
		return nil, err
	}
	if o.ClientID == "" || secret == "" {
		return nil, errors.New("oauth.grant: client_credentials requires oauth.client_id and oauth.client_secret")
	}
	methods := p.meta.TokenEndpointAuthMethodsSupported
	who := client{ID: o.ClientID, Basic: len(methods) == 0 || slices.Contains(methods, "client_secret_basic")}
	l := newLogin(o, p, who, secret, nil)
	l.ClientCredentials = true
	t, err := l.ask(ctx, h, "client_credentials", url.Values{}, l.Scopes)
	if err != nil {
		return nil, fmt.Errorf("the authorization server %s issued no token: %w%s", p.meta.Issuer, err, hintLoginAgain)
	}
	return l, l.setTokens(t)
}
