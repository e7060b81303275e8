package downstream

import "net"

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
