package dialog_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/tui/dialog"
)

const peopleJSON = `{"people":[{"name":"Ada","age":36,"id":12345678901234567890123},{"name":"Bob","age":7},{"name":"<Cy>"}],"n":1.50,"deep":{"name":"x"}}`

func TestAPathFindsWhatIsInJSON(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"":                             peopleJSON,
		"people[*].name":               `["Ada","Bob","<Cy>"]`,
		"$.people[0].id":               `12345678901234567890123`,
		"n":                            `1.50`,
		"people[?(@.age > 30)].name":   `"Ada"`,
		"people[?@.name == 'Bob'].age": `7`,
		"people[-1]":                   `{"name":"<Cy>"}`,
		"nothing":                      `[]`,
		"[":                            "!",
		"people[?(":                    "!",
		"$..*..*..*":                   "!",
		strings.Repeat("a.", 400):      "!",
	} {
		v, err := dialog.ReadDocument([]byte(peopleJSON))
		require.NoError(t, err)
		found, _, err := dialog.FindInDocument(v, len(peopleJSON), path)
		if want == "!" {
			require.Error(t, err, path)
			continue
		}
		require.NoError(t, err, path)
		require.JSONEq(t, want, string(found), path)
		if len(want) < 60 {
			require.Equal(t, want, string(found), path)
		}
	}
	v, err := dialog.ReadDocument([]byte("{\"a\":1}\n{\"a\":2}"))
	require.NoError(t, err)
	found, n, err := dialog.FindInDocument(v, 20, "$[*].a")
	require.NoError(t, err)
	require.Equal(t, "[1,2]", string(found), "both a request and its response")
	require.Equal(t, 2, n)
	_, err = dialog.ReadDocument([]byte("no JSON"))
	require.Error(t, err)
	_, _, err = dialog.FindInDocument(v, 1<<20, "$[?(@.a == $[0].a)]")
	require.Error(t, err, "quadratic time is too slow")
}

func TestWhatAPathFindsHasTheOrderOfTheDocument(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"zone":"UTC","time":{"z":1,"a":[{"y":2,"b":3}]},"abbreviation":"x"}`: `{"zone":"UTC","time":{"z":1,"a":[{"y":2,"b":3}]},"abbreviation":"x"}`,
		"{\"z\":1,\"a\":2}\n{\"y\":[],\"b\":{}}":                               `[{"z":1,"a":2},{"y":[],"b":{}}]`,
		`{"b":{"y":1,"x":2},"a":null,"b":{"q":1,"p":"<"}}`:                     `{"b":{"q":1,"p":"<"},"a":null}`,
	} {
		v, err := dialog.ReadDocument([]byte(text))
		require.NoError(t, err)
		found, _, err := dialog.FindInDocument(v, len(text), "$")
		require.NoError(t, err)
		require.Equal(t, want, string(found))
	}
	v, err := dialog.ReadDocument([]byte(`{"rows":[{"z":1,"a":{"length":2,"b":1}}]}`))
	require.NoError(t, err)
	found, _, err := dialog.FindInDocument(v, 40, "rows[?length(@) == 2]")
	require.NoError(t, err)
	require.Equal(t, `{"z":1,"a":{"length":2,"b":1}}`, string(found))
}

func FuzzPath(f *testing.F) {
	f.Add(peopleJSON, "people[?(@.age > 30)].name")
	f.Add(`[1,[2,{"a":null}]]`, "$..a[?length(@) ~= /x/]")
	f.Add(`{"a":"\u0000"}`, "a['\\u0000'][1:-1:2]")
	f.Fuzz(func(t *testing.T, data, path string) {
		v, err := dialog.ReadDocument([]byte(data[:min(len(data), 4096)]))
		if err != nil {
			return
		}
		if _, _, err := dialog.FindInDocument(v, len(data), path); err != nil {
			require.NotContains(t, err.Error(), "\x1b")
		}
	})
}
