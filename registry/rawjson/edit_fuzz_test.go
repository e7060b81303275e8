package rawjson_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"goblin/registry/rawjson"
)

// FuzzEdits compares edits with encoding/json: the text stays valid, the member has the
// value, and all others are unchanged.
func FuzzEdits(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":[1, 2],"a":2}`), "a")
	f.Add([]byte(" {\r\n } "), "\u2028\x00\"")
	f.Add([]byte(`{"a\u0062":{}}`), "ab")
	f.Fuzz(func(t *testing.T, src []byte, name string) {
		if rawjson.Valid(src) != nil || !rawjson.IsObject(bytes.TrimSpace(src)) || !utf8.ValidString(name) {
			return
		}
		src = bytes.TrimSpace(src)
		quoted := rawjson.Quote(name)
		back, ok := rawjson.String(quoted)
		require.True(t, ok)
		require.Equal(t, name, back)

		out := rawjson.SetMember(src, name, []byte(`{"new":true}`))
		require.NoError(t, rawjson.Valid(out), "%s", out)
		require.JSONEq(t, `{"new":true}`, string(rawjson.Get(out, name)))
		var before, after map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(src, &before))
		require.NoError(t, json.Unmarshal(out, &after))
		delete(before, name)
		delete(after, name)
		require.Equal(t, before, after)

		var was, is any
		require.NoError(t, json.Unmarshal(src, &was))
		line := rawjson.OneLine(bytes.Clone(src))
		require.False(t, bytes.ContainsAny(line, "\r\n"))
		require.NoError(t, json.Unmarshal(line, &is))
		require.Equal(t, was, is)
	})
}
