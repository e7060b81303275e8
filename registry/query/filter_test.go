package query_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry/query"
)

var now = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// row is an entry that the tests search.
type row struct {
	id, server, uri, mime string
	sub                   bool
	ago                   time.Duration // 0: never
	ms                    float64
}

var rows = []row{
	{"a", "github", "file:///srv/readme/payments.json", "application/json", true, 10 * time.Second, 3},
	{"b", "github", "file:///srv/README/orders.md", "text/markdown", false, 2 * time.Minute, 500},
	{"c", "gitea", "repo://main/config-main.yaml", "text/x-yaml; charset=utf-8", false, 3 * time.Hour, 501},
	{"d", "git", "repo://main/two words \"quoted\" ~tilde -dash", "text/plain", true, 48 * time.Hour, 1500},
	{"e", "docs", "https://example.org/İstanbul/STRAẞE/Σίσυφος", "", false, 0, math.NaN()},
	{"f", "My Files", "file:///c-o-n-f/mainline.json", "application/json", false, 90 * time.Minute, 2e6},
}

func fields() []query.Field {
	return []query.Field{
		{Name: "server", Aliases: []string{"srv"}, Kind: query.Text, Text: func(i int) string { return rows[i].server }},
		{Name: "mime", Kind: query.Text, Text: func(i int) string { return rows[i].mime }},
		{Name: "sub", Kind: query.YesNo, YesNo: func(i int) bool { return rows[i].sub }},
		{Name: "updated", Kind: query.Age, Time: func(i int) time.Time {
			if rows[i].ago == 0 {
				return time.Time{}
			}
			return now.Add(-rows[i].ago)
		}},
		{Name: "ms", Kind: query.Number, Number: func(i int) float64 { return rows[i].ms }},
		{Name: "broken", Kind: query.Text},
	}
}

func index() *query.Index {
	return query.NewIndex(len(rows), func(i int) string { return rows[i].uri })
}

func ids(found []int32) string {
	var b strings.Builder
	for _, i := range found {
		b.WriteString(rows[i].id)
	}
	return b.String()
}

func TestGrammar(t *testing.T) {
	t.Parallel()
	const all = "abcdef"
	for _, c := range []struct{ name, query, want string }{
		{"nothing asks for nothing", "", all},
		{"nor do spaces", " \t ", all},

		{"a word is found anywhere", "main", "cdf"},
		{"words are ANDed", "main file", "f"},
		{"in any order", "file main", "f"},
		{"and need not be whole", "onfig", "c"},
		{"lower case finds any case", "readme", "ab"},
		{"one upper-case letter makes the word case-sensitive", "README", "b"},
		{"and the exact case has to fit", "Readme", ""},
		{"but only that word", "README FILE", ""},
		{"other words stay as they are", "README file", "b"},
		{"letters that fold to other lengths", "istanbul", "e"},
		{"sharp s", "straße", "e"},
		{"final sigma", "σίσυφοσ", "e"},
		{"upper case beyond ASCII is exact", "İstanbul", "e"},
		{"and differs", "Istanbul", ""},
		{"an absent word hides all", "zzqx", ""},

		{"quotes keep spaces", `"two words"`, "d"},
		{"without them they are two", `words two`, "d"},
		{"in quotes the order counts", `"words two"`, ""},
		{"two quotes are one", `"""quoted"""`, "d"},
		{"a quote within a word is a character", `d"`, "d"},
		{"quotes may still be open", `"two wo`, "d"},
		{"after quotes a term ends", `"two wo"tilde`, "d"},
		{"quotes protect a dash", `"-dash"`, "d"},
		{"quotes protect a tilde", `"~tilde"`, "d"},
		{"quotes protect a colon", `"file:///srv"`, "ab"},
		{"empty quotes ask for nothing", `""`, all},

		{"a dash excludes a word", "-main", "abe"},
		{"with the same case rule", "-README", "acdef"},
		{"exclusion and word", "file -readme", "f"},
		{"in quotes", `-"two words"`, "abcef"},
		{"two dashes exclude a dash", "--dash", "abcef"},

		{"a field contains the value", "server:git", "abcd"},
		{"whatever its case", "server:GITH", "ab"},
		{"the name's case does not matter either", "Server:gitea", "c"},
		{"an alias is the field", "srv:gitea", "c"},
		{"an equals sign asks for the whole value", "server:=git", "d"},
		{"a value in quotes", `server:"my f"`, "f"},
		{"several of one field are ORed", "server:docs server:gitea", "ce"},
		{"also apart from each other", "server:docs org server:gitea", "e"},
		{"also by alias", "server:docs srv:gitea", "ce"},
		{"several fields are ANDed", "server:git mime:json", "a"},
		{"part of a MIME type", "mime:json", "af"},
		{"a star takes the whole value", "mime:text/*", "bcd"},
		{"it has to fit to the end", "mime:*json", "af"},
		{"it is anchored without stars at the ends", "mime:*yaml", ""},
		{"stars in the middle", "mime:t*/*-8", "c"},
		{"a star crosses a slash", "mime:a*json", "af"},
		{"a part does not count twice", "mime:application/*application/json", ""},
		{"a star alone is anything", "mime:*", all},
		{"empty quotes ask for no value", `mime:""`, "e"},
		{"and so does an equals sign in quotes", `mime:"="`, "e"},
		{"a field is excluded", "-mime:json", "bcde"},
		{"by a glob", "-mime:text/*", "aef"},
		{"each exclusion counts", "-mime:json -mime:text", "e"},
		{"facets and exclusions", "server:git server:docs -server:gitea", "abde"},

		{"yes", "sub:yes", "ad"},
		{"no", "sub:no", "bcef"},
		{"the first letter is enough", "sub:y", "ad"},
		{"both are all", "sub:yes sub:no", all},
		{"not yes", "-sub:yes", "bcef"},

		{"younger than", "updated:<5m", "ab"},
		{"a bare age is younger than", "updated:5m", "ab"},
		{"older than, which never is not", "updated:>1h", "cdf"},
		{"in seconds", "updated:<11s", "a"},
		{"in days", "updated:>=2d", "d"},
		{"exactly is not older", "updated:>2d", ""},
		{"younger than more than can be counted", "updated:<9223372036.854775808s", "abcdf"},
		{"units add up", "updated:<=1h30m", "abf"},
		{"a range of ages", "updated:>1m updated:<2h", "bf"},
		{"not younger includes never", "-updated:<5m", "cdef"},

		{"greater", "ms:>500", "cdf"},
		{"at least", "ms:>=500", "bcdf"},
		{"less, which unknown is not", "ms:<500", "a"},
		{"at most", "ms:<=500", "ab"},
		{"equal", "ms:=500", "b"},
		{"a bare number is equal", "ms:500", "b"},
		{"several equal ones are ORed", "ms:3 ms:=500", "ab"},
		{"a range", "ms:>3 ms:<1k", "bc"},
		{"a range of what is equal", "ms:3 ms:500 ms:>3", "b"},
		{"thousands", "ms:>=1.5k", "df"},
		{"millions", "ms:=2M", "f"},
		{"bytes by 1024", "ms:>1.9MiB", "f"},
		{"greater than something negative", "ms:>-1", "abcdf"},

		{"a tilde matches characters in order", "~cfgmain", "c"},
		{"the best match first", "~conf", "cf"},
		{"whatever their case", "~RDME", "ba"},
		{"a tilde and words", "~rdme orders", "b"},
		{"two tildes", "~rdme ~ordr", "b"},
		{"not these characters", "-~conf", "abde"},
		{"beyond ASCII", "~ibulß", "e"},

		{"a lone dash is being typed", "-", all},
		{"a lone tilde is", "~", all},
		{"both", "-~", all},
		{"a field without a value is", "server:", all},
		{"an excluded one is", "-server:", all},
		{"an open quote is", `mime:"`, all},
		{"an equals sign is", "server:=", all},
		{"a comparison is", "updated:<", all},
		{"of a number, too", "ms:>=", all},
		{"a name that is no field is text with its colon", "repo:", "cd"},
		{"though it is in no row", "custom:", ""},
		{"the rest counts meanwhile", "main server:", "cdf"},

		{"a URI is a word", "file:///srv", "ab"},
		{"of any scheme", "repo://main", "cd"},
		{"one that just began, too", "https:", "e"},
		{"and is excluded like one", "-file://", "cde"},
		{"and case counts", "FILE:///", ""},
		{"a colon after no name is a character", "://", all},
		{"a field that cannot be read asks for nothing", "broken:x", all},

		{"an unknown field hides nothing", "foo:bar", all},
		{"the other terms count", "foo:bar main", "cdf"},
		{"a bad value hides nothing", "sub:maybe updated:<5 ms:>x updated:=5m", all},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			q := query.Parse(c.query, fields())
			found, err := q.Match(t.Context(), index(), now)
			require.NoError(t, err)
			require.NotNil(t, found)
			require.Equal(t, c.want, ids(found), "%s", c.query)
			if q.IsEmpty() {
				require.Equal(t, all, c.want)
			}
		})
	}
}

func TestProblemNamesTheFirstBadTerm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                      "",
		"main server:git -mime": "",
		"foo:":                  "",
		"https://a":             "",
		"foo:bar":               `no field "foo" here; quote it to search for text; fields: server, mime, sub, updated, ms, broken`,
		"-foo:bar sub:maybe":    `no field "foo" here; quote it to search for text; fields: server, mime, sub, updated, ms, broken`,
		"sub:maybe foo:bar":     `sub must be yes or no, not "maybe"`,
		"updated:<5":            `updated must be an age such as <5m or >2h (s, m, h, d), not "<5"`,
		"updated:=5m":           `updated must be an age such as <5m or >2h (s, m, h, d), not "=5m"`,
		"ms:>x":                 `ms must be a number such as >500 or <=2k, not ">x"`,
		"ms:1.2.3":              `ms must be a number such as >500 or <=2k, not "1.2.3"`,
		"ms:inf":                `ms must be a number such as >500 or <=2k, not "inf"`,
		"sub:" + strings.Repeat("é", 99): `sub must be yes or no, not "` +
			strings.Repeat("é", 31) + `…"`,
	} {
		require.Equal(t, want, query.Parse(text, fields()).Problem(), "%s", text)
	}
	require.Equal(t, `no field "foo" here; quote it to search for text`, query.Parse("foo:bar", nil).Problem())
}

func TestEmptyAndRanked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		query         string
		empty, ranked bool
	}{
		{"", true, false},
		{`- ~ server: "" foo:bar sub:maybe`, true, false},
		{"a", false, false},
		{"-a", false, false},
		{"sub:y", false, false},
		{"~a", false, true},
		{"-~a", false, false},
		{"-~a ~b", false, true},
	} {
		q := query.Parse(c.query, fields())
		require.Equal(t, c.empty, q.IsEmpty(), "%s", c.query)
		require.Equal(t, c.ranked, q.IsRanked(), "%s", c.query)
	}
}

func TestRankedTiesAndWhatIsTooMuchToScore(t *testing.T) {
	t.Parallel()
	const n = 5000
	text := func(i int) string {
		switch i {
		case n - 1:
			return "cfg"
		case n - 2:
			return "x/c-f-gx"
		}
		return "the_cat_of_my_granny"
	}
	ix := query.NewIndex(n, text)
	q := query.Parse("~cfg", nil)
	found, err := q.Match(t.Context(), ix, now)
	require.NoError(t, err)
	require.Len(t, found, n, "unscored rows are still found")
	require.Equal(t, []int32{n - 2, n - 1, 0, 1, 2}, found[:5], "the closest are scored, in any position")
	require.True(t, slices.IsSorted(found[2:]), "equal ones keep their order")
}

func TestScoreCountsWordBoundaries(t *testing.T) {
	t.Parallel()
	texts := []string{"xxrxxmxx", "readMe", "r_m"}
	ix := query.NewIndex(len(texts), func(i int) string { return texts[i] })
	found, err := query.Parse("~rm", nil).Match(t.Context(), ix, now)
	require.NoError(t, err)
	require.Equal(t, int32(0), found[2], "%v", found)
}

func TestMatchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	reads := 0
	fs := []query.Field{{Name: "n", Kind: query.Number, Number: func(int) float64 {
		if reads++; reads == 5000 {
			cancel()
		}
		return 1
	}}}
	ix := query.NewIndex(100_000, func(int) string { return "abc" })
	found, err := query.Parse("n:1", fs).Match(ctx, ix, now)
	require.ErrorIs(t, err, context.Canceled)
	require.Nil(t, found)
	require.LessOrEqual(t, reads, 2*4096)

	for _, text := range []string{"", "~abc"} {
		_, err = query.Parse(text, fs).Match(ctx, ix, now)
		require.ErrorIs(t, err, context.Canceled)
	}
	require.Empty(t, query.Parse("zzz", fs).ExcludingTerm(ctx, ix, now))
}

func TestFieldsWithManyValues(t *testing.T) {
	t.Parallel()
	// More values than are cached, each of them used twice.
	const n = 6000
	value := func(i int) string { return strings.Repeat("x", i%3000) }
	fs := []query.Field{{Name: "v", Kind: query.Text, Text: value}}
	ix := query.NewIndex(n, func(int) string { return "" })
	found, err := query.Parse("v:="+value(2500)+" v:="+value(5), fs).Match(t.Context(), ix, now)
	require.NoError(t, err)
	require.Equal(t, []int32{5, 2500, 3005, 5500}, found)
}

func TestExcludesNamesTheTermThatNothingFits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"main zzqx":                  "zzqx",
		`main "zz qx"`:               `"zz qx"`,
		"main server:nobody":         "server:nobody",
		"server:qq main server:zz":   "server:qq server:zz",
		"-mime:*":                    "-mime:*",
		"main ~zq":                   "~zq",
		"updated:<1s":                "updated:<1s",
		"main readme":                "", // each of them matches something
		"server:docs mime:json":      "",
		"server:docs server:nothere": "",
		"":                           "",
	} {
		require.Equal(t, want, query.Parse(text, fields()).ExcludingTerm(t.Context(), index(), now), "%s", text)
	}
	require.Empty(t, query.Parse("a", nil).ExcludingTerm(t.Context(), query.NewIndex(0, nil), now), "without rows there is no culprit")
}

func TestWordsSpellNamesByTheBeginningsOfTheirWords(t *testing.T) {
	t.Parallel()
	for words, means := range map[string]bool{
		"": true, "config.json": true, "onf": true, "confjson": true, "json conf": true, "fsc": true, "SRVJS": true, "cofig": false, "jsonconf": false, "cj x": false, "cjx": false,
	} {
		require.Equal(t, means, query.SpellsName(words, "file:///srv/config.json"), words)
	}
	require.True(t, query.SpellsName("gumu", "getUserMusic"))
	require.True(t, query.SpellsName("übäp", "Über.Äpfel"))
	require.False(t, query.SpellsName("nope", "notes/improve_note"))
	require.True(t, query.SpellsName("notim", "not_note_improve"), "at any position")
}

func TestLettersOfAWordAreInOnePartOfAText(t *testing.T) {
	t.Parallel()
	ix := query.NewIndex(3, func(i int) string { return []string{"memory_open_nodes\x00open_nodes", "x\x00no_pens", "nop\x00e"}[i] })
	found, err := query.Parse("~nope", nil).Match(t.Context(), ix, time.Time{})
	require.NoError(t, err)
	require.Equal(t, []int32{1}, found)
}

func TestSpans(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, query, text, want string }{
		{"every occurrence", "ma", "ma, Ma and mA", "[ma], [Ma] and [mA]"},
		{"exact words only as they are", "Ma", "ma, Ma", "ma, [Ma]"},
		{"overlapping ones are one", "abc bcd", "xabcdx", "x[abcd]x"},
		{"neighbours are one", "ab cd", "abcd", "[abcd]"},
		{"words that are not there", "zz ab", "xabx", "x[ab]x"},
		{"nothing of what is excluded", "-ab -~ab", "ab", "ab"},
		{"nothing of fields", "server:ab sub:yes", "ab yes", "ab yes"},
		{"fuzzy characters", "~cfg", "the config", "the [c]on[f]i[g]"},
		{"fuzzy ones prefer camel case", "~rm", "aprReadMe", "apr[R]ead[M]e"},
		{"only if all are there", "~cfgz", "config", "config"},
		{"folding that changes lengths", "nbul", "İİstanbul İx", "İİsta[nbul] İx"},
		{"of the found runes, too", "i", "xİx", "x[İ]x"},
		{"and behind them", "ßex", "STRAẞEX", "STRA[ẞEX]"},
		{"a longer lower case", "ⱥb", "ȺB", "[ȺB]"},
		{"fuzzy with such", "~ix", "-İ-x", "-[İ]-[x]"},
		{"bytes that are no text", "b", "a\xffB\xc3", "a\xff[B]\xc3"},
		{"a NUL does not hide the rest", "~ab", "\x00a\x00b", "\x00[a]\x00[b]"},
		{"URIs", "file://", "file:///x", "[file://]/x"},
		{"an empty query", "", "ab", "ab"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, from := "", 0
			for _, s := range query.Parse(c.query, fields()).Spans(c.text) {
				got += c.text[from:s.Start] + "[" + c.text[s.Start:s.End] + "]"
				from = s.End
			}
			require.Equal(t, c.want, got+c.text[from:])
		})
	}
}

func TestRowsComeByThePartInWhichTheWordsAre(t *testing.T) {
	t.Parallel()
	texts := []string{"echo\x00\x00runs along", "long-run\x00Runs", "sum\x00Long sums\x00adds", "prolong", "Long\x00x\x00y", "along\x00Long"}
	ix := query.NewIndex(len(texts), func(i int) string { return texts[i] })
	for text, want := range map[string][]int32{
		"long":       {1, 3, 4, 5, 2, 0},
		"Long":       {4, 2, 5}, // in the second part of the last, whose first part has a small one
		"run long":   {1, 0},
		"long -echo": {1, 3, 4, 5, 2},
		"s":          {2, 1, 0},
		"":           {0, 1, 2, 3, 4, 5},
	} {
		got, err := query.Parse(text, nil).Match(t.Context(), ix, time.Now())
		require.NoError(t, err)
		require.Equal(t, want, got, "%q", text)
	}
}

func TestFacets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text, field string
		values            []string
		want              string
	}{
		{"into nothing", "", "server", []string{"a"}, "server:a"},
		{"at the end", "conf -x", "server", []string{"a", "b"}, "conf -x server:a server:b"},
		{"replacing the first", "conf server:a x server:b y", "server", []string{"c"}, "conf server:c x y"},
		{"none", "conf server:a x server:", "server", nil, "conf x"},
		{"exclusions and others stay", "-server:a ~server:b mime:c", "server", []string{"d"}, "-server:a ~server:b mime:c server:d"},
		{"the name in any case", "Server:a", "server", []string{"b"}, "server:b"},
		{"spaces are quoted", "", "server", []string{"My Files"}, `server:"My Files"`},
		{"quotes are doubled", "", "server", []string{`"a" b`}, `server:"""a"" b"`},
		{"no value", "", "mime", []string{""}, `mime:""`},
		{"globs stay globs", "", "mime", []string{"text/*"}, "mime:text/*"},
		{"an open quote is closed", `"two wo`, "server", []string{"a"}, `"two wo" server:a`},
		{"an open field without a value is not", `mime:"`, "server", []string{"a"}, `mime: server:a`},
		{"an open quote alone goes", `a "`, "server", []string{"a"}, `a server:a`},
		{"the space between is one", "  a \t b ", "server", []string{"c"}, "a b server:c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := query.Set(c.text, c.field, c.values)
			require.Equal(t, c.want, got)
			require.Equal(t, c.values, query.Values(got, c.field))
		})
	}
	require.Equal(t, []string{"a b", "c"}, query.Values(`x server:"a b" -server:d server: SERVER:c "server:e"`, "server"))

	require.Equal(t, "x server:a", query.Toggle("x", "server", "a"))
	require.Equal(t, "x server:a server:b", query.Toggle("x server:a", "server", "b"))
	require.Equal(t, "x server:b", query.Toggle("x server:A server:b", "server", "a"))
	require.Equal(t, "x", query.Toggle("x server:a", "server", "a"))
	require.Equal(t, "x server:git server:gi", query.Toggle("x server:git", "server", "gi"), "a part is another value")
	require.Equal(t, "", query.Toggle(`mime:""`, "mime", ""))
}
