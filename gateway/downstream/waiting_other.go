//go:build !unix

package downstream

import "net"

// waiting reports whether somebody waits to be accepted now: not known.
func waiting(net.Listener) bool { return false }
