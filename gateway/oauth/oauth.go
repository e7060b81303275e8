// Package oauth logs in at remote servers with OAuth 2.1 and keeps the tokens.
//
// Discovery, registration and challenges are those of the official SDK (oauthex, auth),
// which check issuers, schemes and sizes; requests for tokens are golang.org/x/oauth2's.
// The SDK's handler of the whole flow is not used: it keeps tokens in one process, and
// refreshes them without the resource. Keyrings are those of gateway/secrets.
//
// The package knows no connection to a server, starts no browser and prints nothing. No
// error of it holds a token, a code or a secret.
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

// Options configure a server's login. All but URL may be missing.
type Options struct {
	Config  string // the config file, of which the login is
	Server  string // the server's name in it
	URL     string // of the server
	Account string // logins of the same account are one; "": the server's own

	ClientID     string
	ClientSecret string
	// Secret gives ClientSecret when it is needed; nil: it is what ClientSecret says.
	Secret            func(context.Context) (string, error)
	MetadataURL       string   // a client id metadata document
	Scopes            []string // to ask for; nil: what the server names
	RedirectPort      int      // of the loopback redirect; 0: any
	Issuer            string   // the only authorization server to log in at
	ClientCredentials bool     // the grant client_credentials: no user, no browser
	Version           string   // of Goblin, for the User-Agent
}

// ServerOptions returns the Options of a server, and whether it can have a login: a remote one
// can, unless its config says that it has none, or holds what it wants as a header. One
// whose URL is not known before it starts cannot: tokens are bound to the URL.
// resolve gives the client's secret if the config refers to one.
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

// secret is the client's.
func (o *Options) secret(ctx context.Context) (string, error) {
	if o.Secret == nil {
		return o.ClientSecret, nil
	}
	return o.Secret(ctx)
}

// Login is the record of one that is kept.
type Login struct {
	Server   string `json:"server"`
	URL      string `json:"url"`
	Resource string `json:"resource"`
	Issuer   string `json:"issuer"`
	Client   client `json:"client"`

	TokenURL  string `json:"token_url"`
	RevokeURL string `json:"revoke_url,omitempty"`
	Local     bool   `json:"local,omitempty"` // the server was on this machine's network at the login

	Scopes         []string  `json:"scopes,omitempty"` // granted
	RequiredScopes []string  `json:"wanted,omitempty"` // that a refused call needs
	User           string    `json:"user,omitempty"`   // whom the tokens are for, as far as they say so
	Since          time.Time `json:"since"`            // of the tokens
	Expiry         time.Time `json:"expiry,omitzero"`  // of the access token; zero: unknown
	EndReason      string    `json:"over,omitempty"`   // why the tokens are of no use any more

	ClientCredentials bool `json:"machine,omitempty"` // by the grant client_credentials
	SecretAgreed      bool `json:"agreed,omitempty"`  // Issuer may have the config's ClientSecret

	tokens
}

// tokens are the part of a Login that a keyring takes, where there is one.
type tokens struct {
	Access       string `json:"access,omitempty"`
	Refresh      string `json:"refresh,omitempty"`
	ClientSecret string `json:"client_secret,omitempty"`
}

// client is Goblin as an authorization server knows it.
type client struct {
	ID         string   `json:"id"`
	Registered bool     `json:"registered,omitempty"` // by Goblin itself
	Redirects  []string `json:"redirects,omitempty"`  // that were registered
	Basic      bool     `json:"basic,omitempty"`      // the secret goes into a header
	Device     bool     `json:"device,omitempty"`     // it may log in by device, too
}

// ErrNotLoggedIn is the error of a server without a login, ErrRefused the one of a login that the
// server no longer accepts, ErrInsufficientScope the one of a login that does not allow a request.
var (
	ErrNotLoggedIn       error = userError("nobody is logged in")
	ErrRefused           error = userError("the login is over")
	ErrInsufficientScope error = userError("the login does not allow this")
)

// userError is an error that only a login by the user mends.
type userError string

func (e userError) Error() string { return string(e) }

// NeedsUser reports whether only a login by the user mends an error of this package.
func NeedsUser(err error) bool {
	var e userError
	return errors.As(err, &e)
}

// needsRefresh reports whether the access token has expired, or is in the last fifth of its lifetime, one
// minute at most.
func (l *Login) needsRefresh() bool {
	ahead := min(time.Minute, l.Expiry.Sub(l.Since)/5)
	return l.Access == "" || !l.Expiry.IsZero() && time.Until(l.Expiry) < ahead
}

// isExpired reports whether the access token has expired.
func (l *Login) isExpired() bool {
	return l.Access == "" || !l.Expiry.IsZero() && time.Now().After(l.Expiry)
}

// origin is the scheme, host and port of a URL.
func origin(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("not a URL")
	}
	return u.Scheme + "://" + u.Host, nil
}
