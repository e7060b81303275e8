package rawjson_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"goblin/registry/rawjson"
)

func TestValidFollowsTheGrammar(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{}`:                              "",
		` [1, -0.5e+3, true, null, ""] `:  "",
		`{"a":{"b":[{}]},"a":1}`:          "",
		`"\u00e9\"\\"`:                    "",
		``:                                "byte 0: unexpected end",
		`{`:                               "byte 1: expected a member name",
		`{"a"}`:                           "byte 4: expected a colon",
		`{"a":1,}`:                        "byte 7: expected a member name",
		`[1,]`:                            "byte 3: unexpected ']'",
		`[1 2]`:                           "byte 3: unexpected '2'",
		`01`:                              "byte 1: text after the value",
		`-`:                               "byte 0: bad number",
		`1.`:                              "byte 0: bad number",
		`"a`:                              "byte 2: unterminated string",
		"\"a\nb\"":                        "byte 2: control character",
		`"\x"`:                            "byte 2: bad escape",
		`"\u12g4"`:                        `byte 2: bad \u escape`,
		`tru`:                             "byte 0: expected true",
		`{"a":1]`:                         "byte 6: unexpected ']'",
		"\"\xff\"":                        "not UTF-8",
		`{} {}`:                           "byte 3: text after the value",
		strings.Repeat("[", 10001):        "byte 10000: nested too deeply",
		strings.Repeat(`{"a":`, 200_000):  "nested too deeply",
		strings.Repeat("[", 200_000) + "": "nested too deeply",
	} {
		err := rawjson.Valid([]byte(text))
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.ErrorContains(t, err, want, "%.40q", text)
	}
	deep := strings.Repeat("[", rawjson.MaxDepth) + strings.Repeat("]", rawjson.MaxDepth)
	require.NoError(t, rawjson.Valid([]byte(deep)), "the limit itself is allowed")
}

func TestReadersSeeMembersAsTheyStand(t *testing.T) {
	t.Parallel()
	obj := []byte(` { "n\u0061me" : "x" , "n":-12e3,"list":[ 1 , {"a":"]}"} ,[]], "name":{"uri":"a\"b"} } `)
	require.NoError(t, rawjson.Valid(obj))

	require.Equal(t, `{"uri":"a\"b"}`, string(rawjson.Get(obj, "name")), "the last duplicate counts")
	require.Equal(t, "-12e3", string(rawjson.Get(obj, "n")))
	require.Nil(t, rawjson.Get(obj, "absent"))
	uri, ok := rawjson.String(rawjson.Path(obj, "name", "uri"))
	require.True(t, ok)
	require.Equal(t, `a"b`, uri)
	require.Nil(t, rawjson.Path(obj, "n", "uri"))

	var elements []string
	for e := range rawjson.Elements(rawjson.Get(obj, "list")) {
		elements = append(elements, string(e))
	}
	require.Equal(t, []string{"1", `{"a":"]}"}`, "[]"}, elements)
}

func TestEditsChangeOnlyTheirPlaces(t *testing.T) {
	t.Parallel()
	src := []byte(`{"uri":"file:///a","big":12345678901234567890,"list":[{"uri":"x"}]}`)
	first := rawjson.Get(src, "uri")
	var second []byte
	for e := range rawjson.Elements(rawjson.Get(src, "list")) {
		second = rawjson.Get(e, "uri")
	}
	got := rawjson.Splice(src,
		rawjson.ReplaceEdit(src, first, rawjson.Quote("mcp://s/file:///a")),
		rawjson.ReplaceEdit(src, second, []byte("null")))
	require.Equal(t, `{"uri":"mcp://s/file:///a","big":12345678901234567890,"list":[{"uri":null}]}`, string(got))
	require.Equal(t, `{"uri":"file:///a","big":12345678901234567890,"list":[{"uri":"x"}]}`, string(src), "the source is unchanged")
}

func TestSetMember(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ obj, want string }{
		{`{}`, `{"k":1}`},
		{`{ "a":2 }`, `{ "a":2 ,"k":1}`},
		{`{"k":{"deep":[]},"z":0}`, `{"k":1,"z":0}`},
	} {
		require.Equal(t, c.want, string(rawjson.SetMember([]byte(c.obj), "k", []byte("1"))))
	}
}

func TestStringsRoundTrip(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "plain", "\"\\/\b\f\n\r\t\x00\x1f", "é € 😀", "<script>&", "\u2028"} {
		quoted := rawjson.Quote(s)
		require.NoError(t, rawjson.Valid(quoted))
		back, ok := rawjson.String(quoted)
		require.True(t, ok)
		require.Equal(t, s, back)
	}
	pair, _ := rawjson.String([]byte(`"\ud83d\ude00"`))
	require.Equal(t, "😀", pair)
	lone, _ := rawjson.String([]byte(`"\ud83dx\u0041"`))
	require.Equal(t, "\ufffdxA", lone)
	require.Equal(t, `"a<b"`, string(rawjson.Quote("a<b")), "no HTML escapes")
}

func TestAppendIndent(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		` { } `: `{}`, `[1,"a,\"{"]`: "[\n  1,\n  \"a,\\\"{\"\n]", `{"a":{"b":[],"c":-1.5e3}}`: "{\n  \"a\": {\n    \"b\": [],\n    \"c\": -1.5e3\n  }\n}",
	} {
		require.Equal(t, want, string(rawjson.AppendIndent(nil, []byte(in))))
	}
	const depth = 5000
	deep := strings.Repeat("[", depth) + "1" + strings.Repeat("]", depth)
	require.Less(t, len(rawjson.AppendIndent(nil, []byte(deep))), 100*len(deep), "depth does not multiply the size")
}

func TestOneLineKeepsTheValue(t *testing.T) {
	t.Parallel()
	src := []byte("{\r\n  \"a\": \"x\\ny\",\n  \"b\": [1,\n2]\n}")
	var before, after any
	require.NoError(t, json.Unmarshal(src, &before))
	line := rawjson.OneLine(src)
	require.NotContains(t, string(line), "\n")
	require.NoError(t, json.Unmarshal(line, &after))
	require.Equal(t, before, after)
}

// FuzzValid compares the scanner with encoding/json, and the readers with its decoded
// values.
func FuzzValid(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,2,{"b":null}],"c":"\ud83d\ude00"}`, `[[],{},"",0,-1.5e9,true]`, `{"a":1,"a":2}`,
		`"\u00"`, `{"a" 1}`, ` `, `-01`, "\"\x7f\"", `{"\\":"\""}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if bytes.Count(src, []byte("["))+bytes.Count(src, []byte("{")) > 5000 {
			return
		}
		valid := rawjson.Valid(src) == nil
		if want := json.Valid(src) && utf8.Valid(src); valid != want {
			t.Fatalf("Valid(%q) = %v, want %v", src, valid, want)
		}
		for k, v := range rawjson.Members(src) { // must finish for any src
			_, _ = k.Is("a"), rawjson.Get(v, "a")
		}
		for e := range rawjson.Elements(src) {
			_, _ = rawjson.String(e)
		}
		if !valid {
			return
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(src, &object) != nil || object == nil {
			return
		}
		for name, want := range object {
			got := rawjson.Get(src, name)
			if strings.ContainsRune(name, utf8.RuneError) {
				continue
			}
			if string(got) != string(want) {
				t.Fatalf("Get(%q, %q) = %q, want %q", src, name, got, want)
			}
			var s string
			if json.Unmarshal(want, &s) == nil && rawjson.IsString(want) {
				if own, ok := rawjson.String(got); !ok || own != s {
					t.Fatalf("String(%q) = %q, want %q", got, own, s)
				}
			}
		}
	})
}

func BenchmarkValid(b *testing.B) {
	text := []byte(`{"content":[{"type":"text","text":"` + strings.Repeat("lorem ipsum ", 80_000) + `"}]}`)
	items := []byte(`{"tools":[` + strings.Repeat(`{"name":"a","description":"does a thing","inputSchema":{"type":"object","properties":{"x":{"type":"string"}}}},`, 9000) + `{}]}`)
	for name, src := range map[string][]byte{"text": text, "items": items} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				if err := rawjson.Valid(src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
