package downstream

import "net"

// Owner tells clients apart where one is to leave room for the others: equal values are
// one client's. A session is one client. Of stateless ones over HTTP it is a [Stranger].
func (x *Exchange) Owner() any {
	if !x.session.stateless {
		return x.session
	}
	host, _, err := net.SplitHostPort(x.Modern().Remote)
	if err != nil {
		host = "" // not by TCP
	}
	return Stranger{host, x.ClientName()}
}

// Stranger is a stateless client over HTTP, as far as it can be known. Its connection
// tells nothing: a client needs one for each of its calls. Its name may be made up, so
// nothing but fairness may hang on it.
type Stranger struct{ Address, Name string }

// Group is of whom there may be many by made-up names: together, they are to leave some
// room, too.
func (s Stranger) Group() any { return s.Address }
