package recording_test

import (
	"encoding/json"
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
