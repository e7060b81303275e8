package viewer

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/tui/theme"
)

func numbers(from, to int) string {
	var out strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&out, "line %d\n", i)
	}
	return out.String()
}

func viewOf(t testing.TB, o Options, blocks ...Section) *View {
	t.Helper()
	v := NewView(plainLook())
	v.Show(build(t, o, blocks...), false)
	return v
}

func TestTheWindowMovesAndStaysInside(t *testing.T) {
	v := viewOf(t, Options{Width: 20}, Section{Kind: Text, Text: numbers(1, 20)})
	at := func(first, last int) {
		t.Helper()
		lines := drawn(t, v, 20, 5)
		require.Equal(t, fmt.Sprintf(" %-19s", fmt.Sprintf("line %d", first)), lines[0])
		require.Equal(t, fmt.Sprintf(" %-19s", fmt.Sprintf("line %d", last)), lines[4])
		f, l, total := v.Position()
		require.Equal(t, []int{first, last, 20}, []int{f, l, total})
	}
	at(1, 5)
	v.Scroll(3)
	at(4, 8)
	v.Page(1)
	at(9, 13)
	v.Page(-0.5)
	at(7, 11)
	v.Bottom()
	at(16, 20)
	v.Scroll(1000)
	at(16, 20)
	v.Scroll(-1000)
	at(1, 5)
	v.Bottom()
	v.Top()
	at(1, 5)
}

func TestAShortOrEmptyDocumentFillsTheWindowWithSpaces(t *testing.T) {
	v := NewView(plainLook())
	require.Equal(t, "\n\n", shot(t, v, 10, 2))
	first, last, total := v.Position()
	require.Equal(t, []int{0, 0, 0}, []int{first, last, total})
	v.Scroll(5)
	v.Bottom()
	v.Page(-2)
	v.Next()
	require.Zero(t, v.Search("x"))
	v.Show(nil, true)
	require.NotNil(t, v.Doc())
	v.Show(build(t, Options{}, Section{Kind: Text, Text: "a"}), true)
	require.Equal(t, "a\n\n", shot(t, v, 10, 2))
	require.Empty(t, v.Lines(10, 0))
	require.Equal(t, []string{""}, v.Lines(0, 1))
}

func TestANarrowWindowCutsAndMovesToTheRight(t *testing.T) {
	v := viewOf(t, Options{Width: 30}, Section{Kind: Text, Text: "0123456789abcdefghij\n世界世界世界世界\n\tx"})
	require.Equal(t, "012345678…\n世界世界…\n        x\n", shot(t, v, 11, 3))
	v.Right(5)
	require.Equal(t, "56789abcd…\n 界世界世…\n   x\n", shot(t, v, 11, 3))
	v.Right(1000)
	require.Equal(t, "abcdefghij\n界世界\n\n", shot(t, v, 11, 3))
	v.Right(-1000)
	require.Equal(t, "012345678…\n世界世界…\n        x\n", shot(t, v, 11, 3))
}

func TestNumbersStayWhenTheTextMovesToTheRight(t *testing.T) {
	v := viewOf(t, Options{Width: 30, Numbers: true}, Section{Kind: Text, Text: "0123456789abcdefghij"})
	v.Lines(13, 1)
	v.Right(4)
	require.Equal(t, "1 456789abc…\n", shot(t, v, 13, 1))
}

func TestSearchFindsAcrossWrapsAndStyles(t *testing.T) {
	tests := []struct {
		name, query string
		o           Options
		block       Section
		want        int
	}{
		{"small letters find all", "line", Options{}, Section{Kind: Text, Text: "Line line LINE"}, 3},
		{"a capital letter finds itself", "Line", Options{}, Section{Kind: Text, Text: "Line line LINE"}, 1},
		{"other alphabets fold as well", "größe", Options{}, Section{Kind: Text, Text: "GRÖSSE GRÖßE größe"}, 2},
		{"letters that change their length", "ⱥx", Options{}, Section{Kind: Text, Text: "ȺX Kelvin: \u212a ⱥx"}, 2},
		{"across the end of a wrapped line", "two three", Options{Width: 9}, Section{Kind: Text, Text: "one two three"}, 1},
		{"across styles", "bold text", Options{}, Section{Kind: Markdown, Text: "some **bold** text"}, 1},
		{"in JSON", `"a": 1`, Options{}, Section{Kind: JSON, Data: []byte(`{"a":1}`)}, 1},
		{"not across lines", "a\nb", Options{}, Section{Kind: Text, Text: "a\nb"}, 0},
		{"nothing", "", Options{}, Section{Kind: Text, Text: "a"}, 0},
		{"styles are no text", "\x02", Options{}, Section{Kind: Markdown, Text: "**a**"}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, viewOf(t, tt.o, tt.block).Search(tt.query))
		})
	}
}

func TestATallySaysInHowMuchWasSearched(t *testing.T) {
	text := func(size int) Section { return Section{Kind: Text, Text: "one" + strings.Repeat(".", size-3)} }
	for want, blocks := range map[string][]Section{
		"1 of 1 here":                        {text(30)},
		"1 of 1 in the first 40 of 99 B":     {text(99)},
		"1 of 1 in the first 40 of 50 B":     {text(50), {Kind: Text, Text: "three"}},
		"1 of 2 in the first 80 of 100 B":    {text(50), text(50)},
		"0 of 0 in the first 40 of 80 B":     {{Kind: Markdown, Text: strings.Repeat("three", 16)}},
		"1 of 1 in the first 40 B of 2.0 kB": {text(2048)},
	} {
		v := viewOf(t, Options{MaxBytes: 40}, blocks...)
		v.Search("one")
		require.Equal(t, want, v.MatchPosition("here"))
	}
}

func TestMatchesAreHighlighted(t *testing.T) {
	lk := theme.New(theme.Options{Theme: "auto"})
	v := NewView(lk)
	v.Show(build(t, Options{Width: 9}, Section{Kind: Text, Text: "one two three\ntwo"}), false)
	require.Equal(t, 1, v.Search("two three"))
	now := lk.Match + lk.Selected
	require.Equal(t, []string{
		" one " + now.On("two ") + " "[:0],
		" " + now.On("three") + "   ",
		" two     ",
	}, v.Lines(9, 3))
	require.Equal(t, 2, v.Search("two"))
	require.Equal(t, " one "+now.On("two")+" ", v.Lines(9, 3)[0])
	require.Equal(t, " "+lk.Match.On("two")+"     ", v.Lines(9, 3)[2])
	v.Search("")
	require.Equal(t, " one two ", v.Lines(9, 3)[0])
}

func TestSearchMovesTheWindowFromMatchToMatch(t *testing.T) {
	v := viewOf(t, Options{Width: 20}, Section{Kind: Text, Text: numbers(1, 100)})
	v.Lines(20, 5)
	v.Scroll(30)
	require.Equal(t, 20, v.Search("5"))
	found := func(at, first int) {
		t.Helper()
		k, n := v.MatchIndex()
		f, _, _ := v.Position()
		require.Equal(t, []int{at, 20, first}, []int{k, n, f})
	}
	found(4, 31) // line 35 is visible
	v.Next()
	found(5, 44)
	for range 5 {
		v.Prev()
	}
	found(20, 94)
	v.Next()
	found(1, 4)
	v.Bottom()
	require.Equal(t, 1, v.Search("line 42"))
	require.Contains(t, drawn(t, v, 20, 5)[1], "line 42", "above it, because there is no match below")
	require.Zero(t, v.Search("nothing like it"))
	at, n := v.MatchIndex()
	require.Equal(t, []int{0, 0}, []int{at, n})
}

func TestAChangedDocumentStaysAtTheSameText(t *testing.T) {
	top := func(v *View) string { return strings.TrimSpace(drawn(t, v, 20, 5)[0]) }
	text := func(s string, width int) *Doc { return build(t, Options{Width: width}, Section{Kind: Text, Text: s}) }
	v := NewView(plainLook())
	v.Show(text(numbers(1, 50), 20), false)
	v.Lines(20, 5)
	v.Search("line 4")
	v.Top()
	v.Scroll(29)
	require.Equal(t, "line 30", top(v))

	v.Show(text("new\nnew\n"+numbers(1, 50), 20), true)
	require.Equal(t, "line 30", top(v), "lines came above")
	_, n := v.MatchIndex()
	require.Equal(t, 11, n, "the search is kept")

	v.Show(text(numbers(20, 50), 20), true)
	require.Equal(t, "line 30", top(v), "lines went above")

	v.Show(text(strings.Repeat("a longer line that wraps\n", 3)+numbers(20, 50), 10), true)
	require.Equal(t, "line 30", top(v), "another width")

	v.Show(text(strings.Repeat("other\n", 8), 20), true)
	require.Equal(t, "other", top(v), "nothing is left")

	v.Forget()
	v.Show(text(numbers(1, 50), 20), false)
	require.Equal(t, "line 1", top(v))
	_, n = v.MatchIndex()
	require.Zero(t, n)
}

func TestChangedJSONStaysAtTheSameNode(t *testing.T) {
	of := func(in string) *Doc { return build(t, Options{Depth: 9}, Section{Kind: JSON, Data: []byte(in)}) }
	list := strings.Repeat(`,[0]`, 9)
	for name, now := range map[string]string{
		"it is another one now":                    `[[1],[2],{"b":1}` + list + `]`,
		"there is another one more where it stood": `[[1],[9],[2],{"b":1}` + list + `]`,
		"the previous ones are no longer nodes":    `[1,2,{"b":1}` + list + `]`,
		"its list is in an object":                 `{"a":[[1],[2],{"b":1}` + list + `]}`,
	} {
		v := NewView(plainLook())
		v.Show(of(`[[1],[2],{"b":1}`+list+`]`), false)
		v.Lines(20, 5)
		v.Scroll(7)
		require.Equal(t, "   {", strings.TrimRight(drawn(t, v, 20, 5)[0], " "))
		v.Show(of(now), true)
		require.Contains(t, drawn(t, v, 20, 5)[1], `"b": 1`, name)
	}
}

func TestAnotherWidthStaysInsideALongLine(t *testing.T) {
	words := strings.TrimSuffix(numbers(100, 400), "\n")
	words = strings.ReplaceAll(words, "\n", " ")
	v := viewOf(t, Options{Width: 10}, Section{Kind: Text, Text: words})
	v.Lines(10, 5)
	v.Scroll(150)
	require.Contains(t, drawn(t, v, 10, 5)[0], "line 250")
	v.Show(build(t, Options{Width: 46}, Section{Kind: Text, Text: words}), true)
	require.Contains(t, drawn(t, v, 46, 5)[0], "line 250")
}

func TestChangedLinesHaveAMarkAtTheEdge(t *testing.T) {
	tests := []struct{ name, old, now, want string }{
		{"nothing changed", "a\nb\n", "a\nb\n", "..."},
		{"a line came", "a\n}\nc\n}\n", "a\n}\nb\n}\nc\n}\n", "..##.."},
		{"a line went", "a\nb\nc\n", "a\nc\n", ".."},
		{"a line changed", "a\nb\nc\n", "a\nx\nc\n", ".#."},
		{"two places", "a\nb\nc\nd\ne\n", "a\nX\nc\nY\ne\n", ".#.#."},
		{"all of a wrapped line", "a\n", "a\nlong line that wraps\n", ".###"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := Options{Width: 10}
			d := build(t, o, Section{Kind: Text, Text: tt.now})
			d.Mark(build(t, Options{Width: 50}, Section{Kind: Text, Text: tt.old}))
			v := NewView(plainLook())
			v.Show(d, false)
			var got strings.Builder
			for _, l := range drawn(t, v, 10, len(tt.want)) {
				if strings.HasPrefix(l, plainLook().Edge) {
					got.WriteByte('#')
				} else {
					got.WriteByte('.')
				}
			}
			require.Equal(t, tt.want, got.String())
			v.Unmark()
			require.NotContains(t, strings.Join(v.Lines(10, 9), ""), plainLook().Edge)
		})
	}
	d := build(t, Options{}, Section{Kind: Text, Text: "a"})
	d.Mark(nil)
	v := NewView(plainLook())
	v.Show(d, false)
	require.Equal(t, "a\n", shot(t, v, 10, 1), "without an old one, nothing is new")
}

func big(unit string, size int) string { return strings.Repeat(unit, size/len(unit)+1)[:size] }

var sources = map[string]func(size int) Section{
	"text": func(n int) Section {
		return Section{Kind: Text, Text: big("func main() { fmt.Println(\"hello\") } // and so on\n", n)}
	},
	"words": func(n int) Section { return Section{Kind: Text, Text: big("lorem ipsum dolor sit amet ", n)} },
	"wide": func(n int) Section {
		return Section{Kind: Text, Text: strings.ToValidUTF8(big("世界世界世界 wörld\n", n), "")}
	},
	"emoji": func(n int) Section {
		return Section{Kind: Text, Text: strings.ToValidUTF8(big("🙂👍🏽🇩🇪 e\u0301 x\n", n), "")}
	},
	"markdown": func(n int) Section {
		return Section{Kind: Markdown, Text: big("# Title\n\nSome *text* with `code`, **bold** and [a link](https://x.example).\n- item\n- other\n\n> quote\n\n", n)}
	},
	"stars":    func(n int) Section { return Section{Kind: Markdown, Text: big("*a _b **c [d `e <f ", n)} },
	"brackets": func(n int) Section { return Section{Kind: Markdown, Text: big("[", n)} },
	"rules":    func(n int) Section { return Section{Kind: Markdown, Text: big("---\n", n)} },
	"json": func(n int) Section {
		return Section{Kind: JSON, Data: []byte("[" + strings.TrimSuffix(strings.Repeat(`{"name":"some value","n":12345,"list":[1,2,true,null]},`, n/55), ",") + "]")}
	},
	"deep": func(n int) Section {
		return Section{Kind: JSON, Data: []byte(strings.Repeat("[", 9000) + big("1,", n) + "1" + strings.Repeat("]", 9000))}
	},
}

func BenchmarkBuild1MiB(b *testing.B) { benchmarkBuild(b, 1<<20) }
func BenchmarkBuild5MiB(b *testing.B) { benchmarkBuild(b, 5<<20) }

func benchmarkBuild(b *testing.B, size int) {
	for name, source := range sources {
		blocks := []Section{source(size)}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Build(context.Background(), plainLook(), blocks, Options{Width: 120, MaxBytes: 6 << 20, Depth: -1, Numbers: true}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkLines250x60(b *testing.B) {
	for name, source := range sources {
		lk := theme.New(theme.Options{Theme: "dark", Getenv: func(string) string { return "xterm-256color" }})
		d, err := Build(context.Background(), lk, []Section{source(1 << 20)}, Options{Width: 250, Depth: -1, Numbers: true})
		if err != nil {
			b.Fatal(err)
		}
		v := NewView(lk)
		v.Show(d, false)
		v.Search("e")
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				v.Lines(250, 60)
			}
		})
	}
}

func BenchmarkScroll(b *testing.B) {
	v := viewOf(b, Options{Width: 120}, sources["text"](5<<20))
	b.ReportAllocs()
	for b.Loop() {
		v.Scroll(1)
		v.Lines(120, 40)
	}
}

func BenchmarkSearch1MiB(b *testing.B) {
	for _, name := range []string{"text", "wide", "json"} {
		v := viewOf(b, Options{Width: 120, Depth: -1}, sources[name](1<<20))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				v.Search("hello")
			}
		})
	}
}

func BenchmarkMarkAndKeep1MiB(b *testing.B) {
	lk := plainLook()
	old := build(b, Options{}, sources["text"](1<<20))
	d := build(b, Options{}, Section{Kind: Text, Text: "new\n" + sources["text"](1<<20).Text})
	v := NewView(lk)
	for b.Loop() {
		v.Show(old, false)
		v.Bottom()
		d.Mark(old)
		v.Show(d, true)
	}
}

func TestASearchBeforeTheDocumentAppliesToIt(t *testing.T) {
	v := viewOf(t, Options{Width: 20}, Section{Kind: Text, Text: "line 42"})
	drawn(t, v, 20, 5)
	v.Search("line 42")
	v.Forget()
	at, n := v.MatchIndex()
	require.Zero(t, at+n, "the search of another row ends")
	require.Zero(t, v.Search("line 33"))
	doc := build(t, Options{Width: 20}, Section{Kind: Text, Text: numbers(1, 50)})
	v.Show(doc, false)
	at, n = v.MatchIndex()
	require.Equal(t, []int{1, 1}, []int{at, n})
	require.Contains(t, strings.Join(drawn(t, v, 20, 5), "\n"), "line 33")
	v.Scroll(-100)
	v.Show(doc, true)
	require.Contains(t, drawn(t, v, 20, 5)[0], "line 1", "later documents do not move the view")
}
