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
	// probeTime bounds the request that looks at the way to a server.
	probeTime = 15 * time.Second
	// maxSkew is the accepted difference between clocks: tokens and certificates tolerate some minutes.
	maxSkew = 2 * time.Minute
	// expiryWarning is the remaining lifetime of a certificate below which it is reported.
	expiryWarning = 14 * 24 * time.Hour
	// maxShown is how much is shown of a header.
	maxShown = 200
)

// checkRemote checks a server at a URL.
func (p *serverCheck) checkRemote(ctx context.Context) {
	base, err := url.Parse(p.s.URL)
	if err != nil || base.Host == "" {
		p.AddBroken("url", "the url is not valid", "write it as https://host/path")
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

// probe is how far a request to the server came.
type probe struct {
	mu       sync.Mutex
	lookedUp string // host; "" when none was to be looked up
	found    []net.IPAddr
	lookErr  error
	dialled  string
	dialErr  error
	dialOK   string
	state    *tls.ConnectionState
	tlsErr   error
	proxy    string

	limit time.Duration  // of the request
	resp  *http.Response // its body is closed
	took  time.Duration
	err   error
}

// sendProbe sends one request, traces it, and reads no more than the response headers.
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
		_ = w.resp.Body.Close() // that of SSE, and of some others, does not end
	}
	if inner, ok := errors.AsType[*url.Error](w.err); ok {
		w.err = inner.Err // without the URL, which may hold secrets
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
				if err != nil {
					w.dialErr = err
				} else {
					w.dialOK = addr
				}
			})
		},
		TLSHandshakeDone: func(s tls.ConnectionState, err error) { locked(func() { w.state, w.tlsErr = &s, err }) },
	}
}

// checkReached checks the connection up to the first response of the server.
func (p *serverCheck) checkReached(w *probe, base *url.URL) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	host := base.Hostname()
	if w.proxy != "" {
		p.AddOK("proxy", "by the proxy "+w.proxy+", which the environment names")
	}
	switch {
	case w.lookErr != nil:
		var dns *net.DNSError
		fix := "check the host in url, and that this machine is online"
		if errors.As(w.lookErr, &dns) && dns.IsNotFound {
			fix = "correct the host in url, or join the network, such as a VPN, that knows it"
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
		p.AddBroken("proxy", "the proxy "+w.proxy+" refused: "+w.plain(w.err), "put the proxy's user and password into $HTTPS_PROXY, or add the host to $NO_PROXY")
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

// reportNoConnection adds the check of a connection that failed.
func (p *serverCheck) reportNoConnection(w *probe, host string) {
	fix := "see that the server runs and that url has its port"
	if slow, ok := errors.AsType[net.Error](w.err); ok && slow.Timeout() {
		fix = "see that nothing between, such as a firewall, drops the connection, and that url has the right port"
	}
	if w.proxy != "" {
		fix = "see that the proxy runs, or correct $HTTPS_PROXY, or add the host to $NO_PROXY"
	}
	p.AddBroken("connect", fmt.Sprintf("no connection to %s: %s", cmp.Or(w.dialled, host), w.plain(w.err)), fix)
}

// reportNoResponse adds the check of a request without an HTTP response.
func (p *serverCheck) reportNoResponse(w *probe, base *url.URL) {
	fix := "see the server's log: it took the connection, and gave no HTTP answer"
	if base.Scheme == "http" {
		fix = "see that url names an HTTP server; if it has a certificate, write https://"
	}
	if errors.Is(w.err, context.DeadlineExceeded) {
		fix = "check that url is the address of an MCP server; if it is only slow, raise its startup_timeout"
	}
	p.AddBroken("http", "no answer: "+w.plain(w.err), fix)
}

// plain is an error of the network in short.
func (w *probe) plain(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("nothing within %v", w.limit)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it was closed"
	case errors.As(err, &dns):
		return dns.Err
	case errors.As(err, &op):
		return op.Err.Error()
	}
	return short(err.Error(), maxShown)
}

// checkCertificate checks the certificate.
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
			p.AddWarning(name, "its certificate ends in "+termtext.Age(left), "tell who runs the server: it has to be renewed by "+day(ends))
			return true
		}
		p.AddOK(name, fmt.Sprintf("%s, the certificate is valid until %s", tls.VersionName(w.state.Version), day(ends)))
		return true
	}
	text, fix := w.certificate(err, host, time.Now())
	p.AddBroken(name, text, fix)
	return false
}

func day(t time.Time) string { return t.Local().Format("2006-01-02") }

// certificate says why a connection is not trusted.
func (w *probe) certificate(err error, host string, now time.Time) (text, fix string) {
	var (
		invalid   x509.CertificateInvalidError
		unknown   x509.UnknownAuthorityError
		wrongHost x509.HostnameError
		record    tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && now.Before(invalid.Cert.NotBefore):
		return fmt.Sprintf("its certificate is valid from %s, and this machine's clock says %s", day(invalid.Cert.NotBefore), day(now)), "set this machine's clock"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("its certificate expired on %s; this machine's clock says %s", day(invalid.Cert.NotAfter), day(now)), "set the clock if it is wrong; else who runs the server has to renew the certificate"
	case errors.As(err, &unknown):
		return "its certificate is signed by nobody whom this machine trusts" + issuer(unknown.Cert), "add that authority's certificate to the system's, or name its file in $SSL_CERT_FILE where Goblin starts"
	case errors.As(err, &wrongHost):
		return fmt.Sprintf("its certificate is not for %s but for %s", host, names(wrongHost.Certificate)), "use one of these names in url"
	case errors.As(err, &record), strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return "it speaks no TLS at this port", "correct the port in url, or write http:// if it has no certificate"
	}
	return "no TLS: " + w.plain(err), "see that url has the right port, and that nothing between breaks TLS"
}

func issuer(c *x509.Certificate) string {
	if c == nil || c.Issuer.String() == "" {
		return ""
	}
	return ": " + short(c.Issuer.String(), maxShown)
}

func names(c *x509.Certificate) string {
	if c == nil {
		return "others"
	}
	all := append([]string{}, c.DNSNames...)
	for _, ip := range c.IPAddresses {
		all = append(all, ip.String())
	}
	if len(all) == 0 {
		return "nobody"
	}
	return short(strings.Join(all, ", "), maxShown)
}

// checkResponse checks the server's response.
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
	p.AddOK("http", "an answer in "+termtext.Duration(w.took))
	p.checkClock(w.resp, time.Now())
	if !p.checkLogin(w.resp, answer, why, login) {
		return
	}
	if p.checkHandshake(t) {
		p.checkLists(t)
	}
}

// status is an HTTP status as it is shown.
func status(code int) string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", code, http.StatusText(code)))
}

// checkRefusal checks the refusal of a server that may not be what url should name. It reports
// whether the refusal is of another sort.
func (p *serverCheck) checkRefusal(ctx context.Context, resp *http.Response, why *upstream.Error, base *url.URL) bool {
	code, text := upstream.HTTPStatus(why), why.Reason
	if code == 0 {
		code = resp.StatusCode
	}
	answer := status(code)
	if words, ok := strings.CutPrefix(text, strings.Replace(answer, "HTTP ", "HTTP status ", 1)); ok {
		text = answer // the status is said once
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
		text = answer + ": it answered with a web page"
		fix = "correct url: it leads to a web page; the path of MCP servers is often /mcp"
	default:
		return true
	}
	if code < 500 && code != http.StatusForbidden && code != http.StatusTooManyRequests || code == http.StatusNotImplemented {
		fix = cmp.Or(p.tryOtherURLs(ctx, base), fix)
	}
	p.AddBroken("http", text, cmp.Or(fix, "check that url is the address of an MCP server"))
	return false
}

// wantsKey matches a refusal because a key is missing.
var wantsKey = pattern(`(?i)\bapi[ _-]?key\b|\btoken\b|\bcredentials?\b|\bauthenticat`)

// repeatsStatus reports whether a text has no words beyond an HTTP status.
func repeatsStatus(words, status string) bool {
	known := strings.Fields(strings.ToLower(status) + " page error status")
	for _, word := range strings.FieldsFunc(strings.ToLower(words), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if !slices.Contains(known, word) {
			return false
		}
	}
	return true
}

// isWebPage reports whether a response is a page for browsers.
func isWebPage(resp *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind == "text/html"
}

var loginPage = pattern(`(?i)\b(?:log_?-?in|sign_?-?in|sso|oauth2?|auth|authorize)\b`)

// reportRedirect reports a redirect, which is not followed.
func (p *serverCheck) reportRedirect(status string, resp *http.Response, base *url.URL) {
	to, err := base.Parse(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" {
		p.AddBroken("redirect", status+" without a place", "correct url")
		return
	}
	to.User, to.RawQuery, to.Fragment = nil, "", ""
	where := short(p.Redact(to.String()), maxShown)
	text := fmt.Sprintf("%s to %s", status, where)
	if to.Host != base.Host || to.Scheme != base.Scheme {
		text += "; Goblin does not follow it, because headers and logins are for " + base.Host
	} else {
		text += ", which would make a GET of each message"
	}
	fix := fmt.Sprintf("if you trust that place, set url to it: %s in %q", p.s.Entry("url", where), p.s.Name)
	if loginPage().MatchString(to.Host + to.Path) {
		fix = "that is a login page; put the server's API key into headers, or correct the path in url. Otherwise set url to that place"
	}
	p.AddBroken("redirect", text, fix)
}

// statusFix returns the fix for an error status.
func statusFix(code int, resp *http.Response, base *url.URL) string {
	switch {
	case code == http.StatusNotFound || code == http.StatusMethodNotAllowed || code == http.StatusGone:
		return "correct the path in url: that of MCP servers is often /mcp or /sse"
	case code == http.StatusForbidden:
		return "see that the login or header has the rights, and that the server takes requests from here"
	case code == http.StatusTooManyRequests:
		if after := resp.Header.Get("Retry-After"); after != "" {
			return "try again in " + short(after, 40)
		}
		return "try again later"
	case code == http.StatusBadRequest && base.Scheme == "http":
		return "see that url names an MCP server; if it has a certificate, write https://"
	case code == http.StatusProxyAuthRequired:
		return "put the proxy's user and password into $HTTPS_PROXY"
	case code >= 500:
		return "the server, or what stands in front of it, is out of order: try again later, or tell who runs it"
	}
	return "check that url is the address of an MCP server"
}

// checkClock compares the server's clock with this machine's.
func (p *serverCheck) checkClock(resp *http.Response, now time.Time) {
	date, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return
	}
	switch off := now.Sub(date); {
	case off > maxSkew:
		p.AddWarning("clock", "this machine's clock is "+termtext.Age(off)+" ahead of the server's", "set it, or tokens end too early")
	case off < -maxSkew:
		p.AddWarning("clock", "this machine's clock is "+termtext.Age(-off)+" behind the server's", "set it, or new tokens are refused")
	default:
		p.AddOK("clock", "as the server's")
	}
}

// basic matches the challenge of a server that has passwords, and no logins by OAuth.
var basic = pattern(`(?i)^basic\b`)

// checkLogin checks whether the server accepts the login.
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
			p.AddOK(name, "the Authorization header of the config is taken")
		}
		return true
	}
	text := "it wants a login: " + status
	if challenge := strings.Join(resp.Header.Values("WWW-Authenticate"), ", "); challenge != "" {
		text += ", WWW-Authenticate: " + short(p.Redact(challenge), maxShown)
	} else if why.Fix != "" {
		text = why.Reason
	}
	c := report.Check{Name: name, State: report.Broken, Text: text, Fix: termtext.Goblin("login", p.s.Name)}
	switch {
	case p.s.Authorized():
		c.Text = "the Authorization header of the config was refused: " + strings.TrimPrefix(text, "it wants a login: ")
		c.Fix = "put a token that is valid into headers: Authorization"
	case auth == nil && p.s.OAuth.Off:
		c.Fix = why.Fix + ", or remove oauth: off and run \"" + termtext.Goblin("login", p.s.Name) + "\""
	case why.Fix != "": // there is no challenge
		c.Fix = why.Fix
	case basic().MatchString(resp.Header.Get("WWW-Authenticate")):
		c.Fix = "put the base64 of USER:PASSWORD into a header: " + stderr.KeyHeader(p.s, "Basic")
	}
	return p.Add(c)
}
