package downstream

import (
	"net/http"
	"net/netip"
	"slices"
)

// IsLocal reports whether the client is on this machine, as far as that can be known: over
// HTTP, one whose request came from a loopback address, and through no proxy that says so.
func (x *Request) IsLocal() bool {
	out := x.Outer().now().out
	if b, ok := out.(*batch); ok {
		out = b.stream
	}
	p, overHTTP := out.(*post)
	return !overHTTP || fromHere(p.from)
}

// proxied are the headers by which proxies say for whom they ask.
var proxied = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Real-Ip"}

func fromHere(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback() &&
		!slices.ContainsFunc(proxied, func(name string) bool { return r.Header[name] != nil })
}
