package registry

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry/wire"
)

func TestHowAnExchangeWentIsWrittenDown(t *testing.T) {
	text := wire.AppendWord(nil, wire.ClientID, []byte(`"a-1"`))
	text = wire.AppendWord(text, wire.ServerID, []byte("7"))
	text = wire.Append(text, wire.FromClient, "POST /mcp HTTP/1.1")
	text = wire.AppendHeaders(text, wire.FromClient, map[string][]string{
		"User-Agent": {"curl/8"}, "Accept": {"a", "b\nd7"}, "Empty": {""},
		"Authorization": {"Bearer s3cr3t"}, "Cookie": {"s3cr3t"}, "X-Api-Key": {"s3cr3t"}, "Mcp-Session-Id": {"s3cr3t"}, "X-GitHub-TOKEN": {"s3cr3t"}, "to\u212Aen": {"s3cr3t"},
	})
	require.Equal(t, `"a-1"`, wire.ID(text, wire.ClientID))
	require.Equal(t, "7", wire.ID(text, wire.ServerID))
	require.Equal(t, []string{
		"POST /mcp HTTP/1.1", "Accept: a", "Accept: b d7", "Authorization: [hidden]", "Cookie: [hidden]", "Empty",
		"Mcp-Session-Id: [hidden]", "User-Agent: curl/8", "X-Api-Key: [hidden]", "X-GitHub-TOKEN: [hidden]", "to\u212Aen: [hidden]",
	}, wire.Lines(text, wire.FromClient))
	require.Empty(t, wire.Lines(text, wire.FromServer))
	require.NotContains(t, string(text), "s3cr3t")

	long := wire.Append(nil, wire.ToServer, strings.Repeat("x", 5000))
	require.Less(t, len(long), 1100)
	for range 100 {
		long = wire.Append(long, wire.ToServer, strings.Repeat("x", 5000))
	}
	require.LessOrEqual(t, len(long), wire.Most)
	require.Equal(t, text, wire.AppendWord(text, wire.ClientID, []byte(strings.Repeat("1", 5000))), "such an id is none to be looked at")
	require.Zero(t, testing.AllocsPerRun(10, func() {
		wire.AppendHeaders(wire.AppendWord(long[:0], wire.ClientID, []byte("1")), wire.ToServer, map[string][]string{})
	}))
}

// FuzzWire: what headers say cannot pass for another line.
func FuzzWire(f *testing.F) {
	f.Add("Accept", "a\ni7")
	f.Add("x\ns1", "")
	f.Fuzz(func(t *testing.T, name, value string) {
		text := wire.AppendHeaders(wire.AppendWord(nil, wire.ClientID, []byte("1")), wire.FromServer, map[string][]string{name: {value, value}})
		require.LessOrEqual(t, len(text), wire.Most)
		require.Equal(t, []string{"1"}, wire.Lines(text, wire.ClientID))
		require.Empty(t, wire.Lines(text, wire.ServerID))
		require.LessOrEqual(t, len(wire.Lines(text, wire.FromServer)), 2)
		wire.ID([]byte(name+"\n"+value), wire.ToClient)
	})
}
