package oauth

import (
	"cmp"
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
	"unicode"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

func (l *Login) setTokens(t *oauth2.Token) error {
	if kind := t.TokenType; kind != "" && !strings.EqualFold(kind, "bearer") {
		return fmt.Errorf("the authorization server %s issued a token of the type %q; only bearer tokens are supported%s", l.Issuer, truncate(kind), hintBadServer)
	}
	for _, token := range []string{t.AccessToken, t.RefreshToken} {
		if len(token) > maxToken || strings.ContainsFunc(token, unicode.IsControl) {
			return fmt.Errorf("the authorization server %s issued a token that is too long or contains control characters%s", l.Issuer, hintBadServer)
		}
	}
	// Round strips the monotonic clock, which stops while a laptop sleeps.
	l.Access, l.Since, l.EndReason = t.AccessToken, time.Now().Round(0), ""
	if t.RefreshToken != "" {
		l.Refresh = t.RefreshToken
	}
	l.Expiry = time.Time{}
	if !t.Expiry.IsZero() {
		l.Expiry = t.Expiry.Round(0)
	}
	if text, _ := t.Extra("scope").(string); text != "" {
		l.Scopes = limitScopes(strings.Fields(text))
	}
	id, _ := t.Extra("id_token").(string)
	// An access token may contain only a user id, so it doesn't replace a name.
	l.User = cmp.Or(tokenUser(id), l.User, tokenUser(t.AccessToken))
	return nil
}

// tokenUser returns the user in a JWT, or "". It doesn't check the signature, as the name
// is only displayed.
func tokenUser(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(parts[1]) > 16<<10 {
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return ""
	}
	var claims map[string]any
	if json.Unmarshal(text, &claims) != nil {
		return ""
	}
	for _, claim := range []string{"preferred_username", "email", "name", "sub"} {
		if s, _ := claims[claim].(string); strings.TrimSpace(s) != "" {
			return truncate(strings.TrimSpace(s))
		}
	}
	return ""
}

// addAssertion adds a signed client assertion to a form if the secret is a private key.
// Otherwise it returns the secret to send.
func (l *Login) addAssertion(form url.Values) (secret string, err error) {
	if !strings.HasPrefix(strings.TrimSpace(l.ClientSecret), "-----BEGIN") {
		return l.ClientSecret, nil
	}
	assertion, err := sign(l.ClientSecret, l.Client.ID, l.Issuer)
	form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
	form.Set("client_assertion", assertion)
	return "", err
}

// post sends a form to an endpoint other than the token endpoint.
func (l *Login) post(ctx context.Context, h *http.Client, endpoint string, form url.Values) (*http.Response, error) {
	secret, err := l.addAssertion(form)
	if err != nil {
		return nil, err
	}
	form.Set("client_id", l.Client.ID)
	if secret != "" && !l.Client.Basic {
		form.Set("client_secret", secret)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, errors.New("invalid address of the endpoint")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if secret != "" && l.Client.Basic {
		req.SetBasicAuth(url.QueryEscape(l.Client.ID), url.QueryEscape(secret))
	}
	resp, err := h.Do(req)
	if err != nil {
		return nil, StripURL(err)
	}
	return resp, nil
}

// ask sends a request to the token endpoint. Its errors contain nothing that was sent.
func (l *Login) ask(ctx context.Context, h *http.Client, grant string, params url.Values, scopes []string) (*oauth2.Token, error) {
	params.Set("grant_type", grant)
	params.Set("resource", l.Resource) // RFC 8707
	secret, err := l.addAssertion(params)
	if err != nil {
		return nil, err
	}
	style := l.Client.authStyle()
	if secret == "" {
		style = oauth2.AuthStyleInParams
	}
	c := clientcredentials.Config{
		ClientID: l.Client.ID, ClientSecret: secret, TokenURL: l.TokenURL, Scopes: scopes, EndpointParams: params, AuthStyle: style,
	}
	t, err := c.Token(context.WithValue(ctx, oauth2.HTTPClient, h))
	if err != nil {
		return nil, redactError(err, secret, params)
	}
	return t, nil
}

// sign returns a client assertion (RFC 7523) signed with the private key. The audience is
// the issuer, as the draft that updates the RFC requires: an assertion for one server
// must not work at another.
func sign(key, id, audience string) (string, error) {
	now := time.Now()
	claims := jwt.RegisteredClaims{
		Issuer: id, Subject: id, Audience: jwt.ClaimStrings{audience}, ID: rand.Text(),
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(time.Minute)),
	}
	if k, err := jwt.ParseECPrivateKeyFromPEM([]byte(key)); err == nil {
		method := map[int]jwt.SigningMethod{256: jwt.SigningMethodES256, 384: jwt.SigningMethodES384, 521: jwt.SigningMethodES512}[k.Curve.Params().BitSize]
		if method == nil {
			return "", errors.New("unsupported curve of the private key in oauth.client_secret")
		}
		return jwt.NewWithClaims(method, claims).SignedString(k)
	}
	if k, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(key)); err == nil {
		return jwt.NewWithClaims(jwt.SigningMethodRS256, claims).SignedString(k)
	}
	if k, err := jwt.ParseEdPrivateKeyFromPEM([]byte(key)); err == nil {
		return jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims).SignedString(k)
	}
	return "", errors.New("unsupported private key in oauth.client_secret (supported: EC, RSA and Ed25519 in PEM)")
}

type answerError struct {
	code  string // protocol code or ""
	text  string
	final bool // the request is wrong; false for temporary failures
}

func (e *answerError) Error() string { return e.text }

func isRefused(err error) bool {
	var r *answerError
	return errors.As(err, &r) && r.final
}

// redactError returns the error of a token request without the parameters, which a server
// may repeat.
func redactError(err error, secret string, params url.Values) error {
	var r *oauth2.RetrieveError
	if !errors.As(err, &r) {
		if text := err.Error(); strings.Contains(text, "oauth2: cannot parse") || strings.Contains(text, "oauth2: server response missing") {
			return errors.New("its answer contains no token" + hintBadServer)
		}
		return StripURL(err)
	}
	status := r.Response.StatusCode
	text := fmt.Sprintf("HTTP status %d", status)
	if r.ErrorCode != "" {
		text = strings.TrimSuffix(r.ErrorCode+": "+r.ErrorDescription, ": ")
	}
	for _, sent := range []string{secret, params.Get("refresh_token"), params.Get("code"), params.Get("code_verifier"), params.Get("device_code"), params.Get("client_assertion")} {
		if sent != "" {
			text = strings.ReplaceAll(text, sent, "***")
		}
	}
	e := &answerError{code: r.ErrorCode, text: truncate(text)}
	switch {
	case status >= 500, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout:
	case e.code == "temporarily_unavailable", e.code == "server_error", e.code == "slow_down":
	default: // some servers send only an HTTP status, others 200 with an error code
		e.final = e.code != "" || status >= 400
	}
	return e
}

const (
	maxText  = 300      // of an authorization server's text in an error
	maxToken = 64 << 10 // longer headers are not accepted
)

// truncate returns untrusted text as one line of limited length.
func truncate(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	return strings.ToValidUTF8(s[:min(len(s), maxText)], "")
}
