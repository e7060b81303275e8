package downstream

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"
)

// Owner returns a comparable key of the client, for fair sharing of limits. It is the
// session, or an [AnonymousClient] for stateless HTTP.
func (x *Request) Owner() any {
	if !x.session.stateless {
		return x.session
	}
	return AnonymousClient{hostname(x.Modern().Remote), x.ClientName()}
}

// Group returns the address of the client of an HTTP session, which may have many
// sessions. It returns nil for other transports.
func (s *Session) Group() any {
	if s.address == "" {
		return nil
	}
	return s.address
}

// hostname returns the host of a TCP address, or "".
func hostname(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	return host
}

// AnonymousClient is the best known identity of a stateless client over HTTP. A
// connection does not identify it, since it uses one per concurrent call. The name may be
// forged, so use it for fairness only.
type AnonymousClient struct{ Address, Name string }

// Group returns the address. It groups clients that may only differ by forged names.
func (s AnonymousClient) Group() any { return s.Address }

// IsLocal reports whether the client is on this machine. Over HTTP, the request must come
// from a loopback address without headers of a proxy.
func (x *Request) IsLocal() bool {
	out := x.Outer().current().out
	if b, ok := out.(*batch); ok {
		out = b.stream
	}
	p, overHTTP := out.(*postStream)
	return !overHTTP || isLocalRequest(p.httpRequest)
}

// proxyHeaders lists the headers in which proxies name the client.
var proxyHeaders = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Real-Ip"}

func isLocalRequest(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback() &&
		!slices.ContainsFunc(proxyHeaders, func(name string) bool { return r.Header[name] != nil })
}

// Limits of the table of stateless clients over HTTP.
const (
	maxStatelessClients = 64
	statelessClientTTL  = time.Hour
)

// recordStatelessLocked records a stateless client that lists tools. It replaces the
// least recent one above maxStatelessClients.
func (s *Session) recordStatelessLocked(name string, now time.Time) {
	if _, known := s.statelessClients[name]; !known && len(s.statelessClients) >= maxStatelessClients {
		oldest, since := "", now
		for other, at := range s.statelessClients {
			if !at.After(since) {
				oldest, since = other, at
			}
		}
		delete(s.statelessClients, oldest)
	}
	if s.statelessClients == nil {
		s.statelessClients = make(map[string]time.Time)
	}
	s.statelessClients[name] = now
}

// StatelessClients returns the names of stateless HTTP clients of this session that
// listed tools in the last hour. There are at most 64, in random order.
func (s *Session) StatelessClients() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, at := range s.statelessClients {
		if time.Since(at) < statelessClientTTL {
			names = append(names, name)
		}
	}
	return names
}
