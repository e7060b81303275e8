package downstream

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// No client can evict the calls of others by many calls or many connections.
func TestRoomForACallIsMadeByWhoHasMost(t *testing.T) {
	over := func(address, port string) parkOwner { return parkOwner{address: address, port: port} }
	session := parkOwner{session: &Session{}}
	for name, c := range map[string]struct {
		waiting []parkOwner // the oldest first
		next    parkOwner
		evicted int
	}{
		"the address with most": {
			[]parkOwner{over("b", "1"), over("b", "1"), over("a", "1"), over("a", "2"), over("a", "3")}, over("c", "1"), 2,
		},
		"of its connections that with most": {
			[]parkOwner{over("a", "1"), over("a", "2"), over("a", "2"), over("b", "1"), over("b", "1")}, over("c", "1"), 1,
		},
		"the oldest of equals":    {[]parkOwner{over("b", "1"), over("a", "1"), over("a", "2"), over("b", "2")}, over("c", "1"), 0},
		"with the call that came": {[]parkOwner{over("b", "1"), over("a", "1"), over("a", "2"), over("b", "2")}, over("a", "3"), 1},
		"by connections, too":     {[]parkOwner{over("a", "1"), over("a", "2")}, over("a", "2"), 1},
		"a session":               {[]parkOwner{over("a", "1"), session, session}, over("a", "2"), 1},
		"a session that wants more": {
			[]parkOwner{over("a", "1"), over("a", "2"), session, session}, session, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			calls := &ParkedCalls{all: make(map[[16]byte]*parkedCall)}
			for i, owner := range c.waiting {
				calls.all[[16]byte{byte(i)}] = &parkedCall{owner: owner, number: uint64(i)}
			}
			require.Equal(t, uint64(c.evicted), calls.evictCandidateLocked(c.next).number)
		})
	}
}
