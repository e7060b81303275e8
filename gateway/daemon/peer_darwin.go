package daemon

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerOf returns the process that made the connection (LOCAL_PEERCRED, LOCAL_PEERPID).
func peerOf(c *net.UnixConn) (peer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return peer{}, err
	}
	var cred *unix.Xucred
	var pid int
	if cerr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		if err == nil {
			pid, err = unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
		}
	}); cerr != nil {
		return peer{}, cerr
	}
	if err != nil {
		return peer{}, err
	}
	return peer{uid: int(cred.Uid), pid: pid, known: true}, nil
}
