package rawjson_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry/rawjson"
)

// inPieces checks a text that arrives in pieces: first bytes, then step bytes at a time.
func inPieces(src []byte, first, step int, mark bool) (*rawjson.Checker, error) {
	var c rawjson.Checker
	if mark {
		c.RecordShape()
	}
	for at := first; at < len(src); at += max(step, 1) {
		c.Feed(src[:at])
	}
	return &c, c.End(src)
}

func TestCheckOfPiecesIsThatOfTheWhole(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`[{"a":`, 200) + "1" + strings.Repeat("}]", 200)
	for _, text := range []string{
		``, ` `, `1`, `-`, `-0.5e+3 `, `01`, `1e`, `tru`, `true`, `trux`, `{}`, `{"a"`, `{"a":1,}`, `[1,2`, `[1 2]`, `[1,]`, `{"a":1]`, `{} {}`,
		`{"n\u0061me" : "x\\\" \ud83d\ude00" , "list":[ 1 , {"a":"]}"} ,[]] } `,
		`"\u12g4"`, `"\u12`, `"\x"`, `"\`, `"a`, "\"a\nb\"", "\"é€😀\"", "\"\xff\"", "\"\xc3\"", "\"\xe2\x82\"", "\"\xed\xa0\x80\"", "\"\xf0\x9f\x98", "[\xc3\xa9]",
		deep, deep + "]", strings.Repeat("[", 10001), strings.Repeat("[", 10000) + strings.Repeat("]", 10000),
		"{\n\"a\":\r\n[1,\n2]}\n",
	} {
		want := rawjson.Valid([]byte(text))
		for first := range min(len(text)+1, 40) {
			_, err := inPieces([]byte(text), first, max(1, len(text)/100), false)
			require.Equal(t, want, err, "%.40q from %d", text, first)
		}
	}
}

func TestCheckKnowsLineBreaksBetweenTokens(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"a":"x\ny"}`: false, "{\"a\":\n1}": true, "[1,\r2]": true, "[\n]": true, "\n{}\r\n": false, `[1, 2]`: false,
	} {
		c, err := inPieces([]byte(text), 1, 1, false)
		require.NoError(t, err)
		require.Equal(t, want, c.HasLineBreaks(), "%q", text)
	}
}

// A number may be as long as the text. Reading it again for each of the 65,000 pieces
// would take minutes.
func TestCheckOfLongTokensIsLinear(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"[" + strings.Repeat("1", 4<<20) + "]", "[" + strings.Repeat(" ", 4<<20) + "]",
		`["` + strings.Repeat("x", 4<<20) + `"]`, `["` + strings.Repeat("é", 2<<20) + `"]`, `["` + strings.Repeat(`\"`, 2<<20) + `"]`,
	} {
		_, err := inPieces([]byte(text), 0, 64, false)
		require.NoError(t, err)
	}
}

func TestShapeReadsWhatTheReadersRead(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(`x\"\\{[`, 1000)
	for _, text := range []string{
		`{"a":"` + long + `","a":["` + long + `",{"b":"` + long + `","c":1},2,"` + long + `"],"d":{"e":[]}}`,
		`{"` + long + `":{"` + long + `":[[[[[[[[[["` + long + `"]]]]]]]]]]},"z":[` + strings.Repeat(`{"a":[1]},`, 500) + `0]}`,
		`[` + strings.Repeat(`["`+long[:700]+`"],`, 20) + `"` + long + `"]`,
		`{"small":[1,{"a":2}]}`,
	} {
		src := append(make([]byte, 0, 2*len(text)), text...) // frames of a Reader have spare capacity
		c, err := inPieces(src, 10, 1000, true)
		require.NoError(t, err)
		same(t, c.Shape(src), src)
		same(t, c.Shape(src), bytes.TrimSpace(src))
		same(t, c.Shape(src), append([]byte(`{"other":"`+long+`","of":{"a":"`), long+`","b":[]}}`...))
		same(t, c.Shape(src), src[:len(text):len(text)])
	}
}

// same compares the readers of a Layout with readers that scan the text.
func same(t *testing.T, s *rawjson.Layout, v []byte) {
	t.Helper()
	type pair struct{ key, value string }
	var want, got []pair
	var inner [][]byte
	for k, v := range rawjson.Members(v) {
		want = append(want, pair{string(k), string(v)})
		require.Equal(t, string(rawjson.Get(v, "b")), string(s.Get(v, "b")))
	}
	for v := range rawjson.Elements(v) {
		want = append(want, pair{"", string(v)})
	}
	for k, v := range s.Members(v) {
		got = append(got, pair{string(k), string(v)})
		inner = append(inner, v)
	}
	for v := range s.Elements(v) {
		got = append(got, pair{"", string(v)})
		inner = append(inner, v)
	}
	require.Equal(t, want, got)
	for _, v := range inner {
		same(t, s, v)
	}
}

func TestACheckNotesTheMembersOfTheOutermostObject(t *testing.T) {
	t.Parallel()
	for text, noted := range map[string]int{
		`{}`: 0, `[{"a":1}]`: 0, `"a"`: 0, `{"a":1}`: 1,
		" { \"a\"\t:\n1 , \"b\" : {\"c\":[{\"d\":1},2],\"e\":\"}\"} ,\"a\":[ ]\r\n} ": 3,
		`{"a\"b":"\\","\u0061bcdefghijklmnopqrstuvwxyz\"":-1e5,"é":null,"":"x"}`:      4,
		`{"1":1,"2":2,"3":3,"4":4,"5":5,"6":6}`:                                       6,
		`{"1":1,"2":2,"3":3,"4":4,"5":5,"6":6,"7":{"8":8}}`:                           0,
		`{"a":"` + strings.Repeat("x", 65000) + `","b":1}`:                            2,
		`{"a":"` + strings.Repeat("x", 65536) + `","b":1}`:                            0,
		`{"a":` + strings.Repeat(`{"b":`, 200) + "1" + strings.Repeat("}", 200) + "}": 1,
	} {
		var whole rawjson.Checker
		require.NoError(t, whole.End([]byte(text)))
		require.Equal(t, noted, whole.MemberCount(), "%.80s", text)
		sameMembers(t, &whole, []byte(text))
		pieces, err := inPieces([]byte(text), 1, 1+len(text)/100, false)
		require.NoError(t, err)
		require.Zero(t, pieces.MemberCount(), "%.80s", text)
	}
}

// sameMembers compares the recorded members of a text with the readers' results.
func sameMembers(t *testing.T, c *rawjson.Checker, text []byte) {
	t.Helper()
	n := 0
	for k, v := range rawjson.Members(text) {
		if c.MemberCount() == 0 {
			return
		}
		key, value := c.Member(text, n)
		require.Equal(t, string(k), string(key))
		require.Equal(t, string(v), string(value))
		require.Equal(t, rawjson.Offset(text, v), rawjson.Offset(text, value))
		n++
	}
	require.Equal(t, n, c.MemberCount())
}

// FuzzCheck compares a check in pieces, and its results, with a check of the whole text.
// Each L is replaced by many.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"a":["L",{"b":"L"}],"L":[[[[[[[[["L"]]]]]]]]]}`), uint(3), uint(7))
	f.Add([]byte("[1.5e3,\n-0, tru"), uint(1), uint(1))
	f.Add([]byte("\"\\ud83d\\ude00\xf0\x9f\x98\x80\\\""), uint(2), uint(1))
	f.Fuzz(func(t *testing.T, src []byte, first, step uint) {
		if len(src) > 2000 {
			return
		}
		src = bytes.ReplaceAll(src, []byte("L"), bytes.Repeat([]byte("L"), 1100))
		whole := rawjson.Valid(src)
		c, err := inPieces(src, int(first%1000), int(step%1000)+len(src)/1000, true)
		require.Equal(t, whole, err)
		if err != nil {
			return
		}
		var once rawjson.Checker
		require.NoError(t, once.End(src))
		sameMembers(t, &once, src)
		trimmed := bytes.TrimSpace(src)
		require.Equal(t, bytes.ContainsAny(trimmed, "\r\n"), c.HasLineBreaks())
		if bytes.Count(src, []byte("["))+bytes.Count(src, []byte("{")) < 50 && json.Valid(src) {
			same(t, c.Shape(src), trimmed)
		}
	})
}
