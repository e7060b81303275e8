package downstream_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/downstream"
)

// Clients receive such lines at any level.
func TestLogLinesOfAnUnknownLevelCountAsTheHighest(t *testing.T) {
	require.Equal(t, downstream.LevelWarning, downstream.MessageLevel([]byte(`{"level":"warning"}`)))
	for _, params := range []string{`{"level":"fatal"}`, `{"level":"WARNING"}`, `{"level":3}`, `{}`} {
		for _, name := range downstream.Levels {
			asked, _ := downstream.ParseLevel(name)
			require.GreaterOrEqual(t, downstream.MessageLevel([]byte(params)), asked, "%s for %s", params, name)
		}
	}
}
