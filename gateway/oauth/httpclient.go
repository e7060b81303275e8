package oauth

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"goblin/gateway/egress"
)

const (
	requestLimit = 20 * time.Second
	maxRedirects = 3
)

// newHTTP returns a client for requests to a server and to URLs from its metadata.
func newHTTP(server string) *http.Client {
	return &http.Client{Transport: egress.New(server), Timeout: requestLimit, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		switch {
		case len(via) > maxRedirects:
			return errors.New("too many redirects")
		case req.URL.Scheme != via[0].URL.Scheme || req.URL.Host != via[0].URL.Host:
			return errors.New("redirect to another origin refused")
		case req.Method != via[0].Method:
			return errors.New("redirect that changes the method refused")
		}
		return nil
	}}
}

// newHTTP returns a client for requests to URLs that the server named at the login.
func (l *Login) newHTTP(server string) *http.Client {
	h := newHTTP(server)
	if l != nil && l.Local {
		h.Transport.(*egress.Transport).AssumeLocal()
	}
	return h
}

// isLocal reports whether the server of a client from newHTTP is on this machine's
// network.
func isLocal(ctx context.Context, h *http.Client) bool {
	return h.Transport.(*egress.Transport).IsLocal(ctx)
}

// isConfidential reports whether an address uses TLS or stays on this machine.
func isConfidential(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || err == nil && ip.Unmap().IsLoopback())
}

// recordingTransport records the last response, since the library's errors omit its text.
type recordingTransport struct {
	http.RoundTripper
	body  bytes.Buffer
	fault error // error without a response
}

func (w *recordingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.RoundTripper.RoundTrip(req)
	w.fault = err
	if err != nil {
		return nil, err
	}
	w.body.Reset()
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(resp.Body, &w.body), resp.Body}
	return resp, nil
}
