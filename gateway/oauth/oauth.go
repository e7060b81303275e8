// Package oauth logs in at remote servers with OAuth 2.1 and keeps the tokens.
//
// Discovery, registration and challenges use the official SDK (oauthex, auth), which
// checks issuers, schemes and sizes. Token requests use golang.org/x/oauth2. The SDK's
// handler of the whole flow is not used: it keeps tokens in one process and refreshes
// them without the resource. Keyrings come from gateway/secrets.
//
// The package must not know connections, start browsers or print. Its errors never
// contain tokens, codes or secrets.
package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"goblin/gateway/config"
)

// Options configures a server's login. Only URL is required.
type Options struct {
	Config  string // path of the config file
	Server  string // server name in the config
	URL     string // of the server
	Account string // servers with the same account share a login

	ClientID     string
	ClientSecret string
	// Secret resolves ClientSecret when needed; nil: ClientSecret is the value.
	Secret            func(context.Context) (string, error)
	MetadataURL       string   // client id metadata document
	Scopes            []string // to request; nil: the server's
	RedirectPort      int      // of the loopback redirect; 0: any
	Issuer            string   // the only permitted authorization server
	ClientCredentials bool     // grant client_credentials: no user, no browser
	Version           string   // Goblin's version, for User-Agent
}

// ServerOptions returns the Options of a server. ok is false if it has no logins: it is
// local, its config disables them or has an Authorization header, or its URL contains
// references. Tokens are bound to the URL. resolve resolves the client secret if needed.
func ServerOptions(path string, s *config.Server, version string, resolve config.Resolver) (Options, bool) {
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return Options{}, false
		}
	}
	o := s.OAuth
	options := Options{
		Config: path, Server: s.Name, URL: s.URL, Account: o.Account, Version: version,
		ClientID: o.ClientID, ClientSecret: o.ClientSecret, MetadataURL: o.MetadataURL, Scopes: o.Scopes,
		RedirectPort: o.RedirectPort, Issuer: o.Issuer, ClientCredentials: o.ClientCredentials,
	}
	if s.IsReference(o.ClientSecret) {
		options.Secret = func(ctx context.Context) (string, error) {
			now, err := s.Resolve(ctx, resolve)
			if err != nil {
				return "", err
			}
			return now.OAuth.ClientSecret, nil
		}
	}
	return options, s.URL != "" && !o.Off && !s.IsReference(s.URL)
}

func (o *Options) secret(ctx context.Context) (string, error) {
	if o.Secret == nil {
		return o.ClientSecret, nil
	}
	return o.Secret(ctx)
}

// Login is a stored login.
type Login struct {
	Server   string `json:"server"`
	URL      string `json:"url"`
	Resource string `json:"resource"`
	Issuer   string `json:"issuer"`
	Client   client `json:"client"`

	TokenURL  string `json:"token_url"`
	RevokeURL string `json:"revoke_url,omitempty"`
	Local     bool   `json:"local,omitempty"` // the server was on this machine's network

	Scopes         []string  `json:"scopes,omitempty"` // granted
	RequiredScopes []string  `json:"wanted,omitempty"` // required by a refused call
	User           string    `json:"user,omitempty"`   // from the tokens, if known
	Since          time.Time `json:"since"`            // time of the tokens
	Expiry         time.Time `json:"expiry,omitzero"`  // of the access token; zero: unknown
	EndReason      string    `json:"over,omitempty"`   // reason why the tokens are unusable, or ""

	ClientCredentials bool `json:"machine,omitempty"` // grant client_credentials
	SecretAgreed      bool `json:"agreed,omitempty"`  // the user agreed to send ClientSecret to Issuer

	tokens
}

// tokens are stored in a keyring if there is one.
type tokens struct {
	Access       string `json:"access,omitempty"`
	Refresh      string `json:"refresh,omitempty"`
	ClientSecret string `json:"client_secret,omitempty"`
}

// client is Goblin's registration at an authorization server.
type client struct {
	ID         string   `json:"id"`
	Registered bool     `json:"registered,omitempty"` // by Goblin itself
	Redirects  []string `json:"redirects,omitempty"`  // registered ones
	Basic      bool     `json:"basic,omitempty"`      // sends the secret in a header
	Device     bool     `json:"device,omitempty"`     // may also log in by device
}

// ErrNotLoggedIn is the error without a login. ErrRefused is the error of a login that
// the server no longer accepts. ErrInsufficientScope is the error of a login that doesn't
// permit a request.
var (
	ErrNotLoggedIn       error = userError("not logged in")
	ErrRefused           error = userError("the login is no longer valid")
	ErrInsufficientScope error = userError("the login lacks permission for this")
)

// userError is an error that only a login by the user fixes.
type userError string

func (e userError) Error() string { return string(e) }

// NeedsUser reports whether only a login by the user fixes an error of this package.
func NeedsUser(err error) bool {
	var e userError
	return errors.As(err, &e)
}

// needsRefresh reports whether the access token expired or is in the last fifth of its
// lifetime (at most one minute).
func (l *Login) needsRefresh() bool {
	ahead := min(time.Minute, l.Expiry.Sub(l.Since)/5)
	return l.Access == "" || !l.Expiry.IsZero() && time.Until(l.Expiry) < ahead
}

func (l *Login) isExpired() bool {
	return l.Access == "" || !l.Expiry.IsZero() && time.Now().After(l.Expiry)
}

func origin(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("not a URL")
	}
	return u.Scheme + "://" + u.Host, nil
}
