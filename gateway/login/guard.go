package login

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"
)

const (
	// requestLimit bounds one request to an authorization server.
	requestLimit = 20 * time.Second
	maxRedirects = 3
)

// newHTTP is a client for what a server's metadata names. A server on the internet
// must not make Goblin ask what only this machine's network reaches (SSRF), so it goes
// to public addresses only, unless the server itself is not public.
func newHTTP(server string) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxResponseHeaderBytes = 256 << 10
	t.DisableKeepAlives = true // a login is few requests, and nothing stays open behind them
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	if public(server) {
		dialer.Control = func(_, address string, _ syscall.RawConn) error {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				return err
			}
			if ip, err := netip.ParseAddr(host); err != nil || private(ip) {
				return guardError(fmt.Sprintf("a server on the internet names the address %s, which is not", host))
			}
			return nil
		}
	}
	t.DialContext = dialer.DialContext
	if r, err := t.Proxy(&http.Request{URL: &url.URL{Scheme: "https", Host: "example.com"}}); err == nil && r != nil {
		t.DialContext = (&net.Dialer{Timeout: 10 * time.Second}).DialContext // the proxy decides
	}
	return &http.Client{Transport: t, Timeout: requestLimit, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		switch {
		case len(via) > maxRedirects:
			return errors.New("too many redirects")
		case req.URL.Scheme != via[0].URL.Scheme || req.URL.Host != via[0].URL.Host:
			return errors.New("redirects to another origin are not followed")
		case req.Method != via[0].Method:
			return errors.New("a redirect that changes the method is not followed")
		}
		return nil
	}}
}

// guardError is the error for an address that must not be asked.
type guardError string

func (e guardError) Error() string { return string(e) }

// public reports whether a server's name has a public address, maybe beside others: who
// gives a name an address of this network, too, must not get at that. One that cannot be
// found counts as public.
func public(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return true
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		return !private(ip)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	return err != nil || slices.ContainsFunc(all, func(ip netip.Addr) bool { return !private(ip) })
}

// local are the blocks besides those that netip knows: this network, shared addresses
// (RFC 6598), benchmarks, reserved ones, and tunnels to those (6to4, local NAT64).
var local = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"),
}

// translated are IPv4 addresses where a network has IPv6 only (RFC 6052).
var translated = netip.MustParsePrefix("64:ff9b::/96")

func private(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if translated.Contains(ip) {
		whole := ip.As16()
		ip = netip.AddrFrom4([4]byte(whole[12:]))
	}
	return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() ||
		slices.ContainsFunc(local, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// keepsSecret reports whether what is sent to an address stays secret: it goes over TLS, or
// does not leave the machine.
func keepsSecret(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || err == nil && ip.Unmap().IsLoopback())
}

// witness remembers what it carried: the library that reads metadata tells less of it.
type witness struct {
	http.RoundTripper
	text  bytes.Buffer // of the last answer, as far as it was read
	fault error        // why there was none
}

func (w *witness) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.RoundTripper.RoundTrip(req)
	w.fault = err
	if err != nil {
		return nil, err
	}
	w.text.Reset()
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(resp.Body, &w.text), resp.Body}
	return resp, nil
}
