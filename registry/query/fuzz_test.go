package query_test

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"goblin/registry/query"
)

// FuzzParse checks that Parse returns a working query for any text. The result of Set can
// be read back and keeps all other terms.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "a b", `"a b" -c ~d`, "server:gi mime:text/* -sub:yes", `server:"My Files" server:"`, `mime:""`, `"""`,
		"updated:<5m ms:>=1.5k", "updated:<999999999999999999999d", "file:///x https: foo:bar", "-~\"", "- ~ -- ~~", "\x00 \xff:\xc3",
		"İ ẞ:ς", "a:::b", "server:*", "server:=", "ms:1e9", "ms:.", "server:a\u00a0server:b", "~a\xffb",
		"since:10m at:02:06..02:07 took:>1s arg.a.b:x", "at:9999-12-31T23:59:59.999999999..00:00", "since:9999999999999d", "at:..0000-01-01", "took:1h1ms",
	} {
		f.Add(text, `va "l`, "w")
	}
	ix := index()
	fields := func() []query.Field {
		more := times(now, time.Second, map[string][]string{"a.b": {"x"}})
		more[3].Name = "took"
		return append(fields(), more...)
	}
	f.Fuzz(func(t *testing.T, text, v, w string) {
		q := query.Parse(text, fields())
		found, err := q.Match(t.Context(), ix, now)
		require.NoError(t, err)
		if q.IsEmpty() {
			require.Len(t, found, len(rows))
		}
		if q.ExcludingTerm(t.Context(), ix, now) != "" {
			require.Empty(t, found)
		}

		want := []string{sanitized(v), sanitized(w)}
		set := query.Set(text, "server", want)
		require.Equal(t, want, query.Values(set, "server"), "%q", set)
		require.Equal(t, query.Values(text, "mime"), query.Values(set, "mime"), "%q", set)
		require.Equal(t, set, query.Set(set, "server", query.Values(set, "server")), "setting the same value changes nothing")

		// Without the field, exactly the other terms remain.
		others := query.Parse(query.Set(text, "server", nil), fields())
		back := query.Parse(query.Set(set, "server", nil), fields())
		a, err := others.Match(t.Context(), ix, now)
		require.NoError(t, err)
		b, err := back.Match(t.Context(), ix, now)
		require.NoError(t, err)
		require.Equal(t, a, b)
		if len(query.Values(text, "server"))+len(query.Values(text, "srv")) == 0 {
			require.Equal(t, found, a)
		}
	})
}

// sanitized returns s with invalid bytes and NUL replaced, as when it is typed.
func sanitized(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// FuzzSpans checks that spans are on rune boundaries, sorted and disjoint. A row that
// matched words has spans, and they cover these words.
func FuzzSpans(f *testing.F) {
	for _, seed := range [][2]string{
		{"conf", "file:///srv/Config"},
		{"İ", "i"},
		{"i", "İİ"},
		{"ẞ ~ix", "ßix"},
		{"K", "k K"},
		{"k", "k K"},
		{"a", "\xffa\xc3"},
		{"\xc3", "é"},
		{"~abb", "ab bab"},
		{"~aa", "aaa"},
		{"ⱥ", "Ⱥ"},
		{"\ufffd", "\xff\ufffd"},
		{"ab bc", "ABCab"},
		{"~\u0301e", "é\u0301e"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, text, in string) {
		q := query.Parse(text, nil)
		spans := q.Spans(in)
		bounds := map[int]bool{len(in): true}
		for i := range in { // also skips bytes that are not text
			bounds[i] = true
		}
		end := -1
		for _, s := range spans {
			require.Greater(t, s.Start, end, "%v", spans)
			require.Greater(t, s.End, s.Start)
			require.True(t, bounds[s.Start] && bounds[s.End], "%v in %q", spans, in)
			end = s.End
		}
		ix := query.NewIndex(1, func(int) string { return in })
		found, err := q.Match(t.Context(), ix, now)
		require.NoError(t, err)
		positive := !q.IsEmpty() && !strings.Contains(text, "-")
		if positive && len(found) > 0 {
			require.NotEmpty(t, spans, "%q found %q", text, in)
		}
		if len(strings.FieldsFunc(sanitized(text), unicode.IsSpace)) == 1 && positive && !strings.ContainsAny(text, `~":`) {
			require.Equal(t, len(found) == 1, len(spans) > 0, "a matched word has spans")
		}
	})
}

// Every rune matches every other one that differs only by case, in any position, and its
// span is that rune.
func TestFoldingOfEveryRune(t *testing.T) {
	t.Parallel()
	for r := rune(1); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) || unicode.IsSpace(r) || unicode.SimpleFold(r) == r && unicode.ToLower(r) == r {
			continue
		}
		for o := unicode.SimpleFold(r); ; o = unicode.SimpleFold(o) {
			if !unicode.IsUpper(o) && !unicode.IsTitle(o) {
				text := "1" + string(r) + "2"
				spans := query.Parse(string(o), nil).Spans(text)
				require.Equal(t, []query.Span{{Start: 1, End: 1 + utf8.RuneLen(r)}}, spans, "%q in %q", o, text)
			}
			if o == r {
				break
			}
		}
	}
}

// A search in the previous matches finds the same as a search in all rows.
