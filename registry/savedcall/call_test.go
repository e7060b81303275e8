package savedcall_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry/savedcall"
)

const example = `# saved/orders/one.yaml
call: library_search
arguments: {query: "${WORD:-dune}", limit: 3}
capture: {first: "$.structuredContent.books[0].id"}
expect:
  - {path: "$.isError", equals: false}
  - {path: "$.content[0].text", matches: "(?i)dune"}
  - {path: "$.structuredContent.books", exists: true}
  - {time: 2s}
  - {size: 64KiB}
  - {same: true, ignore: ["$.structuredContent.when"]}
`

func TestExample(t *testing.T) {
	t.Parallel()
	c, err := savedcall.Parse("one.yaml", []byte(example))
	require.NoError(t, err)
	r, err := c.Resolve(savedcall.Variables{})
	require.NoError(t, err)
	require.Equal(t, "tools/call", r.Method)
	require.JSONEq(t, `{"name":"library_search","arguments":{"query":"dune","limit":3}}`, string(r.Params))
	a := savedcall.Answer{Result: json.RawMessage(`{"content":[{"type":"text","text":"Dune"}],"structuredContent":{"books":[{"id":9007199254740993}]}}`)}
	a.Stored = a.Document()
	for _, o := range r.Evaluate(a) {
		require.True(t, o.OK, "%s: %s", o.Text, o.Got)
	}
	captures, err := r.Captures(a)
	require.NoError(t, err)
	require.Equal(t, "9007199254740993", string(captures["first"]))
}
