package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"goblin/gateway"
)

// said returns each server's own instructions in the text, by name.
func said(text string) map[string]string {
	found := map[string]string{}
	for _, part := range strings.Split(text, "\n\nserver ")[1:] {
		name, rest, _ := strings.Cut(part, ": ")
		found[name], _, _ = strings.Cut(rest, "\n")
	}
	return found
}

func TestInstructionsAreSharedFairly(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		servers int
		text    string
		off     string
	}{
		"one that says much":        {1, strings.Repeat("x", 9000), ""},
		"a few":                     {8, strings.Repeat("long ", 200), ""},
		"many":                      {30, strings.Repeat("x", 400), ""},
		"more than fit":             {120, strings.Repeat("x", 400), ""},
		"many that are off":         {120, "", "a reason that " + strings.Repeat("is long ", 100)},
		"characters of four bytes":  {3, strings.Repeat("𝒳", 4000), ""},
		"characters of three bytes": {3, strings.Repeat("語", 4000), "語" + strings.Repeat("語", 700)},
	} {
		var servers []gateway.DescribedServer
		for i := range c.servers {
			servers = append(servers, gateway.DescribedServer{Name: fmt.Sprintf("server%d", i), Instructions: c.text})
			if c.off != "" {
				servers = append(servers, gateway.DescribedServer{Name: fmt.Sprintf("off%d", i), DisabledReason: c.off})
			}
		}
		servers = append(servers, gateway.DescribedServer{Name: "short", Instructions: "Ask  me\nfirst."})
		text := gateway.InstructionsText(servers, func(tool string) bool { return tool != "call_tool" })
		n := len(utf16.Encode([]rune(text)))
		require.Less(t, n, 2048, what)
		if c.text != "" {
			require.Greater(t, n, 1900, what)
		}
		least, longest := 1<<20, 0
		for name, part := range said(text) {
			if name != "short" {
				least, longest = min(least, len(part)), max(longest, len(part))
			}
		}
		if c.text != "" {
			require.LessOrEqual(t, longest-least, 4, what)
			require.Greater(t, least, 20, what)
		}
		if c.servers <= 30 {
			require.Equal(t, "Ask me first.", said(text)["short"], what)
			require.Len(t, said(text), map[bool]int{true: 1, false: 0}[c.text != ""]*c.servers+1, what)
		} else {
			require.Contains(t, text, " more: goblin://servers)", what)
		}
	}
}

func TestInstructionsNameWhatIsOff(t *testing.T) {
	t.Parallel()
	text := gateway.InstructionsText([]gateway.DescribedServer{
		{Name: "a", DisabledReason: "${TOKEN} is\u001b[31m not set", Instructions: "not shown"},
		{Name: "b", DisabledReason: "disabled"},
		{Name: "c", Instructions: "shown"},
	}, func(string) bool { return false })
	require.Contains(t, text, "cannot be called:\n- a: ${TOKEN} is [31m not set\n- b: disabled\n\nserver c: shown")
	require.NotContains(t, text, "not shown")
	require.NotContains(t, text, "search_tools")
}
