package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"goblin/registry/termtext"
)

// SecretQuestion asks the user whether to send the configured client secret.
type SecretQuestion struct {
	Server         string // server name in the config
	Issuer         string // authorization server that would receive the secret
	PreviousIssuer string // issuer of the last login, or "" if equal or unknown
	Page           string // login page, or "" for a login by device
}

// Declined returns the error of a login whose user declined.
func (q *SecretQuestion) Declined() error {
	return fmt.Errorf("oauth.client_secret not sent to %s: you declined%s; log in again, or set oauth.issuer to the right authorization server",
		q.Issuer, q.earlier())
}

func (q *SecretQuestion) noUserError() error {
	return fmt.Errorf("oauth.client_secret not sent to %s, which the server names: no user approved it%s; run \"%s\" in a terminal, or set oauth.issuer: %s",
		q.Issuer, q.earlier(), termtext.Goblin("login", q.Server), q.Issuer)
}

func (q *SecretQuestion) earlier() string {
	if q.PreviousIssuer == "" {
		return ""
	}
	return fmt.Sprintf(" (previously %s)", q.PreviousIssuer)
}

func (o *Options) hasSecret() bool { return o.ClientID != "" && o.ClientSecret != "" }

// confirmSecret returns nil if the client secret of l may be sent to its issuer. Without
// oauth.issuer the user decides, once per secret and issuer. A registered client's secret
// comes from its issuer and needs no consent.
func (l *Login) confirmSecret(ctx context.Context, o Options, before *Login, u UserPrompts, page string) error {
	if !o.hasSecret() {
		return nil
	}
	agreed := before != nil && before.SecretAgreed
	if o.Issuer == "" && !(agreed && before.Issuer == l.Issuer && before.ClientSecret == l.ClientSecret) {
		q := SecretQuestion{Server: o.Server, Issuer: l.Issuer, Page: page}
		if before != nil && before.Issuer != l.Issuer { // also after a logout
			q.PreviousIssuer = before.Issuer
		}
		if u.ConfirmSecret == nil {
			return q.noUserError()
		}
		if err := u.ConfirmSecret(ctx, q); err != nil {
			return err
		}
	}
	l.SecretAgreed = true
	return nil
}

// preferred returns the issuer to choose if a server names several: the config's, or the
// one that the user agreed to.
func (o *Options) preferred(before *Login) string {
	if o.Issuer == "" && before != nil && before.SecretAgreed {
		return before.Issuer
	}
	return o.Issuer
}

func (o *Options) mismatch(l *Login) error {
	why := ""
	own := l.Client.Registered || l.Client.ID == o.MetadataURL
	switch {
	case l.URL != o.URL || !slices.Contains(resources(o.URL), l.Resource):
		why = "it is for another url"
	case o.Issuer != "" && !sameIssuer(o.Issuer, l.Issuer):
		why = fmt.Sprintf("it is for the authorization server %s, but oauth.issuer is %s", truncate(l.Issuer), o.Issuer)
	case o.ClientID != "" && o.ClientID != l.Client.ID, o.ClientID == "" && !own:
		why = "it is for another client than the config's"
	case l.EndReason == "" && o.ClientCredentials != l.ClientCredentials:
		why = "it is for another oauth.grant"
	case o.ClientCredentials && o.Issuer == "":
		why = "oauth.grant: client_credentials requires oauth.issuer"
	case !o.ClientCredentials && o.ClientID != "" && l.EndReason == "":
		why = o.secretMismatch(l)
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("%w: stored login ignored: %s", ErrNotLoggedIn, why)
}

// secretMismatch returns the reason why a stored login's client secret doesn't match the
// config's, or "".
func (o *Options) secretMismatch(l *Login) string {
	switch {
	case o.hasSecret() != (l.ClientSecret != ""):
		return "oauth.client_secret was added or removed"
	case !o.hasSecret() || o.Issuer != "":
		return ""
	case !l.SecretAgreed:
		return fmt.Sprintf("no user approved sending oauth.client_secret to %s", truncate(l.Issuer))
	case o.Secret == nil && o.ClientSecret != l.ClientSecret: // references are compared before sending
		return "oauth.client_secret was changed"
	}
	return ""
}

// refreshSecret sets the client secret for a refresh. A referenced secret may have a new
// value, which needs the user's consent unless oauth.issuer is set.
func (l *Login) refreshSecret(ctx context.Context, o Options) error {
	if !o.hasSecret() {
		return nil
	}
	secret, err := o.secret(ctx)
	if err != nil {
		return err
	}
	if o.Issuer == "" && secret != l.ClientSecret {
		return errNewSecret
	}
	l.ClientSecret = secret
	return nil
}

var errNewSecret = errors.New("oauth.client_secret was changed")

func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// isPlainIssuer reports whether an issuer is valid (RFC 8414, section 2) and its host
// obvious. A user name or a look-alike letter would disguise the host.
func isPlainIssuer(issuer string) bool {
	u, err := url.Parse(issuer)
	return err == nil && u.Host != "" && u.User == nil &&
		!strings.ContainsFunc(issuer, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`?#\`, c) })
}

// resources returns the permitted resource values in a server's metadata (RFC 9728): its
// URL with and without a trailing slash, and its origin.
func resources(server string) []string {
	all := []string{server}
	if trimmed := strings.TrimSuffix(server, "/"); trimmed != server {
		all = append(all, trimmed)
	}
	if base, err := origin(server); err == nil {
		all = append(all, base, base+"/")
	}
	return all
}
