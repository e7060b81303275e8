//go:build !unix

package downstream

import "net"

// hasPendingConn reports whether somebody waits to be accepted now: not known.
func hasPendingConn(net.Listener) bool { return false }
