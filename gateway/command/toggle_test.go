package command

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/state"
)

func TestWhatIsOffAlreadyAndWhatStaysOffIsTold(t *testing.T) {
	t.Parallel()
	things := []*namedEntry{{server: "a", own: "x", listed: "a_x"}, {server: "a", own: "y", listed: "a_y"}}
	of := func(profile string) []state.ToggleEntry {
		return []state.ToggleEntry{{Profile: profile, Server: "a", Kind: "tool", Name: "x"}, {Profile: profile, Server: "a", Kind: "tool", Name: "y"}}
	}
	for _, tt := range []struct {
		before  []state.ToggleEntry
		on      bool
		profile string
		want    string
	}{
		{nil, false, "", "Disabled for all clients: a_x, a_y.\n"},
		{of("")[:1], false, "", "Disabled for all clients: a_y.\nAlready disabled: a_x.\n"},
		{of("")[:1], true, "", "Enabled for all clients: a_x.\nAlready enabled: a_y.\n"},
		{of("p"), true, "p", "Enabled for clients of profile \"p\": a_x, a_y.\n"},
		{of("")[1:], true, "p", "Already enabled: a_x, a_y.\nStill disabled for all clients: a_y; enable them without --profile.\n"},
		{of(""), false, "p", "Disabled for clients of profile \"p\": a_x, a_y.\n"},
	} {
		require.Equal(t, tt.want, toggleText(things, of(tt.profile), tt.before, tt.on, tt.profile))
	}
}
