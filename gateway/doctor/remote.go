package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"goblin/gateway/config"
	"goblin/gateway/upstream"
	"goblin/gateway/upstream/stderr"
	"goblin/registry/report"
	"goblin/registry/termtext"
)

const (
	probeTime = 15 * time.Second
	// maxSkew is small enough for tokens and certificates, which tolerate some minutes.
	maxSkew       = 2 * time.Minute
	expiryWarning = 14 * 24 * time.Hour
	// maxShown is the maximum length of a printed header, in bytes.
	maxShown = 200
)

func (p *serverCheck) checkRemote(ctx context.Context) {
	base, err := url.Parse(p.s.URL)
	if err != nil || base.Host == "" {
		p.AddBroken("url", "the url is invalid", "write it as https://host/path")
		return
	}
	p.warnUnexpanded()
	w := p.sendProbe(ctx, base)
	if !p.checkReached(w, base) {
		return
	}
	t := p.connect(ctx, p.s)
	p.checkResponse(ctx, w, t, base)
}

// probe is the trace of one request to the server.
type probe struct {
	mu       sync.Mutex
	lookedUp string // host; "" without a lookup
	found    []net.IPAddr
	lookErr  error
	dialled  string
	dialOK   string
	state    *tls.ConnectionState
	tlsErr   error
	proxy    string

	limit time.Duration  // of the request
	resp  *http.Response // its body is closed
	took  time.Duration
	err   error
}

// sendProbe reads only the response headers.
func (p *serverCheck) sendProbe(ctx context.Context, base *url.URL) *probe {
	w := &probe{limit: min(probeTime, p.s.StartupTimeout)}
	ctx, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	ctx = httptrace.WithClientTrace(ctx, w.trace())
	transport := &http.Transport{
		Proxy: func(r *http.Request) (*url.URL, error) {
			u, err := http.ProxyFromEnvironment(r)
			if u != nil {
				w.proxy = u.Host
			}
			return u, err
		},
		ForceAttemptHTTP2: true, DisableKeepAlives: true, TLSHandshakeTimeout: w.limit,
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	method, body, accept := http.MethodPost, `{"jsonrpc":"2.0","id":"doctor","method":"ping"}`, "application/json, text/event-stream"
	if p.s.Type == config.SSE {
		method, body, accept = http.MethodGet, "", "text/event-stream"
	}
	req, err := http.NewRequestWithContext(ctx, method, base.String(), strings.NewReader(body))
	if err != nil {
		w.err = err
		return w
	}
	req.Header.Set("User-Agent", "goblin/"+p.Version)
	for name, value := range p.s.Headers {
		req.Header.Set(name, value)
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	req.Header.Set("Accept", accept)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	began := time.Now()
	w.resp, w.err = client.Do(req)
	w.took = time.Since(began)
	if w.err == nil {
		_ = w.resp.Body.Close() // an SSE body never ends
	}
	if inner, ok := errors.AsType[*url.Error](w.err); ok {
		w.err = inner.Err // without the URL, which may contain secrets
	}
	return w
}

func (w *probe) trace() *httptrace.ClientTrace {
	locked := func(do func()) {
		w.mu.Lock()
		defer w.mu.Unlock()
		do()
	}
	return &httptrace.ClientTrace{
		DNSStart: func(i httptrace.DNSStartInfo) { locked(func() { w.lookedUp = i.Host }) },
		DNSDone:  func(i httptrace.DNSDoneInfo) { locked(func() { w.found, w.lookErr = i.Addrs, i.Err }) },
		ConnectStart: func(_, addr string) {
			locked(func() { w.dialled = addr })
		},
		ConnectDone: func(_, addr string, err error) {
			locked(func() {
				if err == nil {
					w.dialOK = addr
				}
			})
		},
		TLSHandshakeDone: func(s tls.ConnectionState, err error) { locked(func() { w.state, w.tlsErr = &s, err }) },
	}
}

func (p *serverCheck) checkReached(w *probe, base *url.URL) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	host := base.Hostname()
	if w.proxy != "" {
		p.AddOK("proxy", "via "+w.proxy+" (from the environment)")
	}
	switch {
	case w.lookErr != nil:
		var dns *net.DNSError
		fix := "check the host in url, and that this machine is online"
		if errors.As(w.lookErr, &dns) && dns.IsNotFound {
			fix = "correct the host in url, or connect to its network, for example a VPN"
		}
		p.AddBroken("dns", fmt.Sprintf("%s has no address: %s", w.lookedUp, w.plain(w.lookErr)), fix)
		return false
	case w.lookedUp != "" && len(w.found) > 0:
		p.AddOK("dns", fmt.Sprintf("%s is %s", w.lookedUp, w.found[0].String()))
	}
	if w.dialOK == "" && w.err != nil {
		p.reportNoConnection(w, host)
		return false
	}
	p.AddOK("connect", w.dialOK)
	if w.proxy != "" && w.err != nil && w.state == nil && !errors.Is(w.err, context.DeadlineExceeded) {
		p.AddBroken("proxy", "the proxy "+w.proxy+" refused: "+w.plain(w.err), "set the proxy's user and password in $HTTPS_PROXY, or add the host to $NO_PROXY")
		return false
	}
	if base.Scheme == "https" && !p.checkCertificate(w, host) {
		return false
	}
	if w.err != nil {
		p.reportNoResponse(w, base)
		return false
	}
	return true
}

func (p *serverCheck) reportNoConnection(w *probe, host string) {
	fix := "check that the server runs and that url has its port"
	if slow, ok := errors.AsType[net.Error](w.err); ok && slow.Timeout() {
		fix = "check that no firewall drops the connection, and that url has the right port"
	}
	if w.proxy != "" {
		fix = "check that the proxy runs, fix $HTTPS_PROXY, or add the host to $NO_PROXY"
	}
	p.AddBroken("connect", fmt.Sprintf("no connection to %s: %s", cmp.Or(w.dialled, host), w.plain(w.err)), fix)
}

func (p *serverCheck) reportNoResponse(w *probe, base *url.URL) {
	fix := "check the server's log: it accepted the connection, but sent no HTTP response"
	if base.Scheme == "http" {
		fix = "check that url is the address of an HTTP server; if it has a certificate, use https://"
	}
	if errors.Is(w.err, context.DeadlineExceeded) {
		fix = "check that url is the address of an MCP server; if it is only slow, raise startup_timeout"
	}
	p.AddBroken("http", "no response: "+w.plain(w.err), fix)
}

func (w *probe) plain(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("timeout after %v", w.limit)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection closed"
	case errors.As(err, &dns):
		return dns.Err
	case errors.As(err, &op):
		return op.Err.Error()
	}
	return short(err.Error(), maxShown)
}

func (p *serverCheck) checkCertificate(w *probe, host string) bool {
	const name = "tls"
	err := w.tlsErr
	if err == nil && w.resp == nil && w.state == nil {
		err = w.err
	}
	if err == nil {
		if w.state == nil || len(w.state.PeerCertificates) == 0 {
			return true
		}
		ends := w.state.PeerCertificates[0].NotAfter
		if left := time.Until(ends); left < expiryWarning {
			p.AddWarning(name, "the certificate expires in "+termtext.Age(left), "ask the server's operator to renew it by "+day(ends))
			return true
		}
		p.AddOK(name, fmt.Sprintf("%s, certificate valid until %s", tls.VersionName(w.state.Version), day(ends)))
		return true
	}
	text, fix := w.certificate(err, host, time.Now())
	p.AddBroken(name, text, fix)
	return false
}

func day(t time.Time) string { return t.Local().Format("2006-01-02") }

func (w *probe) certificate(err error, host string, now time.Time) (text, fix string) {
	var (
		invalid   x509.CertificateInvalidError
		unknown   x509.UnknownAuthorityError
		wrongHost x509.HostnameError
		record    tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && now.Before(invalid.Cert.NotBefore):
		return fmt.Sprintf("the certificate is valid from %s, but this machine's clock says %s", day(invalid.Cert.NotBefore), day(now)), "set this machine's clock"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("the certificate expired on %s; this machine's clock says %s", day(invalid.Cert.NotAfter), day(now)), "set the clock if it is wrong; otherwise ask the server's operator to renew the certificate"
	case errors.As(err, &unknown):
		return "the certificate's issuer is not trusted" + issuer(unknown.Cert), "add the issuer's certificate to the system, or set $SSL_CERT_FILE to its file for Goblin"
	case errors.As(err, &wrongHost):
		return fmt.Sprintf("the certificate is for %[2]s, not for %[1]s", host, names(wrongHost.Certificate)), "use a name of the certificate in url"
	case errors.As(err, &record), strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return "no TLS on this port", "fix the port in url, or use http:// if the server has no certificate"
	}
	return "TLS failed: " + w.plain(err), "check that url has the right port, and that no proxy or firewall breaks TLS"
}

func issuer(c *x509.Certificate) string {
	if c == nil || c.Issuer.String() == "" {
		return ""
	}
	return ": " + short(c.Issuer.String(), maxShown)
}

func names(c *x509.Certificate) string {
	if c == nil {
		return "other hosts"
	}
	all := append([]string{}, c.DNSNames...)
	for _, ip := range c.IPAddresses {
		all = append(all, ip.String())
	}
	if len(all) == 0 {
		return "no host"
	}
	return short(strings.Join(all, ", "), maxShown)
}

func (p *serverCheck) checkResponse(ctx context.Context, w *probe, t *session, base *url.URL) {
	code := w.resp.StatusCode
	why := t.connectError()
	refused := why != nil && !t.opened
	login := refused && (code == http.StatusUnauthorized || why.Code == upstream.LoginRequired)
	answer := status(code)
	switch {
	case !refused || login:
	case code >= 300 && code < 400:
		p.reportRedirect(answer, w.resp, base)
		return
	case why.Fix != "":
		p.fail("transport", why, "")
		return
	case errors.Is(why, context.DeadlineExceeded):
	default:
		if !p.checkRefusal(ctx, w.resp, why, base) {
			return
		}
	}
	p.AddOK("http", "response after "+termtext.Duration(w.took))
	p.checkClock(w.resp, time.Now())
	if !p.checkLogin(w.resp, answer, why, login) {
		return
	}
	if p.checkHandshake(t) {
		p.checkLists(t)
	}
}

func status(code int) string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", code, http.StatusText(code)))
}

// checkRefusal checks a server that may not be an MCP server. It returns true if the
// refusal has another cause.
func (p *serverCheck) checkRefusal(ctx context.Context, resp *http.Response, why *upstream.Error, base *url.URL) bool {
	code, text := upstream.HTTPStatus(why), why.Reason
	if code == 0 {
		code = resp.StatusCode
	}
	answer := status(code)
	if words, ok := strings.CutPrefix(text, strings.Replace(answer, "HTTP ", "HTTP status ", 1)); ok {
		text = answer // don't print the status twice
		if !repeatsStatus(words, answer) {
			text += words
		}
	} else {
		text = answer + ": " + text
	}
	fix := ""
	switch {
	case code == http.StatusForbidden && wantsKey().MatchString(text) && len(p.s.Headers) == 0:
		fix = "add its API key as a header: " + stderr.KeyHeader(p.s, "Bearer")
	case code >= 400 && code != http.StatusUnauthorized:
		fix = statusFix(code, resp, base)
	case isWebPage(resp):
		text = answer + ": web page"
		fix = "fix url: it is a web page; the path of MCP servers is often /mcp"
	default:
		return true
	}
	if code < 500 && code != http.StatusForbidden && code != http.StatusTooManyRequests || code == http.StatusNotImplemented {
		fix = cmp.Or(p.tryOtherURLs(ctx, base), fix)
	}
	p.AddBroken("http", text, cmp.Or(fix, "check that url is the address of an MCP server"))
	return false
}

var wantsKey = pattern(`(?i)\bapi[ _-]?key\b|\btoken\b|\bcredentials?\b|\bauthenticat`)

func repeatsStatus(words, status string) bool {
	known := strings.Fields(strings.ToLower(status) + " page error status")
	for _, word := range strings.FieldsFunc(strings.ToLower(words), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if !slices.Contains(known, word) {
			return false
		}
	}
	return true
}

func isWebPage(resp *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind == "text/html"
}

var loginPage = pattern(`(?i)\b(?:log_?-?in|sign_?-?in|sso|oauth2?|auth|authorize)\b`)

// reportRedirect reports a redirect, which Goblin doesn't follow.
func (p *serverCheck) reportRedirect(status string, resp *http.Response, base *url.URL) {
	to, err := base.Parse(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" {
		p.AddBroken("redirect", status+" without Location", "fix url")
		return
	}
	to.User, to.RawQuery, to.Fragment = nil, "", ""
	where := short(p.Redact(to.String()), maxShown)
	text := fmt.Sprintf("%s to %s", status, where)
	if to.Host != base.Host || to.Scheme != base.Scheme {
		text += "; Goblin doesn't follow it, because headers and logins are for " + base.Host
	} else {
		text += ", which would turn each message into a GET"
	}
	fix := fmt.Sprintf("if you trust that address, set %s in %q", p.s.Entry("url", where), p.s.Name)
	if loginPage().MatchString(to.Host + to.Path) {
		fix = "it is a login page: add the server's API key to headers, or fix the path in url. Otherwise set url to that address"
	}
	p.AddBroken("redirect", text, fix)
}

func statusFix(code int, resp *http.Response, base *url.URL) string {
	switch {
	case code == http.StatusNotFound || code == http.StatusMethodNotAllowed || code == http.StatusGone:
		return "fix the path in url: MCP servers often use /mcp or /sse"
	case code == http.StatusForbidden:
		return "check the permissions of the login or header, and that the server accepts requests from this network"
	case code == http.StatusTooManyRequests:
		if after := resp.Header.Get("Retry-After"); after != "" {
			return "try again in " + short(after, 40)
		}
		return "try again later"
	case code == http.StatusBadRequest && base.Scheme == "http":
		return "check that url is the address of an MCP server; if it has a certificate, use https://"
	case code == http.StatusProxyAuthRequired:
		return "set the proxy's user and password in $HTTPS_PROXY"
	case code >= 500:
		return "the server or its proxy is failing: try again later, or contact its operator"
	}
	return "check that url is the address of an MCP server"
}

func (p *serverCheck) checkClock(resp *http.Response, now time.Time) {
	date, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return
	}
	switch off := now.Sub(date); {
	case off > maxSkew:
		p.AddWarning("clock", "this machine's clock is "+termtext.Age(off)+" ahead of the server's", "set the clock; otherwise tokens expire too early")
	case off < -maxSkew:
		p.AddWarning("clock", "this machine's clock is "+termtext.Age(-off)+" behind the server's", "set the clock; otherwise new tokens are refused")
	default:
		p.AddOK("clock", "matches the server's")
	}
}

// basic matches the challenge of a server that uses passwords instead of OAuth.
var basic = pattern(`(?i)^basic\b`)

func (p *serverCheck) checkLogin(resp *http.Response, status string, why *upstream.Error, refused bool) bool {
	const name = "login"
	auth := p.authorizer()
	if !refused {
		switch {
		case auth != nil && resp.StatusCode == http.StatusUnauthorized:
			who, _ := auth.Identity()
			text := "logged in"
			if who.User != "" {
				text += " as " + who.User
			}
			p.AddOK(name, text)
		case p.s.Authorized():
			p.AddOK(name, "the config's Authorization header is accepted")
		}
		return true
	}
	text := "login required: " + status
	if challenge := strings.Join(resp.Header.Values("WWW-Authenticate"), ", "); challenge != "" {
		text += ", WWW-Authenticate: " + short(p.Redact(challenge), maxShown)
	} else if why.Fix != "" {
		text = why.Reason
	}
	c := report.Check{Name: name, State: report.Broken, Text: text, Fix: termtext.Goblin("login", p.s.Name)}
	switch {
	case p.s.Authorized():
		c.Text = "the config's Authorization header was refused: " + strings.TrimPrefix(text, "login required: ")
		c.Fix = "set a valid token in headers: Authorization"
	case auth == nil && p.s.OAuth.Off:
		c.Fix = why.Fix + ", or remove oauth: off and run \"" + termtext.Goblin("login", p.s.Name) + "\""
	case why.Fix != "": // there is no challenge
		c.Fix = why.Fix
	case basic().MatchString(resp.Header.Get("WWW-Authenticate")):
		c.Fix = "add the base64 of USER:PASSWORD as a header: " + stderr.KeyHeader(p.s, "Basic")
	}
	return p.Add(c)
}
