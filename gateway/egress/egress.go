// Package egress restricts HTTP requests to the addresses that a remote server may name.
//
// A remote server must not make Goblin send requests to addresses that only this machine
// or its network reaches (SSRF). So a [Transport] connects to public addresses only,
// unless the server itself has a private one. It checks the addresses of connections,
// because a name can resolve differently at each lookup. A proxy from the environment
// does its own lookups. With a proxy, only hosts that are private without a lookup are
// refused.
//
// Methods are safe for concurrent use and block as long as a request.
package egress

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/idna"
)

const (
	dialLimit = 10 * time.Second
	// maxHead is in bytes.
	maxHead = 256 << 10
)

// RefusedError is the error for a request to a private address that a public server
// named.
type RefusedError string

func (e RefusedError) Error() string {
	return fmt.Sprintf("a public server names the private address %s", string(e))
}

// Transport is an http.RoundTripper for requests to a server and to URLs from its
// metadata. It keeps no idle connections.
type Transport struct {
	server  *url.URL
	direct  *http.Transport
	proxied *http.Transport
	probed  sync.Once

	proxy func(*http.Request) (*url.URL, error)
	// isPrivate reports whether an address is outside the internet.
	isPrivate func(netip.Addr) bool

	mu      sync.Mutex
	public  bool // the server answered from a public address
	private bool // the server answered from a private address
}

// New returns a Transport for the server at a URL.
func New(server string) *Transport {
	t := &Transport{server: &url.URL{}, proxy: http.ProxyFromEnvironment, isPrivate: isPrivate}
	if u, err := url.Parse(server); err == nil {
		t.server = u
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxResponseHeaderBytes = maxHead
	base.DisableKeepAlives = true
	t.proxied = base.Clone()
	t.proxied.Proxy = func(req *http.Request) (*url.URL, error) { return t.proxy(req) }
	t.proxied.DialContext = (&net.Dialer{Timeout: dialLimit}).DialContext
	t.direct = base
	t.direct.Proxy = nil
	t.direct.DialContext = t.dial
	return t
}

type serverKey struct{}

// RoundTrip sends a request. It returns a [RefusedError] if the server may not name the
// address.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, toServer := req.Context(), t.isServer(req.URL)
	proxy, err := t.proxy(req)
	if err == nil && !toServer && (t.isPrivateName(req.URL) || isOldAddress(req.URL)) && !t.IsLocal(ctx) {
		err = RefusedError(req.URL.Hostname())
	}
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	if proxy != nil {
		return t.proxied.RoundTrip(req)
	}
	if toServer {
		ctx = context.WithValue(ctx, serverKey{}, true)
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { t.observe(i.Conn) }})
		req = req.WithContext(ctx)
	}
	return t.direct.RoundTrip(req)
}

// AssumeLocal treats the server as local until it answers from a public address. Use it
// for URLs that the server named while it was local.
func (t *Transport) AssumeLocal() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.private = true
}

func (t *Transport) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: dialLimit, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if t.isPrivate(at.Addr()) && !t.mayReachPrivate(ctx) {
			return RefusedError(at.Addr().String())
		}
		return nil
	}}
	return dialer.DialContext(ctx, network, address)
}

// mayReachPrivate permits a private address for the server itself, unless it answered from
// a public one before.
func (t *Transport) mayReachPrivate(ctx context.Context) bool {
	if ctx.Value(serverKey{}) == nil {
		return t.IsLocal(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.public
}

// IsLocal reports whether the server is on this machine or its network. It decides by the
// server's name or the addresses of all connections to it, and opens one if needed. A
// server behind a proxy is not local.
func (t *Transport) IsLocal(ctx context.Context) bool {
	if t.isPrivateName(t.server) {
		return true
	}
	t.probed.Do(func() {
		if !t.observed() {
			t.probe(ctx)
		}
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.private && !t.public
}

func (t *Transport) observed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.private || t.public
}

// probe connects to the server to observe its address. It checks the certificate, because
// the URLs may come from an earlier connection to another machine.
func (t *Transport) probe(ctx context.Context) {
	if _, err := netip.ParseAddr(host(t.server)); err == nil || t.server.Scheme != "https" {
		return
	}
	if proxy, err := t.proxy(&http.Request{URL: t.server}); err != nil || proxy != nil {
		return
	}
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: dialLimit}, Config: t.direct.TLSClientConfig}
	conn, err := dialer.DialContext(ctx, "tcp", hostPort(t.server))
	if err != nil {
		return
	}
	t.observe(conn)
	_ = conn.Close()
}

func (t *Transport) observe(conn net.Conn) {
	at, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil && t.isPrivate(at.Addr()) {
		t.private = true
	} else {
		t.public = true
	}
}

func (t *Transport) isServer(u *url.URL) bool {
	return u.Scheme == t.server.Scheme && hostPort(u) == hostPort(t.server)
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(host(u), port)
}

// host returns the lookup form of a host: full-width digits, for example, become ASCII.
func host(u *url.URL) string {
	name := u.Hostname()
	if ascii, err := idna.Lookup.ToASCII(name); err == nil {
		name = ascii
	}
	return strings.ToLower(name)
}

func (t *Transport) isPrivateName(u *url.URL) bool {
	name := strings.TrimSuffix(host(u), ".")
	if ip, err := netip.ParseAddr(name); err == nil {
		return t.isPrivate(ip)
	}
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// isOldAddress reports whether a URL's host is an IPv4 address in an old notation, such
// as 127.1 or 0x7f000001. Programs parse these differently.
func isOldAddress(u *url.URL) bool {
	name := strings.TrimSuffix(host(u), ".")
	if _, err := netip.ParseAddr(name); err == nil {
		return false
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	digits, isHex := strings.CutPrefix(last, "0x")
	if isHex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}
