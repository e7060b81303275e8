package login

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
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
	t.DisableKeepAlives = true // a login is few requests, and nothing stays open behind them
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	if public(server) {
		dialer.Control = func(_, address string, _ syscall.RawConn) error {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				return err
			}
			if ip, err := netip.ParseAddr(host); err != nil || private(ip) {
				return fmt.Errorf("a server on the internet names the address %s, which is not", host)
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

// public reports whether a server's name has a public address. One that cannot be
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
	for _, ip := range all {
		if private(ip) {
			return false
		}
	}
	return err != nil || len(all) > 0
}

var shared = netip.MustParsePrefix("100.64.0.0/10") // RFC 6598

func private(ip netip.Addr) bool {
	ip = ip.Unmap()
	return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast() ||
		ip.IsMulticast() || ip.IsUnspecified() || shared.Contains(ip)
}
