package doctor_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/registry/report"
)

// peer is an MCP server over HTTP.
func peer() http.Handler {
	s := mcpserver.NewMCPServer("peer", "1", mcpserver.WithToolCapabilities(false))
	s.AddTool(mcp.NewTool("stat"), nil)
	return mcpserver.NewStreamableHTTPServer(s)
}

func serve(t *testing.T, h http.HandlerFunc) config.Server {
	t.Helper()
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	return at(web.URL + "/mcp")
}

func at(url string) config.Server {
	return config.Server{Type: config.HTTP, URL: url, StartupTimeout: 5 * time.Second}
}

func TestAHealthyRemoteServerPassesEveryCheck(t *testing.T) {
	t.Parallel()
	r := examine(t, serve(t, peer().ServeHTTP))
	require.Equal(t, report.OK, r.State, "%v", r.Checks)
	require.Equal(t, []string{"connect ok", "http ok", "clock ok", "handshake ok", "lists ok", "schemas ok", "limits ok"}, outline(r))
}

// status answers all requests with a status and headers.
func status(code int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
	}
}

func TestTheChecksOfARemoteServerStopAtWhatIsBroken(t *testing.T) {
	t.Parallel()
	secret := config.Server{Headers: map[string]string{"Authorization": "Bearer x"}}
	for name, tt := range map[string]struct {
		server config.Server
		check  string
		text   string
		fix    string
	}{
		"no such host":     {at("http://no..such/mcp"), "dns", "no..such has no address", "correct the host"},
		"no listener":      {at("http://127.0.0.1:1/mcp"), "connect", "connection refused", "port"},
		"no response":      {at("http://" + silent(t) + "/mcp"), "http", "no response", "https://"},
		"a web page":       {serve(t, isWebPage), "http", "HTTP 200 OK: web page", "/mcp"},
		"a wrong path":     {serve(t, http.NotFound), "http", "HTTP 404 Not Found", "fix the path"},
		"is failing":       {serve(t, status(502)), "http", "HTTP 502 Bad Gateway", "is failing"},
		"forbidden":        {serve(t, status(403)), "http", "HTTP 403 Forbidden", "permissions"},
		"too many":         {serve(t, status(429, "Retry-After", "120")), "http", "HTTP 429", "try again"},
		"another place":    {serve(t, status(302, "Location", "https://elsewhere.example/mcp?token=hunter2")), "redirect", "HTTP 302 Found to https://elsewhere.example/mcp; Goblin doesn't follow", "set url"},
		"a GET of it":      {serve(t, status(301, "Location", "/other")), "redirect", "which would turn each message into a GET", "set url"},
		"a login":          {serve(t, status(401, "WWW-Authenticate", `Bearer realm="x\x1b", error="invalid_token"`)), "login", `HTTP 401 Unauthorized, WWW-Authenticate: Bearer realm="x`, "goblin login it"},
		"a refused header": {merge(serve(t, status(401)), secret), "login", "the config's Authorization header was refused: HTTP 401", "headers: Authorization"},
		"no login wanted":  {merge(serve(t, status(401)), config.Server{OAuth: config.OAuth{Off: true}}), "login", "HTTP 401", "oauth: off"},
		"no MCP":           {serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"hello":"world"}`) }), "handshake", "", "url"},
		"no TLS":           {at(strings.Replace(serve(t, isWebPage).URL, "http:", "https:", 1)), "tls", "no TLS on this port", "http://"},
		"nobody's":         {at(secured(t, nil) + "/mcp"), "tls", "issuer is not trusted: O=Acme", "SSL_CERT_FILE"},
		"expired":          {at(secured(t, expired(t)) + "/mcp"), "tls", "the certificate expired on 2020-", "renew"},
		"not yet valid":    {at(secured(t, future(t)) + "/mcp"), "tls", "the certificate is valid from ", "set this machine's clock"},
		"for others":       {at(strings.Replace(secured(t, nil), "127.0.0.1", "localhost", 1) + "/mcp"), "tls", "the certificate is for example.com", "a name of the certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := examine(t, tt.server)
			c := last(t, r)
			require.Equal(t, tt.check, c.Name, "%v", r.Checks)
			require.Equal(t, report.Broken, c.State)
			require.Contains(t, c.Text, tt.text)
			require.Contains(t, c.Fix, tt.fix)
			require.NotContains(t, c.Text, "hunter2")
		})
	}
}

func merge(s, more config.Server) config.Server {
	s.Headers, s.OAuth = more.Headers, more.OAuth
	return s
}

// isWebPage reports whether a response is a page for browsers.
func isWebPage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, "<html>hello</html>")
}

func TestAClockThatIsWrongIsAWarning(t *testing.T) {
	t.Parallel()
	for off, want := range map[time.Duration]string{-time.Hour: "1 h 0 min ahead", time.Hour: "behind"} {
		server := peer()
		r := examine(t, serve(t, func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Date", time.Now().Add(off).UTC().Format(http.TimeFormat))
			server.ServeHTTP(w, q)
		}))
		require.Equal(t, report.Warning, r.State)
		require.Contains(t, r.Findings()[0].Text, want)
		require.Equal(t, "limits", last(t, r).Name, "the remaining checks still run")
	}
}

func TestAnAddressThatIsNoneIsToldAtOnce(t *testing.T) {
	t.Parallel()
	require.Equal(t, "url", last(t, examine(t, at("http:///mcp"))).Name)
}

// silent accepts connections and closes each at its first byte.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1))
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String()
}

// secured serves TLS with a self-signed certificate, or with httptest's if c is nil.
func secured(t *testing.T, c *tls.Certificate) string {
	t.Helper()
	web := httptest.NewUnstartedServer(peer())
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	if c != nil {
		web.TLS = &tls.Config{Certificates: []tls.Certificate{*c}} //nolint:gosec // a test
	}
	web.StartTLS()
	t.Cleanup(web.Close)
	return web.URL
}

func expired(t *testing.T) *tls.Certificate {
	return certificate(t, time.Date(2019, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2020, 6, 1, 0, 0, 0, 0, time.UTC))
}

func future(t *testing.T) *tls.Certificate {
	return certificate(t, time.Now().AddDate(1, 0, 0), time.Now().AddDate(2, 0, 0))
}

func certificate(t *testing.T, from, to time.Time) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "it"}, NotBefore: from, NotAfter: to,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
