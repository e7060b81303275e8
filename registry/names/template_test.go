package names

import (
	"strconv"
	"strings"
	"testing"
	"unicode"

	oracle "github.com/yosida95/uritemplate/v3"
	"pgregory.net/rapid"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct{ template, yes, no string }{
		{"mcp://database/{table}/{id}", "mcp://database/users/42|mcp://database/a%2Fb/é x", "mcp://database/users/42/x|mcp://database/users/|mcp://database/users|mcp://database/u?a/1"},
		{"file:///{+path}", "file:///a|file:///a/b/c?d#e", "file:///|file://a"},
		{"x:{v*}", "x:a,b|x:a/b", "x:|x:a?b|x:a#b"},
		{"x:{a,b}", "x:1,2|x:1", "x:1/2"},
		{"x:{v:3}y", "x:abcy|x:ay|x:%41bcy|x:éééy|x:%C3%A9%C3%A9%C3%A9y", "x:abcdy|x:y"},
		{"x{#v}", "x|x#|x#a/b?c", "xa"},
		{"x{.v}", "x|x.a|x.a.b", "xa|x.a/b"},
		{"x{/v}", "x|x/|x/a", "xa|x/a/b"},
		{"x{/a,b}/end", "x/end|x/1/end|x/1/2/end", "x/1/2/3/end"},
		{"x{/v*}", "x|x/a/b/c", "xa|x/a?b"},
		{"x{;a,b}", "x|x;a|x;a=1|x;b=2;a=1", "x;c=1|x;ax|x;a=1;c=2"},
		{"x{;m*}", "x;q=1;r=2|x", "x;q/1"},
		{"x{?a,b}", "x|x?a=1|x?b=2|x?b=2&a=1|x?a=&b=x/y", "x?c=1|x&a=1|x?a=1&c=2|x?a=1#f"},
		{"x?k=v{&a,b}", "x?k=v|x?k=v&b=1&a=2", "x?k=v?a=1|x?k=v&c=1"},
		{"x{?m*}", "x?any=1&other=2|x", "x?a#b"},
		{"a b/{v}", "a b/1|a%20b/1", "a+b/1"},
		{"{a}{b}", "ab|abc", "a"},
		{"plain:uri", "plain:uri", "plain:uris|plain:ur"},
	} {
		tpl, err := ParseTemplate(c.template)
		if err != nil {
			t.Fatalf("Parse(%q): %v", c.template, err)
		}
		for uri := range strings.SplitSeq(c.yes, "|") {
			if !tpl.Match(uri) {
				t.Errorf("%s does not match %s", c.template, uri)
			}
		}
		for uri := range strings.SplitSeq(c.no, "|") {
			if tpl.Match(uri) {
				t.Errorf("%s matches %s", c.template, uri)
			}
		}
	}
}

func TestParseRefusesBadTemplates(t *testing.T) {
	for _, s := range []string{
		"file:///{bad", "a}b", "{}", "{+}", "{a,}", "{=a}", "{|a}", "{a b}", "{a:0}", "{a:10000}", "{a:x}", "{a:+1}", "{a:01}",
		"{a*:3}", "{{a}}", "{.}", "{a..b}", "{%zz}", strings.Repeat("{a}", MaxVariables+1), strings.Repeat("x", MaxTemplate+1),
	} {
		if _, err := ParseTemplate(s); err == nil {
			t.Errorf("Parse(%q) succeeded", s)
		}
	}
}

// The examples are from RFC 6570, section 3.2, except the last ones.
func TestExpand(t *testing.T) {
	values := map[string]string{
		"var": "value", "hello": "Hello World!", "half": "50%", "path": "/foo/bar", "base": "http://example.com/home/",
		"who": "fred", "dub": "me/too", "x": "1024", "y": "768", "v": "6", "empty": "",
		"word": "é日👩", "pct": "%E6%9!", "my-var": "a b", "broken": "\xff",
	}
	for template, want := range map[string]string{
		"O{x}O": "O1024O", "{var}": "value", "{hello}": "Hello%20World%21", "{half}": "50%25", "{x,y}": "1024,768", "{x,hello,y}": "1024,Hello%20World%21,768",
		"{var:3}": "val", "{var:30}": "value", "{+hello}": "Hello%20World!", "{+half}": "50%25", "{base}index": "http%3A%2F%2Fexample.com%2Fhome%2Findex",
		"{+base}index": "http://example.com/home/index", "{+path}/here": "/foo/bar/here", "{+path:6}/here": "/foo/b/here", "{#x,hello,y}": "#1024,Hello%20World!,768", "{#path}": "#/foo/bar",
		"X{.x,y}": "X.1024.768", "{/var,x}/here": "/value/1024/here", "{/var:1,var}": "/v/value", "{;x,y}": ";x=1024;y=768", "{;hello:5}": ";hello=Hello",
		"{?x,y}": "?x=1024&y=768", "{?x,undef}": "?x=1024", "{?var:3}": "?var=val", "?fixed=yes{&x}": "?fixed=yes&x=1024", "{who,undef}|{/who*}": "fred%7C/fred", "O{undef,x}{/undef}": "O1024",
		"{word}": "%C3%A9%E6%97%A5%F0%9F%91%A9", "{+word}": "%C3%A9%E6%97%A5%F0%9F%91%A9", "{word:1}": "%C3%A9", "{?word:2}": "?word=%C3%A9%E6%97%A5",
		"日 {x}": "%E6%97%A5%201024", "{pct}": "%25E6%259%21", "{+pct}": "%E6%259!", "{my-var}": "a%20b", "{broken}": "%FF", "{x}{empty}{?empty}": "1024",
	} {
		tpl, err := ParseTemplate(template)
		if err != nil {
			t.Fatal(err)
		}
		got := tpl.Expand(values)
		if got != want {
			t.Errorf("%s expands to %s, not %s", template, got, want)
		}
		if !tpl.Match(got) {
			t.Errorf("%s does not match its expansion %s", template, got)
		}
	}
	tpl, _ := ParseTemplate("{b}{/a,b:3}{?c*}")
	if got := strings.Join(tpl.Names(), " "); got != "b a c" {
		t.Errorf("the variables are %s", got)
	}
}

// The expansions of an independent implementation must match.
func TestMatchesWhatAnotherImplementationExpands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z]{1,3}`)
		value := rapid.StringOfN(rapid.RuneFrom([]rune("abz09-._~ /?#&=;,:%é日")), 1, 6, -1)
		var text strings.Builder
		values := oracle.Values{}
		for range rapid.IntRange(1, 5).Draw(t, "parts") {
			text.WriteString(rapid.StringMatching(`[a-z:/. -]{0,4}`).Draw(t, "literal"))
			op := rapid.SampledFrom([]string{"", "+", "#", ".", "/", ";", "?", "&"}).Draw(t, "op")
			var specs []string
			for range rapid.IntRange(1, 3).Draw(t, "vars") {
				name := word.Draw(t, "name") + strconv.Itoa(len(values))
				spec := name
				switch rapid.IntRange(0, 4).Draw(t, "modifier") {
				case 0:
					spec += "*"
					values.Set(name, oracle.List(rapid.SliceOfN(value, 1, 3).Draw(t, "list")...))
				case 1:
					spec += ":3"
					values.Set(name, oracle.String(value.Draw(t, "value")))
				default:
					values.Set(name, oracle.String(value.Draw(t, "value")))
				}
				specs = append(specs, spec)
			}
			text.WriteString("{" + op + strings.Join(specs, ",") + "}")
		}
		want, err := oracle.New(text.String())
		if err != nil {
			t.Skip(err)
		}
		uri, err := want.Expand(values)
		if err != nil {
			t.Skip(err)
		}
		tpl, err := ParseTemplate(text.String())
		if err != nil {
			t.Fatalf("Parse(%q): %v", text.String(), err)
		}
		if !tpl.Match(uri) {
			t.Fatalf("%s does not match its expansion %s", text.String(), uri)
		}
		if own, alike := expanded(tpl, values); alike && own != uri {
			t.Fatalf("%s expands to %s, not %s", text.String(), own, uri)
		}
	})
}

// expanded returns the expansion of the other implementation's values, and whether both
// must be equal. The other one encodes non-ASCII text differently and does not encode
// literals. It cuts a prefix within a triplet and knows lists.
func expanded(tpl *Template, values oracle.Values) (uri string, alike bool) {
	texts := map[string]string{}
	for name, value := range values {
		if value.T != oracle.ValueTypeString {
			return "", false
		}
		texts[name] = value.V[0]
		if strings.ContainsFunc(value.V[0], func(r rune) bool { return r == '%' || r > unicode.MaxASCII }) {
			return "", false
		}
	}
	for _, p := range tpl.parts {
		if p.encoded != "" {
			return "", false
		}
	}
	return tpl.Expand(texts), true
}

func TestIndexPrefersTheTemplateThatSaysMost(t *testing.T) {
	texts := []string{
		"{+any}", "file:///{+path}", "file:///logs/{+path}", "file:///{dir}/app.log", "file:///{x}", "file:///{y}",
		"db://{a}", "db://t/{a}/b/{c}", "file:///logs/app.log",
		"q:{y}c", "q:b{x}",
	}
	var list []*Template
	for _, s := range texts {
		tpl, err := ParseTemplate(s)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, tpl)
	}
	x := NewTemplateIndex(list)
	for uri, want := range map[string]string{
		"file:///logs/a/b":      "file:///logs/{+path}",
		"file:///logs/app.log":  "file:///logs/app.log",
		"file:///other/app.log": "file:///{dir}/app.log",
		"file:///one":           "file:///{+path}", // first of three equally specific ones
		"db://t/1/b/2":          "db://t/{a}/b/{c}",
		"db://t":                "db://{a}",
		"q:bzc":                 "q:b{x}", // the longer prefix of two equally specific ones
		"zzz://q":               "{+any}",
	} {
		got := ""
		if i := x.Match(uri, ample()); i >= 0 {
			got = texts[i]
		}
		if got != want {
			t.Errorf("Match(%q) = %q, want %q", uri, got, want)
		}
	}
	if i := NewTemplateIndex(list[1:]).Match("zzz://q", ample()); i != -1 {
		t.Errorf("matched %d without a template for it", i)
	}
}

// ample is a budget for any test.
func ample() *MatchBudget {
	b := MatchBudget(1 << 40)
	return &b
}

// checkSteps fails if a match took more steps than in proportion to both lengths.
func checkSteps(t testing.TB, template, uri string, templates int, left MatchBudget) {
	t.Helper()
	if took, most := 1<<40-int(left), templates*2*(perTemplate+8*(len(template)+1)*(len(uri)+1)); took > most {
		t.Fatalf("%d steps for %d and %d bytes, want at most %d", took, len(template), len(uri), most)
	}
}

func TestStepsGrowWithTheProductOfBothLengthsOnly(t *testing.T) {
	vars := func(n int) string {
		names := make([]string, n)
		for i := range names {
			names[i] = strings.Repeat("a", i+1)
		}
		return strings.Join(names, ",")
	}
	for _, template := range []string{
		strings.Repeat("{+a}", MaxVariables), strings.Repeat("a{+a}", MaxVariables), strings.Repeat("{?a}", MaxVariables),
		"{?" + vars(MaxVariables) + "}", "{;" + vars(MaxVariables) + "}", "{&" + vars(MaxVariables) + "}", "{/" + vars(MaxVariables) + "}",
		"{+a}" + strings.Repeat("a", 4000), "{+a}" + strings.Repeat("é", 2000), strings.Repeat("{a:9999}", MaxVariables),
	} {
		for _, unit := range []string{"a", "?a", "?aa&aaa", "&a=", "&aa=a", ";a=a;aa", "/a", "%C3", "é", "?"} {
			for _, size := range []int{10, 1000, MaxURI} {
				uri := strings.Repeat(unit, size/len(unit))
				tpl, err := ParseTemplate(template)
				if err != nil {
					t.Fatal(err)
				}
				budget := ample()
				NewTemplateIndex([]*Template{tpl}).Match(uri, budget)
				if took, most := 1<<40-int(*budget), perTemplate+8*(size+1)*(len(tpl.parts)+MaxVariables+len(template)/16); took > most {
					t.Errorf("%.40s with %d bytes of %s: %d steps, want at most %d", template, size, unit, took, most)
				}
			}
		}
	}
}

func TestLongerURIsMatchNothing(t *testing.T) {
	tpl, err := ParseTemplate("{+a}")
	if err != nil {
		t.Fatal(err)
	}
	flat, _ := tpl.Flatten(flatten)
	for size, want := range map[int]bool{MaxURI: true, MaxURI + 1: false} {
		uri := strings.Repeat("a", size)
		_, ways := flat.Parse(uri)
		if one, of := tpl.Match(uri), NewTemplateIndex([]*Template{tpl}).Match(uri, ample()); one != want || (of == 0) != want || (ways == 1) != want {
			t.Errorf("%d bytes: %v, %d of an index, %d ways from a flat spelling", size, one, of, ways)
		}
	}
}

func TestALookUpEndsWithItsBudget(t *testing.T) {
	const most = 1 << 20
	for name, text := range map[string]func(int) string{
		"no prefix":         func(i int) string { return "{+a}" + strconv.Itoa(i) },
		"one prefix":        func(i int) string { return "aa{+a}{+b}" + strconv.Itoa(i) },
		"nested prefixes":   func(i int) string { return strings.Repeat("a", i%MaxTemplate) + "!{a}" },
		"longest templates": func(i int) string { return strings.Repeat("{+a}a", MaxVariables) + strconv.Itoa(i) },
	} {
		list := make([]*Template, 1500)
		for i := range list {
			var err error
			if list[i], err = ParseTemplate(text(i)); err != nil {
				t.Fatal(err)
			}
		}
		x, flats := NewTemplateIndex(list), NewFlatTemplateIndex(list, flatten)
		for _, size := range []int{1, 100, MaxURI, MaxURI + 1, 1 << 16} {
			uri := strings.Repeat("a", size)
			for what, look := range map[string]func(*MatchBudget){
				"match": func(b *MatchBudget) { x.Match(uri, b) },
				"flat":  func(b *MatchBudget) { flats.Parse(uri, b, func(int, int, string) bool { return true }) },
			} {
				budget := MatchBudget(most)
				look(&budget)
				// The match may exceed the budget by one part of one template.
				if took := most - int(budget); took > most+4*MaxURI*(2*MaxVariables+3) {
					t.Errorf("%s, %s, %d bytes: %d steps", name, what, size, took)
				}
			}
		}
	}
	tpl, _ := ParseTemplate("{+a}")
	budget := MatchBudget(10)
	if i := NewTemplateIndex([]*Template{tpl}).Match("x:1", &budget); i != -1 || !budget.IsSpent() {
		t.Errorf("found %d with a spent budget", i)
	}
}

func TestWhatWasFoundBeforeTheBudgetWasSpentIsNotTheAnswer(t *testing.T) {
	const uri = "x:abcdefgh"
	var list []*Template
	for _, s := range []string{"x:{v}", "{+v}abcdefgh"} { // the second one is more specific, and comes later
		tpl, err := ParseTemplate(s)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, tpl)
	}
	first := ample()
	if i := NewTemplateIndex(list[:1]).Match(uri, first); i != 0 {
		t.Fatalf("found %d", i)
	}
	budget := MatchBudget(1<<40) - *first
	if i := NewTemplateIndex(list).Match(uri, &budget); i != -1 {
		t.Errorf("found %d with a budget for one of two", i)
	}
}

func TestThePrefixIsWhatBothSpellingsShare(t *testing.T) {
	for template, want := range map[string]string{
		"x:{a}": "x:", "{a}": "", "": "", "x:y": "x:y", "x:a b{c}": "x:a", "é{c}": "", "x:\"{c}": "x:",
	} {
		tpl, err := ParseTemplate(template)
		if err != nil {
			t.Fatal(err)
		}
		if got := tpl.Prefix(); got != want {
			t.Errorf("prefix of %q is %q, want %q", template, got, want)
		}
	}
}

func flatten(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.~-", r) {
			b.WriteRune(r)
		} else if !strings.HasSuffix(b.String(), "_") {
			b.WriteByte('_')
		}
	}
	return b.String()
}

func TestFlatParse(t *testing.T) {
	for _, c := range []struct {
		template, flat, want string
		ways                 int
	}{
		{"mcp://database/{table}/{id}", "mcp_database_users_42", "mcp://database/users/42", 1},
		{"mcp://database/{table}/{id}", "mcp_database_my_users_42", "", 2},
		{"mcp://database/{table}/{id}", "mcp_database_users", "", 0},
		{"db://t/{id}", "db_t_a_b", "db://t/a_b", 1},
		{"file:///{+path}", "file_app.log", "file:///app.log", 1},
		{"file:///{+path}", "file_logs_app.log", "", 0}, // the underscore was a slash or an underscore
		{"x:{a}{b}", "x_abc", "", 2},
		{"x:{a}/end", "x_1_end", "x:1/end", 1},
		{"x:{a}", "x_", "", 0},
		{"x{a}", "x_a", "", 0}, // no spelling has two underscores in a row, so no value begins with one
		{"plain:uri", "plain_uri", "plain:uri", 1},
	} {
		tpl, err := ParseTemplate(c.template)
		if err != nil {
			t.Fatal(err)
		}
		f, ok := tpl.Flatten(flatten)
		if !ok {
			t.Fatalf("%s has no flat form", c.template)
		}
		if uri, ways := f.Parse(c.flat); uri != c.want || ways != c.ways {
			t.Errorf("%s: Parse(%q) = %q, %d, want %q, %d", c.template, c.flat, uri, ways, c.want, c.ways)
		}
	}
	for _, s := range []string{"x{?a}", "x{/a}", "x{a,b}", "x{a*}", "x{a:3}"} {
		tpl, _ := ParseTemplate(s)
		if _, ok := tpl.Flatten(flatten); ok {
			t.Errorf("%s has a flat form", s)
		}
	}
}

// A unique parse of the flat spelling is the expansion.
func TestFlatParseNeverGuesses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lit := rapid.StringMatching(`[a-c:/]{0,3}`)
		val := rapid.StringMatching(`[a-c](_?[a-c0-9]){0,3}`)
		var text, uri strings.Builder
		text.WriteString("x:")
		uri.WriteString("x:")
		for range rapid.IntRange(1, 3).Draw(t, "vars") {
			l, v := lit.Draw(t, "literal"), val.Draw(t, "value")
			text.WriteString(l + "{v}")
			uri.WriteString(l + v)
		}
		tpl, err := ParseTemplate(text.String())
		if err != nil {
			t.Fatal(err)
		}
		f, _ := tpl.Flatten(flatten)
		got, ways := f.Parse(flatten(uri.String()))
		if ways == 0 || ways == 1 && got != uri.String() {
			t.Fatalf("%s: %s flat %s parsed as %q (%d ways)", text.String(), uri.String(), flatten(uri.String()), got, ways)
		}
	})
}

func TestFlatIndexYieldsEveryReading(t *testing.T) {
	var list []*Template
	for _, s := range []string{"x{?q}", "db://{t}", "db:/{t}", "other:{v}"} {
		tpl, err := ParseTemplate(s)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, tpl)
	}
	got := map[int]string{}
	NewFlatTemplateIndex(list, flatten).Parse("db_1", ample(), func(i, ways int, uri string) bool {
		got[i] = uri
		return true
	})
	if len(got) != 2 || got[1] != "db://1" || got[2] != "db:/1" {
		t.Fatalf("got %v", got)
	}
}

func FuzzMatch(f *testing.F) {
	for _, s := range []string{"file:///{+path}", "x{?a,b*}", "{a}{b:3}{/c*}{;d}{#e}{.f}{&g}", "file:///{bad", "{%41}"} {
		f.Add(s, "file:///a/b?a=1&b=2")
	}
	f.Fuzz(func(t *testing.T, template, uri string) {
		tpl, err := ParseTemplate(template)
		if err != nil {
			return
		}
		tpl.Match(uri)
		if !strings.ContainsAny(template, "{}") && tpl.Match(template) != (len(template) <= MaxURI) {
			t.Fatalf("literal template %q does not match itself", template)
		}
		budget := ample()
		NewTemplateIndex([]*Template{tpl, tpl}).Match(uri, budget)
		checkSteps(t, template, uri, 2, *budget)
		if flat, ok := tpl.Flatten(flatten); ok {
			flat.Parse(flatten(uri))
			budget := ample()
			NewFlatTemplateIndex([]*Template{tpl}, flatten).Parse(flatten(uri), budget, func(int, int, string) bool { return true })
			checkSteps(t, template, uri, 1, *budget)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	tpl, _ := ParseTemplate("mcp://database/{table}/{id}")
	b.ReportAllocs()
	for b.Loop() {
		tpl.Match("mcp://database/users/42")
	}
}

// A hostile template takes time in proportion to its length.
func BenchmarkMatchHostile(b *testing.B) {
	tpl, _ := ParseTemplate(strings.Repeat("{+a}", MaxVariables) + "!")
	uri := strings.Repeat("a", MaxURI)
	for b.Loop() {
		tpl.Match(uri)
	}
}

// Lookups use up their budget within a few milliseconds, regardless of the templates.
func BenchmarkLookUpHostile(b *testing.B) {
	list := make([]*Template, 10_000)
	for i := range list {
		list[i], _ = ParseTemplate("{+a}{+b}{?c,d}" + strconv.Itoa(i))
	}
	x := NewTemplateIndex(list)
	for _, size := range []int{100, MaxURI} {
		uri := strings.Repeat("a", size)
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			for b.Loop() {
				budget := MatchBudget(1 << 22)
				x.Match(uri, &budget)
			}
		})
	}
}
