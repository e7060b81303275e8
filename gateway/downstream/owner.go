package downstream

import "net"

// Owner tells clients apart where one is to leave room for the others: equal values are
// one client's. A session is one client. Those of stateless HTTP have nothing but their
// address and the name that they give; a connection tells nothing, since a client needs
// one for each of its calls. All of that can be made up, as sessions can be opened, so
// nothing but fairness may hang on it.
func (x *Exchange) Owner() any {
	if !x.session.stateless {
		return x.session
	}
	return x.OwnerID()
}

// OwnerID is Owner as text.
func (x *Exchange) OwnerID() string {
	if !x.session.stateless {
		return x.session.id
	}
	host, _, err := net.SplitHostPort(x.Modern().Remote)
	if err != nil {
		host = "" // not by TCP
	}
	return host + " " + x.ClientName()
}
