package login

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// accept takes the tokens of an answer into a login.
func (l *Login) accept(t *oauth2.Token) error {
	if kind := t.TokenType; kind != "" && !strings.EqualFold(kind, "bearer") {
		return fmt.Errorf("the authorization server gives a token of the type %q; only bearer tokens are understood", kind)
	}
	l.Access, l.Since, l.Over = t.AccessToken, time.Now(), ""
	if t.RefreshToken != "" { // else the one of before goes on
		l.Refresh = t.RefreshToken
	}
	l.Expiry = time.Time{}
	if !t.Expiry.IsZero() {
		l.Expiry = t.Expiry
	}
	if text, _ := t.Extra("scope").(string); text != "" {
		l.Scopes = strings.Fields(text)
	}
	id, _ := t.Extra("id_token").(string)
	for _, token := range []string{id, t.AccessToken} {
		if user := userOf(token); user != "" {
			l.User = user
			break
		}
	}
	return nil
}

// userOf is whom a token is for, as far as it is a JWT that says so. It is shown, and
// nothing is decided by it, so its signature is not looked at.
func userOf(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(parts[1]) > 16<<10 {
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return ""
	}
	var claims struct {
		Email    string `json:"email"`
		Username string `json:"preferred_username"`
		Name     string `json:"name"`
		Subject  string `json:"sub"`
	}
	if json.Unmarshal(text, &claims) != nil {
		return ""
	}
	for _, s := range []string{claims.Email, claims.Username, claims.Name, claims.Subject} {
		if s != "" {
			return s[:min(len(s), 200)]
		}
	}
	return ""
}

// ask sends a request to the token endpoint, other than for a code.
func (l *Login) ask(ctx context.Context, h *http.Client, grant string, params url.Values, scopes []string) (*oauth2.Token, error) {
	params.Set("grant_type", grant)
	params.Set("resource", l.Resource) // RFC 8707
	secret := l.ClientSecret
	if strings.HasPrefix(strings.TrimSpace(secret), "-----BEGIN") {
		assertion, err := sign(secret, l.Client.ID, l.Issuer)
		if err != nil {
			return nil, err
		}
		params.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		params.Set("client_assertion", assertion)
		secret = ""
	}
	style := l.Client.style()
	if secret == "" {
		style = oauth2.AuthStyleInParams
	}
	c := clientcredentials.Config{
		ClientID: l.Client.ID, ClientSecret: secret, TokenURL: l.TokenURL, Scopes: scopes, EndpointParams: params, AuthStyle: style,
	}
	return c.Token(context.WithValue(ctx, oauth2.HTTPClient, h))
}

// sign makes an assertion of who the client is (RFC 7523), by its private key. The
// audience is the issuer, as the draft that updates it wants: an assertion for one server
// must not serve at another.
func sign(key, id, audience string) (string, error) {
	now := time.Now()
	claims := jwt.RegisteredClaims{
		Issuer: id, Subject: id, Audience: jwt.ClaimStrings{audience}, ID: rand.Text(),
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(time.Minute)),
	}
	if k, err := jwt.ParseECPrivateKeyFromPEM([]byte(key)); err == nil {
		method := map[int]jwt.SigningMethod{256: jwt.SigningMethodES256, 384: jwt.SigningMethodES384, 521: jwt.SigningMethodES512}[k.Curve.Params().BitSize]
		if method == nil {
			return "", errors.New("the private key in oauth.client_secret has a curve that no method of signing has")
		}
		return jwt.NewWithClaims(method, claims).SignedString(k)
	}
	if k, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(key)); err == nil {
		return jwt.NewWithClaims(jwt.SigningMethodRS256, claims).SignedString(k)
	}
	if k, err := jwt.ParseEdPrivateKeyFromPEM([]byte(key)); err == nil {
		return jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims).SignedString(k)
	}
	return "", errors.New("oauth.client_secret begins as a private key, but is none that is understood (EC, RSA or Ed25519 in PEM)")
}

// refused reports whether an authorization server took a login for wrong, rather than
// being out of order.
func refused(err error) bool {
	var r *oauth2.RetrieveError
	return errors.As(err, &r) && r.Response.StatusCode >= 400 && r.Response.StatusCode < 500 &&
		r.Response.StatusCode != http.StatusTooManyRequests && r.Response.StatusCode != http.StatusRequestTimeout
}

// tell is an error of a token request without what it was asked with.
func tell(err error) error {
	var r *oauth2.RetrieveError
	switch {
	case !errors.As(err, &r):
		return plain(err)
	case r.ErrorCode == "":
		return fmt.Errorf("HTTP status %d", r.Response.StatusCode)
	case r.ErrorDescription != "":
		return fmt.Errorf("%s: %s", limited(r.ErrorCode), limited(r.ErrorDescription))
	}
	return errors.New(limited(r.ErrorCode))
}

// limited is foreign text in one line of a bearable length.
func limited(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	return s[:min(len(s), 300)]
}
