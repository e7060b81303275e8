package compare_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry/compare"
)

// differences returns the differences as lines such as "~ $.a 1 → 2".
func differences(t *testing.T, a, b string, ignore ...string) []string {
	t.Helper()
	patterns, err := compare.ParseIgnored(ignore...)
	require.NoError(t, err)
	r, err := compare.Values([]byte(a), []byte(b), compare.Options{Ignore: patterns})
	require.NoError(t, err)
	return texts(r)
}

func texts(r *compare.Result) []string {
	all := []string{}
	for _, d := range r.Differences {
		text := d.Op.Mark() + " " + d.Path.String()
		if d.PathB != nil {
			text += " (" + d.PathB.String() + ")"
		}
		switch d.Op {
		case compare.Changed:
			text += " " + string(d.A) + " → " + string(d.B)
		case compare.Removed:
			text += " " + string(d.A)
		default:
			text += " " + string(d.B)
		}
		all = append(all, text)
	}
	return all
}

func TestValuesAreComparedByMeaning(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want []string
	}{
		{`1`, `1.0`, nil},
		{`[100, 1e2, -0, 0.5]`, `[1e2, 100.00, 0, 5e-1]`, nil},
		{`12345678901234567890`, `12345678901234567891`, []string{"~ $ 12345678901234567890 → 12345678901234567891"}},
		{`1e99999999999999999999`, `1e99999999999999999998`, []string{"~ $ 1e99999999999999999999 → 1e99999999999999999998"}},
		{`0e99999999999999999999`, `0`, nil},
		{`-1`, `1`, []string{"~ $ -1 → 1"}},
		{`"a"`, `"\u0061"`, nil},
		{`{"a":1,"b":2}`, `{ "b": 2, "a": 1 }`, nil},
		{`null`, `{}`, []string{"~ $ null → {}"}},
		{`"1"`, `1`, []string{`~ $ "1" → 1`}},
		{`{"a":null}`, `{}`, []string{"- $.a null"}},
		{`{"a.b":1,"it's":2,"":3}`, `{"a.b":2}`, []string{"~ $['a.b'] 1 → 2", `- $['it\'s'] 2`, "- $[''] 3"}},
		{`{"a":1,"a":2}`, `{"a":1,"a":3}`, []string{"~ $.a(2) 2 → 3"}},
		{`{"a":1,"a":2}`, `{"a":1}`, []string{"- $.a(2) 2"}},
		{`{"a":1,"a":2}`, `{"a":2,"a":1}`, []string{"~ $.a 1 → 2", "~ $.a(2) 2 → 1"}},
		{`[]`, `[[]]`, []string{"+ $[0] []"}},
	} {
		require.ElementsMatch(t, c.want, differences(t, c.a, c.b), "%s and %s", c.a, c.b)
	}
}

func TestAnInsertedElementIsOneDifference(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want []string
	}{
		{`[1,2,3]`, `[0,1,2,3]`, []string{"+ $[0] 0"}},
		{`[1,2,3,4]`, `[1,4]`, []string{"- $[1] 2", "- $[2] 3"}},
		{`[{"i":0,"x":1},{"i":1,"x":2},{"i":2,"x":3}]`, `[{"i":0,"x":1},{"i":2,"x":3}]`, []string{`- $[1] {"i":1,"x":2}`}},
		// An element that changes beside an inserted one stays a pair.
		{`[{"name":"a","v":1},{"name":"b","v":1}]`, `[{"name":"new","v":9},{"name":"a","v":2},{"name":"b","v":1}]`, []string{`+ $[0] {"name":"new","v":9}`, "~ $[0].v ($[1].v) 1 → 2"}},
		{`[1,5,9]`, `[1,6,9]`, []string{"~ $[1] 5 → 6"}},
		{`["a","b","c"]`, `["c","a","b"]`, []string{`+ $[0] "c"`, `- $[2] "c"`}},
	} {
		require.ElementsMatch(t, c.want, differences(t, c.a, c.b), "%s and %s", c.a, c.b)
	}
}

func TestLongArraysAreAligned(t *testing.T) {
	t.Parallel()
	var a, b []string
	for i := range 20_000 {
		a = append(a, fmt.Sprint(i))
		if i != 5 && i != 19_000 {
			b = append(b, fmt.Sprint(i))
		}
		if i == 12_345 {
			b = append(b, `"new"`)
		}
	}
	require.Equal(t, []string{"- $[5] 5", `+ $[12345] "new"`, "- $[19000] 19000"}, differences(t, "["+strings.Join(a, ",")+"]", "["+strings.Join(b, ",")+"]"))
}

func TestIgnoredPathsDoNotCount(t *testing.T) {
	t.Parallel()
	const a = `{"result":{"rows":[{"i":1,"when":"x"},{"i":2,"when":"y"}],"a.b":1,"when":3}}`
	const b = `{"result":{"rows":[{"i":0,"when":"q"},{"i":1,"when":"z"},{"i":2,"when":"w"}],"a.b":2,"when":4,"new":{"when":1}}}`
	rest := []string{"~ $.result['a.b'] 1 → 2", `+ $.result.new {"when":1}`, `+ $.result.rows[0] {"i":0,"when":"q"}`}
	require.ElementsMatch(t, rest, differences(t, a, b, "..when"))
	require.ElementsMatch(t, rest, differences(t, a, b, "$.result.rows[*].when, result.when"))
	require.ElementsMatch(t, rest[:1], differences(t, a, b, "$..when", "$.result.new result['rows'][0]"))
	require.Empty(t, differences(t, a, b, "result.*"))
	require.Empty(t, differences(t, a, b, `$["result"]`))
	require.Empty(t, differences(t, a, b, "$..['a.b']", "..rows", "..when", "..new"))
	require.Empty(t, differences(t, `{"a":[1,2]}`, `{"a":[1,3]}`, "a[1]"))
	require.Empty(t, differences(t, `{"it's,":1}`, `{"it's,":2}`, `$['it\'s,']`))
}

func TestWrongPathsAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"$", "a..", "a[", "a[x]", "a[-1]", "a['b", `a["b]`, "a[1]b", "a]", "a[?@.b]", "a.", "$." + strings.Repeat("a", 1001), strings.Repeat(".a", 31)} {
		_, err := compare.ParseIgnored(text)
		require.ErrorContains(t, err, "write paths such as", text)
	}
	p, err := compare.ParseIgnored("a, b", "a")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, p.Texts())
}

func TestLargeInputIsLimited(t *testing.T) {
	t.Parallel()
	many := "[" + strings.Repeat("1,", compare.MaxValues) + "1]"
	_, err := compare.Values([]byte(many), []byte("1"), compare.Options{})
	require.ErrorContains(t, err, "A: more than 400000 JSON values")
	_, err = compare.Values([]byte("1"), []byte("{"), compare.Options{})
	require.ErrorContains(t, err, "B: invalid JSON")

	deep := func(n int, inside string) string { return strings.Repeat("[", n) + inside + strings.Repeat("]", n) }
	require.Len(t, differences(t, deep(9000, "1"), deep(9000, "2")), 1)
	require.Empty(t, differences(t, deep(9000, "1"), deep(9000, "1")))

	var a, b []string
	for i := range 1500 {
		a, b = append(a, fmt.Sprintf(`"k%d":1`, i)), append(b, fmt.Sprintf(`"k%d":2`, i))
	}
	r, err := compare.Values([]byte("{"+strings.Join(a, ",")+"}"), []byte("{"+strings.Join(b, ",")+"}"), compare.Options{})
	require.NoError(t, err)
	require.Len(t, r.Differences, compare.MaxListed)
	require.Equal(t, 500, r.More)
	require.Equal(t, "1500 differences; 2 paths ignored", r.Summary(2))
}

func TestTheMissingPartOfACutValueIsNoDifference(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want []string
	}{
		{`{"a":1,"rows":[1,2,3`, `{"a":1,"rows":[1,2,3,4,5],"z":1}`, nil},
		{`{"a":1,"rows":[1,2,{"x":"abc`, `{"a":1,"rows":[1,2,{"x":"abcdef"},4,5],"z":1}`, nil},
		{`{"a":1,"rows":[1,9,3`, `{"a":1,"rows":[1,2,3,4,5],"z":1}`, []string{"~ $.rows[1] 9 → 2"}},
		{`{"a":1,"na`, `{"a":2,"name":1}`, []string{"~ $.a 1 → 2"}},
		{`{"a":"x\"`, `{"a":"x\"yz"}`, nil},
		{`{"a":"x\"`, `{"a":"y"}`, []string{`~ $.a "x" → "y"`}},
		{`{"a":"xy\ud83d\ude0`, `{"a":"xy😀"}`, nil},
		{`{"a":"xyz`, `{"a":"xy"}`, []string{`~ $.a "xyz" → "xy"`}},
		{`{"a":"xy\u00`, `{"a":"xyä"}`, nil},
		{`{"a":"xy\\`, `{"a":"xy\\"}`, nil},
		{"{\"a\":\"xy\xc3", `{"a":"xyä"}`, nil},
		{`{"content":[{"type":"text","text":"abc`, `{"content":[{"type":"text","text":"abX","z":1}]}`, []string{`~ $.content[0].text "abc" → "abX"`}},
	} {
		r, err := compare.Values([]byte(c.a), []byte(c.b), compare.Options{ACut: true, BCut: true})
		require.NoError(t, err, c.a)
		require.ElementsMatch(t, c.want, texts(r), "%s and %s", c.a, c.b)
		r.Lines()
	}
}

// sides returns the drawn lines as "mark A | B".
func sides(t *testing.T, a, b string, ignore ...string) string {
	t.Helper()
	patterns, err := compare.ParseIgnored(ignore...)
	require.NoError(t, err)
	r, err := compare.Values([]byte(a), []byte(b), compare.Options{Ignore: patterns})
	require.NoError(t, err)
	return drawn(r)
}

func drawn(r *compare.Result) string {
	var out strings.Builder
	lines, _ := r.Lines()
	for _, l := range lines {
		out.WriteString(strings.TrimRight(fmt.Sprintf("%s%-23s|%s", l.Op.Mark(), l.A, l.B), " ") + "\n")
	}
	return out.String()
}

func TestLinesAreAligned(t *testing.T) {
	t.Parallel()
	require.Equal(t, ` {                      |{
~  "n": 3,              |  "n": 2,
   "rows": [            |  "rows": [
     {                  |    {
       "i": 0,          |      "i": 0,
       "when": (ignored)|      "when": (ignored)
     },                 |    }
-    {                  |
-      "i": 1,          |
-      "when": (ignored)|
-    }                  |
   ]                    |  ],
+                       |  "x": true
 }                      |}
`, sides(t, `{"n":3,"rows":[{"i":0,"when":1},{"i":1,"when":2}]}`, `{"rows":[{"i":0,"when":3}],"x":true,"n":2}`, "..when"))
}

func TestLongTextsAreComparedByLine(t *testing.T) {
	t.Parallel()
	require.Equal(t, ` {                      |{
   "t": (text)          |  "t": (text)
   | one                |  | one
~  | two                |  | 2
-  | three              |
   | four               |  | four
 }                      |}
`, sides(t, `{"t":"one\ntwo\nthree\nfour"}`, `{"t":"one\n2\nfour"}`))
}

func TestRequestsAreComparedByArgumentsAndResult(t *testing.T) {
	t.Parallel()
	call := func(n int, result string) *compare.Call {
		return &compare.Call{Server: "odd", Method: "tools/call", Name: "counter", Params: fmt.Appendf(nil, `{"name":"odd_counter","arguments":{"n":%d},"_meta":{"progressToken":%d}}`, n, n), Answer: []byte(result)}
	}
	diff := func(a, b *compare.Call) []string {
		t.Helper()
		r, err := compare.Calls(a, b, compare.Options{})
		require.NoError(t, err)
		return texts(r)
	}
	structured := func(n int) string {
		return fmt.Sprintf(`{"content":[{"type":"text","text":"{\"count\": %d}"}],"structuredContent":{"count":%d}}`, n, n)
	}
	require.Equal(t, []string{"~ $.arguments.n 3 → 2", "~ $.result.count 3 → 9"}, diff(call(3, structured(3)), call(2, structured(9))))
	require.Equal(t, []string{"~ $.result.count 1 → 2"}, diff(call(3, `{"content":[{"type":"text","text":"{\"count\":1}"}]}`), call(3, `{"content":[{"type":"text","text":" {\"count\":2}"}]}`)), "a text that is JSON")
	require.Equal(t, []string{`~ $.result.content[0].text "a" → "b"`}, diff(call(3, `{"content":[{"type":"text","text":"a"}]}`), call(3, `{"content":[{"type":"text","text":"b"}]}`)))
	require.ElementsMatch(t, []string{`- $.result.structuredContent {"count":3}`, `~ $.result.content[0].text "{\"count\": 3}" → "bad"`, "+ $.result.isError true"},
		diff(call(3, structured(3)), call(3, `{"isError":true,"content":[{"type":"text","text":"bad"}]}`)))

	failed := call(3, `{"code":-32602,"message":"no"}`)
	failed.IsError = true
	require.ElementsMatch(t, []string{`- $.result ` + structured(3), `+ $.error {"code":-32602,"message":"no"}`}, diff(call(3, structured(3)), failed))

	other := call(3, structured(3))
	other.Name = "count"
	require.Equal(t, []string{`~ $.name "counter" → "count"`}, diff(call(3, structured(3)), other))

	read := &compare.Call{Server: "files", Method: "resources/read", Name: "file:///a", Params: []byte(`{"uri":"file:///a","_meta":{"x":1}}`), Answer: []byte(`{}`)}
	again := *read
	again.Params = []byte(`{"uri":"file:///a"}`)
	require.Empty(t, diff(read, &again))
	content := func(text string) []byte {
		return fmt.Appendf(nil, `{"contents":[{"uri":"file:///a","mimeType":"application/json","text":%q}]}`, text)
	}
	read.Answer, again.Answer = content(`{"load":1}`), content(`{"load": 2}`)
	require.Equal(t, []string{"~ $.result.load 1 → 2"}, diff(read, &again), "a content that is JSON")
	again.Answer = content("gone")
	require.Equal(t, []string{`~ $.result.contents[0].text "{\"load\":1}" → "gone"`}, diff(read, &again))

	cut := call(3, `{"content":[{"type":"text","text":"abc`)
	cut.AnswerCut = true
	require.Empty(t, diff(cut, call(3, `{"content":[{"type":"text","text":"abcdef"}]}`)))
}

func TestCatalogsAreComparedByServerKindAndName(t *testing.T) {
	t.Parallel()
	tool := func(server, name, text string) compare.Entry {
		return compare.Entry{Server: server, Kind: "tool", Name: name, Definition: []byte(text), State: "listed"}
	}
	hidden := tool("odd", "d", `{"name":"d"}`)
	hidden.State = "disabled"
	changes, same, err := compare.Catalogs(
		[]compare.Entry{tool("odd", "a", `{"name":"a"}`), tool("odd", "b", `{"name":"b","description":"x"}`), tool("odd", "c", `{"name":"c"}`), tool("odd", "d", `{"name":"d"}`)},
		[]compare.Entry{tool("odd", "a", `{"name":"a"}`), tool("odd", "b", `{"name":"b","description":"y"}`), hidden, tool("new", "a", `{"name":"a"}`)}, compare.Options{})
	require.NoError(t, err)
	require.Equal(t, 1, same)
	var got []string
	for _, c := range changes {
		got = append(got, c.Op.Mark()+" "+c.Server+" "+c.Kind+" "+c.Name)
	}
	require.Equal(t, []string{"+ new tool a", "~ odd tool b", "- odd tool c", "~ odd tool d"}, got)
	require.Equal(t, []string{"state: listed → disabled"}, changes[3].What)
	require.NotEmpty(t, changes[1].What)
	require.Equal(t, compare.DefinitionHash([]byte(`{"a":1,"b":2}`)), compare.DefinitionHash([]byte(`{"b":2, "a":1}`)))
	require.Len(t, compare.DefinitionHash([]byte(`{}`)), 4)
}
