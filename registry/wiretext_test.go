package registry

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHowAnExchangeWentIsWrittenDown(t *testing.T) {
	text := AppendWord(nil, ClientID, []byte(`"a-1"`))
	text = AppendWord(text, ServerID, []byte("7"))
	text = AppendWire(text, FromClient, "POST /mcp HTTP/1.1")
	text = AppendHeaders(text, FromClient, map[string][]string{
		"User-Agent": {"curl/8"}, "Accept": {"a", "b\nd7"}, "Empty": {""},
		"Authorization": {"Bearer s3cr3t"}, "Cookie": {"s3cr3t"}, "X-Api-Key": {"s3cr3t"}, "Mcp-Session-Id": {"s3cr3t"}, "X-GitHub-TOKEN": {"s3cr3t"}, "to\u212Aen": {"s3cr3t"},
	})
	require.Equal(t, `"a-1"`, WireID(text, ClientID))
	require.Equal(t, "7", WireID(text, ServerID))
	require.Equal(t, []string{
		"POST /mcp HTTP/1.1", "Accept: a", "Accept: b d7", "Authorization: [hidden]", "Cookie: [hidden]", "Empty",
		"Mcp-Session-Id: [hidden]", "User-Agent: curl/8", "X-Api-Key: [hidden]", "X-GitHub-TOKEN: [hidden]", "to\u212Aen: [hidden]",
	}, WireLines(text, FromClient))
	require.Empty(t, WireLines(text, FromServer))
	require.NotContains(t, string(text), "s3cr3t")

	value := strings.Repeat("s3cr3t", 500)
	text = AppendHeaders(nil, FromServer, map[string][]string{"X-Tenant": {value}, "Location": {"https://h/cb?code=s3cr3t"}})
	require.Equal(t, []string{"Location: https://h/cb", "X-Tenant: [3000 bytes]"}, slices.Sorted(slices.Values(WireLines(text, FromServer))))

	long := AppendWire(nil, WireToServer, strings.Repeat("x", 5000))
	require.Less(t, len(long), 1100)
	for range 100 {
		long = AppendWire(long, WireToServer, strings.Repeat("x", 5000))
	}
	require.LessOrEqual(t, len(long), MaxWire)
	require.Equal(t, text, AppendWord(text, ClientID, []byte(strings.Repeat("1", 5000))), "such an ID is not relevant")
	require.Zero(t, testing.AllocsPerRun(10, func() {
		AppendHeaders(AppendWord(long[:0], ClientID, []byte("1")), WireToServer, map[string][]string{})
	}))
}

// FuzzWire checks that the text of headers cannot look like another line.
func FuzzWire(f *testing.F) {
	f.Add("Accept", "a\ni7")
	f.Add("x\ns1", "")
	f.Fuzz(func(t *testing.T, name, value string) {
		text := AppendHeaders(AppendWord(nil, ClientID, []byte("1")), FromServer, map[string][]string{name: {value, value}})
		require.LessOrEqual(t, len(text), MaxWire)
		require.Equal(t, []string{"1"}, WireLines(text, ClientID))
		require.Empty(t, WireLines(text, ServerID))
		require.LessOrEqual(t, len(WireLines(text, FromServer)), 2)
		WireID([]byte(name+"\n"+value), WireToClient)
	})
}
