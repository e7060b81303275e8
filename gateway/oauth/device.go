package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

const (
	deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"
	// devicePause is how long to wait between two questions, where the server names
	// nothing or less than a second, and what it adds when it wants fewer.
	devicePause = 5 * time.Second
	// maxDevicePause is how long at most: a server must not make the user wait for ever.
	maxDevicePause = time.Minute
)

// byDevice is the device authorization grant (RFC 8628): the user enters a code at a page
// that may be on another device, and Goblin asks until that has happened. The listener's
// port is for logins by redirect, which the same client may want later.
func byDevice(ctx context.Context, h *http.Client, o Options, p discovery, ln *net.TCPListener, before *Login, u UserPrompts, again bool) (*Login, error) {
	if p.device == "" {
		return nil, fmt.Errorf("the authorization server %s has no logins by device; log in without --device, over SSH with --no-browser", p.meta.Issuer)
	}
	l, err := begin(ctx, h, o, p, "http://"+ln.Addr().String()+callbackPath, before, true, again)
	if err != nil {
		return nil, err
	}
	if err := l.confirmSecret(ctx, o, before, u, ""); err != nil {
		return nil, err
	}
	d, err := l.device(ctx, h, p.device)
	if err != nil {
		if r, ok := errors.AsType[*answerError](err); ok && (r.code == "invalid_client" || r.code == "unauthorized_client") && l.known(before) && !again {
			return nil, errUnknownClient
		}
		return nil, fmt.Errorf("the authorization server %s begins no login by device: %w", p.meta.Issuer, err)
	}
	page := d.VerificationURIComplete
	if page == "" {
		page = d.VerificationURI
	}
	u.Device(page, d.UserCode)
	if !d.Expiry.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, d.Expiry, timeoutError("the code was not entered while it was valid"+hintLoginAgain))
		defer cancel()
	}
	t, err := l.poll(ctx, h, d)
	if err != nil {
		return nil, fmt.Errorf("the authorization server %s gives no token: %w", p.meta.Issuer, err)
	}
	return l, l.setTokens(t)
}

// device asks for a code that the user can enter.
func (l *Login) device(ctx context.Context, h *http.Client, endpoint string) (*oauth2.DeviceAuthResponse, error) {
	form := url.Values{"resource": {l.Resource}}
	if len(l.Scopes) > 0 {
		form.Set("scope", strings.Join(l.Scopes, " "))
	}
	resp, err := l.post(ctx, h, endpoint, form)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer struct {
		Error string `json:"error"`
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return nil, StripURL(err)
	}
	_ = json.Unmarshal(text, &answer) // else it has no error
	if resp.StatusCode != http.StatusOK || answer.Error != "" {
		why := answer.Error
		if why == "" {
			why = fmt.Sprintf("HTTP status %d", resp.StatusCode)
		}
		return nil, &answerError{code: answer.Error, text: truncate(why)}
	}
	var d oauth2.DeviceAuthResponse
	if json.Unmarshal(text, &d) != nil || d.DeviceCode == "" || d.UserCode == "" || d.VerificationURI == "" {
		return nil, errors.New("its answer holds no code" + hintBadServer)
	}
	if !isWebURL(d.VerificationURI) || d.VerificationURIComplete != "" && !isWebURL(d.VerificationURIComplete) {
		return nil, errors.New("its page to enter the code at is no address of the web" + hintBadServer)
	}
	return &d, nil
}

// isWebURL reports whether an address is one that a browser shows.
func isWebURL(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
}

// poll asks for tokens until the user has entered the code.
func (l *Login) poll(ctx context.Context, h *http.Client, d *oauth2.DeviceAuthResponse) (*oauth2.Token, error) {
	pause := devicePause
	if d.Interval > 0 {
		pause = min(time.Duration(min(d.Interval, 3600))*time.Second, maxDevicePause)
	}
	for {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		t, err := l.ask(ctx, h, deviceGrant, url.Values{"device_code": {d.DeviceCode}}, nil)
		var r *answerError
		switch {
		case err == nil:
			return t, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.As(err, &r) && r.code == "authorization_pending":
		case errors.As(err, &r) && r.code == "slow_down", !isRefused(err): // or it is out of order for a moment
			pause = min(pause+devicePause, maxDevicePause)
		case r.code == "access_denied":
			return nil, errors.New("the login was denied" + hintLoginAgain)
		case r.code == "expired_token":
			return nil, timeoutError("the code was not entered while it was valid" + hintLoginAgain)
		default:
			return nil, fmt.Errorf("%w%s", err, hintLoginAgain)
		}
	}
}
