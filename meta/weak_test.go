package meta_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSearchesThatFindNothingGoodSaySo(t *testing.T) {
	t.Parallel()
	c := tools(t, fixture(t), nil)
	for args, want := range map[string]struct {
		weak    bool
		servers []string
	}{
		`{"query": "read file"}`: {},
		`{"query": "time"}`:      {},
		`{"query": "databse"}`:   {},
		`{"query": ""}`:          {},
		`{"query": "xylophone"}`: {weak: true},
		`{"query": "zone tune xylophone accordion viola trombone cello harp flute oboe"}`:                     {weak: true, servers: []string{"clock"}},
		`{"query": "zone tune xylophone accordion viola trombone cello harp flute oboe","serverId": "clock"}`: {weak: true},
		`{"query": "xylophone", "offset": 5}`:                                                                 {weak: true},
	} {
		var found struct {
			Weak    bool
			Advice  string
			Servers []string
		}
		require.NoError(t, json.Unmarshal(c.call("search_tools", args).Structured, &found), args)
		require.Equal(t, want.weak, found.Weak, args)
		require.Equal(t, want.servers, found.Servers, args)
		switch {
		case want.servers != nil:
			require.Equal(t, "Nothing fits well. Try other words for the action, or look into one of these servers by catalog_tools.", found.Advice)
		case want.weak:
			require.Equal(t, "Nothing fits well. Try other words for the action.", found.Advice)
		default:
			require.Empty(t, found.Advice)
		}
	}
	require.NotContains(t, string(c.call("search_prompts", `{"query": "xylophone"}`).Structured), "weak", "measured for tools only")
}
