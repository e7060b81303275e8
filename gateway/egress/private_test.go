package egress

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every spelling of a private address is refused before a connection.
func TestServersOnTheInternetNameNoPrivateAddresses(t *testing.T) {
	listening := listen(t)
	for _, host := range []string{
		"127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1", "100.100.100.200", "168.63.129.16",
		"0.0.0.0", "0.1.2.3", "192.0.0.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
		"[::]", "[::1]", "[fd00::1]", "[fe80::1]", "[fe80::1%25lo]", "[fec0::1]", "[ff02::1]",
		"[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "[::127.0.0.1]", "[::ffff:0:127.0.0.1]",
		"[64:ff9b::127.0.0.1]", "[64:ff9b::10.0.0.1]", "[64:ff9b:1::1]", "[2002:7f00:1::]", "[2002:a00:1::]", "[2001:0:7f00:1::]",
		"127.0.0.1.", "１２７.0.0.1", "127。0。0。1", "localhost", "LOCALHOST", "localhost.", "a.localhost",
	} {
		require.ErrorContains(t, ask(t, New("https://192.0.2.1/mcp"), "http://"+host+":"+listening.port+"/"), "a public server names the private address", host)
	}
	require.Zero(t, listening.count())
}

// Addresses next to the private blocks are on the internet.
func TestOtherAddressesArePublic(t *testing.T) {
	for _, ip := range []string{
		"1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1", "192.0.1.0", "198.20.0.1", "223.255.255.255",
		"::ffff:1.1.1.1", "64:ff9b::1.1.1.1", "2606:4700::1111", "2001:4860:4860::8888", "2003::1",
	} {
		require.False(t, isPrivate(netip.MustParseAddr(ip)), ip)
	}
}

// A server on this machine or its network may name private addresses.
func TestLocalServersNamePrivateAddresses(t *testing.T) {
	listening := listen(t)
	for _, server := range []string{"http://127.0.0.1/mcp", "http://localhost:1/mcp", "https://10.0.0.1/mcp", "https://[fd00::1]/mcp", "http://a.localhost/mcp"} {
		require.NoError(t, ask(t, New(server), "http://127.0.0.1:"+listening.port+"/"), server)
	}
	require.Equal(t, 5, listening.count())
}

type listener struct {
	port string
	web  *httptest.Server
	n    atomic.Int64
}

func listen(t *testing.T) *listener {
	t.Helper()
	l := &listener{}
	l.web = httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	l.web.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			l.n.Add(1)
		}
	}
	l.web.Start()
	t.Cleanup(l.web.Close)
	_, l.port, _ = net.SplitHostPort(l.web.Listener.Addr().String())
	return l
}

func (l *listener) count() int { return int(l.n.Load()) }

// ask sends a request and returns its error.
func ask(t *testing.T, rt http.RoundTripper, address string) error {
	t.Helper()
	resp, err := (&http.Client{Transport: rt}).Get(address)
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}
