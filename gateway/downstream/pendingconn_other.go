//go:build !unix

package downstream

import "net"

// hasPendingConn returns false because this system cannot tell.
func hasPendingConn(net.Listener) bool { return false }
