package egress

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http/httpproxy"
)

// forwarder is a proxy that answers all requests itself and records them.
type forwarder struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func newForwarder(t *testing.T) *forwarder {
	t.Helper()
	f := &forwarder{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.asked = append(f.asked, r.Host)
		if r.Method == http.MethodConnect {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	t.Cleanup(f.Close)
	return f
}

// through returns New(server) in an environment with proxies.
func through(server string, env httpproxy.Config) *Transport {
	t := New(server)
	proxy := env.ProxyFunc()
	t.proxy = func(r *http.Request) (*url.URL, error) { return proxy(r.URL) }
	return t
}

// A proxy in the environment allows no private address that is reached without it.
func TestOnlyTheConnectionToTheProxyIsExempt(t *testing.T) {
	const server = "http://mcp.example.com/mcp"
	f, trap := newForwarder(t), listen(t)
	for name, row := range map[string]struct {
		env   httpproxy.Config
		named string
	}{
		"loopback is never proxied":  {httpproxy.Config{HTTPProxy: f.URL, HTTPSProxy: f.URL}, "http://127.0.0.1:" + trap.port},
		"https proxy, plain http":    {httpproxy.Config{HTTPSProxy: f.URL}, "http://127.0.0.1:" + trap.port},
		"http proxy, https":          {httpproxy.Config{HTTPProxy: f.URL}, "https://127.0.0.1:" + trap.port},
		"no proxy":                   {httpproxy.Config{HTTPProxy: f.URL, HTTPSProxy: f.URL, NoProxy: "10.0.0.0/8"}, "https://10.0.0.1:" + trap.port},
		"the address of the proxy":   {httpproxy.Config{HTTPProxy: f.URL, HTTPSProxy: f.URL}, f.URL},
		"private, by the proxy":      {httpproxy.Config{HTTPProxy: f.URL, HTTPSProxy: f.URL}, "http://10.0.0.1"},
		"private, by the proxy, TLS": {httpproxy.Config{HTTPProxy: f.URL, HTTPSProxy: f.URL}, "https://[fd00::1]"},
		"mapped, by the proxy":       {httpproxy.Config{HTTPProxy: f.URL, HTTPSProxy: f.URL}, "https://[::ffff:10.0.0.1]"},
		"metadata of a cloud":        {httpproxy.Config{HTTPProxy: f.URL, HTTPSProxy: f.URL}, "http://169.254.169.254"},
		"localhost with a dot":       {httpproxy.Config{HTTPProxy: f.URL, HTTPSProxy: f.URL}, "http://localhost."},
		"a name of this machine":     {httpproxy.Config{HTTPProxy: f.URL, HTTPSProxy: f.URL}, "https://a.localhost"},
		"an address with a dot":      {httpproxy.Config{HTTPProxy: f.URL, HTTPSProxy: f.URL}, "http://127.0.0.1."},
		"a short spelling":           {httpproxy.Config{HTTPProxy: f.URL, HTTPSProxy: f.URL}, "http://127.1"},
		"one number":                 {httpproxy.Config{HTTPProxy: f.URL, HTTPSProxy: f.URL}, "http://2130706433"},
		"hexadecimal":                {httpproxy.Config{HTTPProxy: f.URL, HTTPSProxy: f.URL}, "http://0x7F000001"},
		"hexadecimal at its end":     {httpproxy.Config{HTTPProxy: f.URL, HTTPSProxy: f.URL}, "http://127.0.0.0x1"},
		"octal":                      {httpproxy.Config{HTTPProxy: f.URL, HTTPSProxy: f.URL}, "http://0177.0.0.01"},
		"wide digits":                {httpproxy.Config{HTTPProxy: f.URL, HTTPSProxy: f.URL}, "http://１２７.0.0.1"},
		"SOCKS, private":             {httpproxy.Config{HTTPProxy: "socks5://127.0.0.1:1", HTTPSProxy: "socks5://127.0.0.1:1"}, "http://192.168.0.1"},
		"SOCKS, loopback":            {httpproxy.Config{HTTPProxy: "socks5://127.0.0.1:1", HTTPSProxy: "socks5://127.0.0.1:1"}, "http://127.0.0.1:" + trap.port},
	} {
		rt := through(server, row.env)
		if row.env.HTTPProxy == f.URL {
			require.NoError(t, ask(t, rt, server), name)
			f.asked = nil
		}
		require.ErrorContains(t, ask(t, rt, row.named), "a public server names the private address", name)
		require.Empty(t, f.asked, name)
	}
	require.Zero(t, trap.count())
}

// Public addresses, and names that only a proxy can look up, go through the proxy.
func TestProxiesGetWhatIsPublic(t *testing.T) {
	f := newForwarder(t)
	env := httpproxy.Config{HTTPProxy: f.URL, HTTPSProxy: f.URL}
	rt := through("https://mcp.example.com/mcp", env)
	for _, host := range []string{"login.example.com", "1.1.1.1", "7.example.com", "example.com."} {
		require.NoError(t, ask(t, rt, "http://"+host+"/"), host)
		require.Equal(t, host, f.asked[len(f.asked)-1])
		require.ErrorContains(t, ask(t, rt, "https://"+host+"/"), "Forbidden", host)
		require.Equal(t, host+":443", f.asked[len(f.asked)-1])
	}
	// A server with a private address may be behind a proxy, and may name other private
	// addresses.
	require.NoError(t, ask(t, through("http://10.0.0.1/mcp", env), "http://10.0.0.1/mcp"))
	require.NoError(t, ask(t, through("http://10.0.0.1/mcp", env), "http://10.0.0.2/token"))
}

// A SOCKS proxy on this machine may be used, and looks names up.
func TestASOCKSProxyIsReached(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	got := make(chan string, 1)
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		head := make([]byte, 3) // version, one method, none
		_, _ = io.ReadFull(conn, head)
		_, _ = conn.Write([]byte{5, 0})
		request := make([]byte, 5) // version, connect, reserved, a name, its length
		_, _ = io.ReadFull(conn, request)
		name := make([]byte, request[4])
		_, _ = io.ReadFull(conn, name)
		got <- string(name)
	}()
	at := "socks5://" + ln.Addr().String()
	rt := through("https://mcp.example.com/mcp", httpproxy.Config{HTTPProxy: at, HTTPSProxy: at})
	err = ask(t, rt, "https://login.example.com/")
	require.False(t, strings.Contains(err.Error(), "a public server names the private address"), err)
	require.Equal(t, "login.example.com", <-got)
}
