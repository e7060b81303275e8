package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"
)

// In these tests, addresses in outside are on the internet. Other loopback addresses are
// private. Linux serves all of them.
var outside = netip.MustParsePrefix("127.9.0.0/16")

const (
	private1 = "127.0.0.1"
	private2 = "127.0.0.2"
	public1  = "127.9.0.1"
)

func TestMain(m *testing.M) {
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: zone.dial}
	any := httptest.NewTLSServer(nil) // httptest's certificate is for *.example.com
	roots := x509.NewCertPool()
	roots.AddCert(any.Certificate())
	any.Close()
	http.DefaultTransport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots}
	os.Exit(m.Run())
}

// names is a name server. A name returns its answers in turn and repeats the last.
type names struct {
	mu      sync.Mutex
	answers map[string][]string
}

var zone = &names{answers: make(map[string][]string)}

// set sets the answers of a name. Each answer is a list of addresses, separated by
// spaces.
func (n *names) set(name string, answers ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answers[name+"."] = answers
}

func (n *names) next(name string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.answers[name]
	if len(all) == 0 {
		return nil
	}
	if len(all) > 1 {
		n.answers[name] = all[1:]
	}
	return strings.Fields(all[0])
}

func (n *names) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		size := make([]byte, 2)
		for {
			if _, err := io.ReadFull(server, size); err != nil {
				return
			}
			query := make([]byte, int(size[0])<<8|int(size[1]))
			if _, err := io.ReadFull(server, query); err != nil {
				return
			}
			answer, err := n.answer(query)
			if err != nil {
				return
			}
			if _, err := server.Write(append([]byte{byte(len(answer) >> 8), byte(len(answer))}, answer...)); err != nil {
				return
			}
		}
	}()
	return client, nil
}

func (n *names) answer(query []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		return nil, err
	}
	m.Response, m.Additionals = true, nil
	if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
		for _, ip := range n.next(q.Name.String()) {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
				Body:   &dnsmessage.AResource{A: netip.MustParseAddr(ip).As4()},
			})
		}
	}
	return m.Pack()
}

// site is a web server at several addresses with one port. It counts requests by address.
type site struct {
	port string
	mu   sync.Mutex
	hits map[string]int
}

func newSite(t *testing.T, ips ...string) *site {
	t.Helper()
	s := &site{port: "0", hits: make(map[string]int)}
	for _, ip := range ips {
		ln, err := net.Listen("tcp", net.JoinHostPort(ip, s.port))
		require.NoError(t, err)
		_, s.port, _ = net.SplitHostPort(ln.Addr().String())
		at := &httptest.Server{Listener: ln, Config: &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.hits[ip]++
		})}}
		at.StartTLS()
		t.Cleanup(at.Close)
	}
	return s
}

func (s *site) url(host string) string { return "https://" + host + ":" + s.port + "/" }

// newTestTransport returns New(server) with the tests' internet.
func newTestTransport(server string) *Transport {
	t := New(server)
	t.isPrivate = func(ip netip.Addr) bool { return !outside.Contains(ip) && isPrivate(ip) }
	return t
}
