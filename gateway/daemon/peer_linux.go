package daemon

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerOf returns the process that made the connection (SO_PEERCRED).
func peerOf(c *net.UnixConn) (peer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return peer{}, err
	}
	var cred *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); cerr != nil {
		return peer{}, cerr
	}
	if err != nil {
		return peer{}, err
	}
	return peer{uid: int(cred.Uid), pid: int(cred.Pid), known: true}, nil
}
