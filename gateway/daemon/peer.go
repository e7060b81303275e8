package daemon

import (
	"fmt"
	"net"
	"os"
)

// peer is the process at the other end, as reported by the kernel.
type peer struct {
	uid, pid int
	known    bool // false if the system does not report it
}

// peerOfConn is a variable for tests.
var peerOfConn = peerOf

// checkPeer refuses a connection to another user, even if the directory's permissions
// were loosened.
func checkPeer(c *net.UnixConn) (peer, error) {
	p, err := peerOfConn(c)
	if err != nil {
		return p, fmt.Errorf("identify the peer of the socket: %w", err)
	}
	if p.known && p.uid != os.Getuid() {
		return p, fmt.Errorf("the peer of the socket is another user (uid %d)", p.uid)
	}
	return p, nil
}
