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
	// devicePause is the default polling interval, and its increase when the server asks
	// to slow down.
	devicePause = 5 * time.Second
	// maxDevicePause is the maximum polling interval, regardless of the server.
	maxDevicePause = time.Minute
)

// byDevice logs in with the device authorization grant (RFC 8628). The user enters a code
// on a page, possibly on another device, while Goblin polls. The listener's port is
// registered for later logins by redirect.
func byDevice(ctx context.Context, h *http.Client, o Options, p discovery, ln *net.TCPListener, before *Login, u UserPrompts, again bool) (*Login, error) {
	if p.device == "" {
		return nil, fmt.Errorf("the authorization server %s does not support logins by device; log in without --device, or with --no-browser over SSH", p.meta.Issuer)
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
		return nil, fmt.Errorf("start a login by device at the authorization server %s: %w", p.meta.Issuer, err)
	}
	page := d.VerificationURIComplete
	if page == "" {
		page = d.VerificationURI
	}
	u.Device(page, d.UserCode)
	if !d.Expiry.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, d.Expiry, timeoutError("the code expired before it was entered"+hintLoginAgain))
		defer cancel()
	}
	t, err := l.poll(ctx, h, d)
	if err != nil {
		return nil, fmt.Errorf("the authorization server %s issued no token: %w", p.meta.Issuer, err)
	}
	return l, l.setTokens(t)
}

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
	_ = json.Unmarshal(text, &answer)
	if resp.StatusCode != http.StatusOK || answer.Error != "" {
		why := answer.Error
		if why == "" {
			why = fmt.Sprintf("HTTP status %d", resp.StatusCode)
		}
		return nil, &answerError{code: answer.Error, text: truncate(why)}
	}
	var d oauth2.DeviceAuthResponse
	if json.Unmarshal(text, &d) != nil || d.DeviceCode == "" || d.UserCode == "" || d.VerificationURI == "" {
		return nil, errors.New("its answer contains no code" + hintBadServer)
	}
	if !isWebURL(d.VerificationURI) || d.VerificationURIComplete != "" && !isWebURL(d.VerificationURIComplete) {
		return nil, errors.New("its page for the code is not a web address" + hintBadServer)
	}
	return &d, nil
}

func isWebURL(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
}

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
		case errors.As(err, &r) && r.code == "slow_down", !isRefused(err):
			pause = min(pause+devicePause, maxDevicePause)
		case r.code == "access_denied":
			return nil, errors.New("the login was denied" + hintLoginAgain)
		case r.code == "expired_token":
			return nil, timeoutError("the code expired before it was entered" + hintLoginAgain)
		default:
			return nil, fmt.Errorf("%w%s", err, hintLoginAgain)
		}
	}
}
