package daemon

import (
	"fmt"
	"net"
	"os"
)

// peer is the process at the other end of a connection, as the kernel says.
type peer struct {
	uid, pid int
	known    bool // false where the system cannot tell
}

// peerOfConn is a variable so that tests can act as another user.
var peerOfConn = peerOf

// checkPeer refuses a connection from or to another user. The folder keeps
// them out already; this holds even where somebody opened it.
func checkPeer(c *net.UnixConn) (peer, error) {
	p, err := peerOfConn(c)
	if err != nil {
		return p, fmt.Errorf("ask who is at the other end of the socket: %w", err)
	}
	if p.known && p.uid != os.Getuid() {
		return p, fmt.Errorf("the other end of the socket belongs to user %d, not to us", p.uid)
	}
	return p, nil
}
