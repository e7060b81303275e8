package egress

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A name may have another address at each lookup. Only the address of the connection
// counts.
func TestRebindingReachesNoPrivateAddress(t *testing.T) {
	const server, named = "server.example.com", "named.example.com"
	for name, row := range map[string]struct {
		server   []string // answers to lookups of the server's name
		requests int      // to the server, before it names the address
		named    []string // answers to lookups of the named host
		refused  bool
	}{
		"public, names public":                          {[]string{public1}, 1, []string{public1}, false},
		"public, names private":                         {[]string{public1}, 1, []string{private1}, true},
		"public, named is private at second":            {[]string{public1}, 1, []string{private1, public1}, true},
		"private, names private":                        {[]string{private1}, 1, []string{private2}, false},
		"private, names public":                         {[]string{private1}, 1, []string{public1}, false},
		"private first, then public":                    {[]string{private1, public1}, 2, []string{private1}, true},
		"public first, then private":                    {[]string{public1, private1}, 1, []string{private1}, true},
		"both, private first":                           {[]string{private1 + " " + public1}, 1, []string{private2}, false},
		"both, private first, but nothing there":        {[]string{"127.0.0.9 " + public1}, 1, []string{private1}, true},
		"not asked yet, public":                         {[]string{public1}, 0, []string{private1}, true},
		"not asked yet, private":                        {[]string{private1}, 0, []string{private1}, false},
		"not connected yet, private without a listener": {[]string{"127.0.0.9"}, 0, []string{private1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, private1, private2, public1)
			zone.set(server, row.server...)
			zone.set(named, row.named...)
			rt := newTestTransport(s.url(server))
			for range row.requests {
				require.NoError(t, ask(t, rt, s.url(server)))
			}
			before := s.hits[private1] + s.hits[private2]
			err := ask(t, rt, s.url(named))
			if !row.refused {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "a public server names the private address "+private1)
			require.Equal(t, before, s.hits[private1]+s.hits[private2])
		})
	}
}

// A server that was public must stay public, under its own name as well.
func TestAPublicServerDoesNotMoveToAPrivateAddress(t *testing.T) {
	s := newSite(t, private1, public1)
	zone.set("server.example.com", public1, private1)
	rt := newTestTransport(s.url("server.example.com"))
	require.NoError(t, ask(t, rt, s.url("server.example.com")))
	require.ErrorContains(t, ask(t, rt, s.url("server.example.com")), "a public server names the private address")
	require.Zero(t, s.hits[private1])

	// Of several addresses, a public one is used.
	zone.set("server.example.com", private1+" "+public1)
	require.NoError(t, ask(t, rt, s.url("server.example.com")))
	require.Zero(t, s.hits[private1])
}

// A connection that only determines the server's address proves nothing without the
// server's certificate.
func TestAnAddressIsTheServersOnlyWithItsCertificate(t *testing.T) {
	s := newSite(t, private1)
	zone.set("named.example.com", private1)
	zone.set("server.test", private1)
	require.ErrorContains(t, ask(t, newTestTransport(s.url("server.test")), s.url("named.example.com")), "a public server names the private address")
	plain := newTestTransport("http://server.test:" + s.port + "/mcp")
	require.ErrorContains(t, ask(t, plain, s.url("named.example.com")), "a public server names the private address")
	require.Empty(t, s.hits)

	// AssumeLocal applies until the server answers from another address.
	plain = newTestTransport(s.url("server.example.com"))
	plain.AssumeLocal()
	require.NoError(t, ask(t, plain, s.url("named.example.com")))
	moved := newSite(t, public1)
	zone.set("server.example.com", public1)
	plain = newTestTransport(moved.url("server.example.com"))
	plain.AssumeLocal()
	require.NoError(t, ask(t, plain, moved.url("server.example.com")))
	require.ErrorContains(t, ask(t, plain, s.url("named.example.com")), "a public server names the private address")
}
