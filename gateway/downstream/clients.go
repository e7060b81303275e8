package downstream

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"
)

// Owner returns a key of the client for sharing limits fairly: the session, or an
// [AnonymousClient] for stateless HTTP.
func (x *Request) Owner() any {
	if !x.session.stateless {
		return x.session
	}
	return AnonymousClient{hostname(x.Modern().Remote), x.ClientName()}
}

// Group returns the client's address for an HTTP session, otherwise nil.
func (s *Session) Group() any {
	if s.address == "" {
		return nil
	}
	return s.address
}

func hostname(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	return host
}

// AnonymousClient identifies a stateless HTTP client as well as possible. The name may be
// forged, so use it for fairness only. A connection identifies nothing, since clients
// open one per concurrent call.
type AnonymousClient struct{ Address, Name string }

// Group returns the address, since one client may forge many names.
func (s AnonymousClient) Group() any { return s.Address }

// IsLocal reports whether the client is on this machine. Over HTTP, that means a loopback
// address and no headers of a proxy.
func (x *Request) IsLocal() bool {
	out := x.Outer().current().out
	if b, ok := out.(*batch); ok {
		out = b.stream
	}
	p, overHTTP := out.(*postStream)
	return !overHTTP || isLocalRequest(p.httpRequest)
}

var proxyHeaders = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Real-Ip"}

func isLocalRequest(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback() &&
		!slices.ContainsFunc(proxyHeaders, func(name string) bool { return r.Header[name] != nil })
}

// Limits of Session.statelessClients.
const (
	maxStatelessClients = 64
	statelessClientTTL  = time.Hour
)

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

// StatelessClients returns up to 64 names of stateless HTTP clients that listed tools in
// the last hour.
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
