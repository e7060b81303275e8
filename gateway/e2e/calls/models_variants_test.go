//go:build e2e

package calls

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestInstructionsHoldAnExcerptOfEveryServers(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	long := strings.Repeat("äbcde fghi", 300)
	w.Backend("zed", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "instructions": "Call t\r\n first.\u0000\u001b[31m\u202e "})
	w.Backend("quiet", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	w.Backend("long", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "instructions": long, "era": "modern"})
	c := w.Standalone()
	require.NotEmpty(t, c.Names("tools"))
	modern := e2e.Obj{"_meta": e2e.Obj{e2e.ProtocolPrefix + "protocolVersion": e2e.ModernRevision, e2e.ProtocolPrefix + "clientCapabilities": e2e.Obj{}}}
	text := e2e.Str(c.Ok("server/discover", modern), "instructions")
	require.Contains(t, text, "Goblin serves")
	require.Contains(t, text, "\n\nserver zed: Call t first. [31m\n\nserver long: äbcde fghiäbcde")
	require.NotContains(t, text, "quiet:")
	_, excerpt, _ := strings.Cut(text, "server long: ")
	require.Equal(t, 2047, len([]rune(text)), "all the room that there is")
	require.True(t, strings.HasSuffix(excerpt, "…"), excerpt)
	require.Equal(t, text, e2e.Str(c.Ok("server/discover", modern), "instructions"), "in the same order")
}
