package recording_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry/recording"
)

func TestAPlaceholderMatchesTheSecretItReplaced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		recorded, text string
		want           bool
	}{
		{"plain", "plain", true},
		{"plain", "other", false},
		{"[hidden:0a1b2c3d]", "secret", true},
		{"[hidden]", "secret", true},
		{"[hidden]", "[hidden]", true},
		{"[hidden]", "", false},
		{"[hidden:0a1b2c3]", "secret", false},
		{"[hidden", "secret", false},
		{"[hidden:zz", "[hidden:zz", true},
		{"key=[hidden:0a1b2c3d]&x=1", "key=secret&x=1", true},
		{"key=[hidden:0a1b2c3d]&x=1", "key=secret&x=2", false},
		{"key=[hidden:0a1b2c3d]&x=1", "key=&x=1", false},
		{"a[hidden]b[hidden]c", "a1b2c", true},
		{"a[hidden]b[hidden]c", "a1b2d", false},
		{"a[hidden]b[hidden]c", "abbc", false},
		{"[hidden][hidden]", "x", false},
		{"[hidden][hidden]", "xy", true},
	} {
		require.Equal(t, c.want, recording.MatchesHidden(c.recorded, c.text), "%q %q", c.recorded, c.text)
	}
	require.True(t, recording.HasPlaceholder("x [hidden:0a1b2c3d] y"))
	require.False(t, recording.HasPlaceholder("x [hidden: y"))
}
