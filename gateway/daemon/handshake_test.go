package daemon_test

import (
	"encoding/json"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/daemon"
)

// FuzzFirstLine checks that any first line is parsed or refused, and that the bytes after
// it are kept.
func FuzzFirstLine(f *testing.F) {
	f.Add("{\"goblin\":1,\"kind\":\"mcp\",\"version\":\"v\",\"pid\":7}\n{\"jsonrpc\"")
	f.Add("GET / HTTP/1.1\r\n\r\n")
	f.Add("{\"goblin\":2}\n")
	f.Add(strings.Repeat(" ", 20_000) + "\n")
	f.Add("{\"goblin\":1e400}\n")
	f.Fuzz(func(t *testing.T, said string) {
		near, far := net.Pipe()
		defer near.Close()
		go func() {
			defer far.Close()
			_, _ = far.Write([]byte(said)) // truncated if the line is too long
		}()
		kind, rest, err := daemon.ReadHello(near)
		line, after, whole := strings.Cut(said, "\n")
		if err != nil {
			return
		}
		require.True(t, whole)
		require.True(t, json.Valid([]byte(line)))
		require.LessOrEqual(t, len(kind), 3*len(line)) // invalid UTF-8 grows
		require.True(t, strings.HasPrefix(after, string(rest)))
	})
}
