package recording_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry/recording"
)

func TestAChangeKeepsTheOrderOfAList(t *testing.T) {
	t.Parallel()
	l := recording.Line{
		List: "resources", Removed: []string{"a:1", "a:none"},
		Added: []json.RawMessage{[]byte(`{"uri":"a:4"}`), []byte(`{"uri":"a:2","name":"new"}`)},
	}
	var all []string
	for _, d := range l.Change([]json.RawMessage{[]byte(`{"uri":"a:1"}`), []byte(`{"uri":"a:2"}`), []byte(`{"uri":"a:3"}`), []byte(`[]`)}) {
		all = append(all, string(d))
	}
	require.Equal(t, []string{`{"uri":"a:2","name":"new"}`, `{"uri":"a:3"}`, `[]`, `{"uri":"a:4"}`}, all)
}

func TestDefinitionsOfARecordingAreLimited(t *testing.T) {
	t.Parallel()
	r, err := recording.Open(write(t, header))
	require.NoError(t, err)
	large := slices.Repeat([]json.RawMessage{make([]byte, 1<<20)}, 200)
	require.Len(t, r.Keep("a", "tools", large), 200)
	require.Len(t, r.Keep("a", "tools", large), 200, "a changed list replaces the earlier one")
	require.Len(t, r.Keep("b", "tools", large), 56)
	require.Len(t, r.Keep("b", "prompts", large), 0)
	r.Keep("a", "tools", nil)
	r.Keep("b", "tools", nil)
	require.Len(t, r.Keep("c", "tools", slices.Repeat([]json.RawMessage{[]byte("1")}, recording.MaxDefinitions+1)), recording.MaxDefinitions)
	problems, _ := r.Problems()
	require.Len(t, problems, 2, "one per server")
	require.Contains(t, problems[0].Text, `lists of server "b"`)
	require.Contains(t, problems[1].Text, `lists of server "c"`)
}
