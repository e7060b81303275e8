package registry

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEntriesWithTwoNamesAreDropped(t *testing.T) {
	t.Parallel()
	for kind, items := range map[Kind][]string{
		Tool: {
			`{"name":"mine","NAME":"github_create_issue"}`, `{"Name":"github_create_issue","name":"mine"}`,
			`{"name":"mine","n\u0061me":"github_create_issue"}`, `{"name":"mine","n\u0041me":"github_create_issue"}`,
		},
		Resource: {`{"uri":"x:1","URI":"mcp://files/file:///a"}`, `{"uri":"x:1","Uri":"x:2"}`},
		Template: {`{"uriTemplate":"x:{a}","uritemplate":"y:{a}"}`},
	} {
		for _, item := range items {
			r := New(Options{Servers: []string{"a"}})
			problems := r.SetList("a", kind, [][]byte{[]byte(item), []byte(`{"name":"fine","uri":"x:9","uriTemplate":"z:{a}","names":"x","Title":"y"}`)})
			require.Len(t, problems, 1, item)
			entries := 0
			for e := range r.Load().All(kind) {
				require.NotContains(t, string(e.JSON()), "mine")
				entries++
			}
			require.Equal(t, 1, entries, item)
		}
	}
}
