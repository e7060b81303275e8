package host

import (
	"net"
	"os"
	"testing"
)

// Foreign makes files and peers look like another user's during a test.
func Foreign(t *testing.T, files, peers bool) {
	if files {
		ownerOf = func(os.FileInfo) (int, bool) { return os.Getuid() + 1, true }
	}
	if peers {
		whoIs = func(*net.UnixConn) (peer, error) { return peer{uid: os.Getuid() + 1, pid: 1, known: true}, nil }
	}
	t.Cleanup(func() { ownerOf, whoIs = fileOwner, peerOf })
}

// Bases replaces /run/user and /tmp during a test.
func Bases(t *testing.T, runtime, temporary string) {
	wasRuntime, wasTemporary := runtimeBase, temporaryBase
	runtimeBase, temporaryBase = runtime, temporary
	t.Cleanup(func() { runtimeBase, temporaryBase = wasRuntime, wasTemporary })
}

const MaxLog = maxLog

// ReadHello reads what a connection says first.
func ReadHello(c net.Conn) (kind string, rest []byte, err error) {
	h, rest, err := readHello(c)
	return h.Kind, rest, err
}
