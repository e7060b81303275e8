package downstream

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"
)

// Owner tells clients apart where one is to leave room for the others: equal values are
// one client's. A session is one client. Of stateless ones over HTTP it is a [AnonymousClient].
func (x *Request) Owner() any {
	if !x.session.stateless {
		return x.session
	}
	return AnonymousClient{hostname(x.Modern().Remote), x.ClientName()}
}

// Group returns the address that the client of an HTTP session is at: it may have many
// sessions. It returns nil for other transports.
func (s *Session) Group() any {
	if s.address == "" {
		return nil
	}
	return s.address
}

// hostname returns the host of a TCP address, or "" for other addresses.
func hostname(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	return host
}

// AnonymousClient is a stateless client over HTTP, as far as it can be known. Its connection
// tells nothing: a client needs one for each of its calls. Its name may be made up, so
// nothing but fairness may hang on it.
type AnonymousClient struct{ Address, Name string }

// Group is of whom there may be many by made-up names: together, they are to leave some
// room, too.
func (s AnonymousClient) Group() any { return s.Address }

// IsLocal reports whether the client is on this machine, as far as that can be known: over
// HTTP, one whose request came from a loopback address, and through no proxy that says so.
func (x *Request) IsLocal() bool {
	out := x.Outer().current().out
	if b, ok := out.(*batch); ok {
		out = b.stream
	}
	p, overHTTP := out.(*postStream)
	return !overHTTP || isLocalRequest(p.httpRequest)
}

// proxyHeaders are the headers in which proxies name the client.
var proxyHeaders = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Real-Ip"}

func isLocalRequest(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback() &&
		!slices.ContainsFunc(proxyHeaders, func(name string) bool { return r.Header[name] != nil })
}

// Bounds of what is kept of stateless clients over HTTP, which have no session of their own.
const (
	maxStatelessClients = 64
	statelessClientTTL  = time.Hour
)

// recordStatelessLocked records a stateless client that lists tools. Above maxStatelessClients
// it replaces the least recent one.
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

// StatelessClients returns the names of the stateless clients over HTTP that share the session and
// asked for tools within the last hour; at most 64, in no order.
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
