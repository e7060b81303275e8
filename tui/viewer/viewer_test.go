package viewer

import (
	"bytes"
	"context"
	"encoding/base64"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"goblin/tui/theme"
)

func plainLook() *theme.Theme { return theme.New(theme.Options{Theme: "none"}) }

func build(t testing.TB, o Options, blocks ...Section) *Doc {
	t.Helper()
	d, err := Build(context.Background(), plainLook(), blocks, o)
	require.NoError(t, err)
	return d
}

var sgr = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// document returns a whole document as drawn, without styles, edge marks and trailing
// spaces.
func document(t testing.TB, d *Doc) string {
	t.Helper()
	v := NewView(plainLook())
	v.Show(d, false)
	return shot(t, v, d.Width(), d.Len())
}

func shot(t testing.TB, v *View, w, h int) string {
	t.Helper()
	var out strings.Builder
	for _, l := range drawn(t, v, w, h) {
		require.Equal(t, " ", l[:1], "the first cell is for edge marks")
		out.WriteString(strings.TrimRight(l[1:], " ") + "\n")
	}
	return out.String()
}

// drawn returns the lines of a view without styles, after checking their sizes.
func drawn(t testing.TB, v *View, w, h int) []string {
	t.Helper()
	lines := v.Lines(w, h)
	require.Len(t, lines, h)
	for i, l := range lines {
		require.Equal(t, w, ansi.StringWidth(l), "line %d: %q", i, l)
		lines[i] = sgr.ReplaceAllString(l, "")
		for _, r := range lines[i] {
			require.False(t, r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0, "control character in %q", l)
		}
	}
	return lines
}

func unindent(s string) string {
	return strings.ReplaceAll(strings.TrimPrefix(s, "\n"), "\t", "")
}

func TestBlocksBecomeScreens(t *testing.T) {
	tests := []struct {
		name   string
		o      Options
		blocks []Section
		want   string
	}{
		{
			"facts are in a column and wrap within it",
			Options{Width: 25},
			[]Section{{Title: "About", Kind: Fields, Fields: []Field{
				{Label: "uri", Value: "file:///a"}, {Label: "empty"}, {Label: "about", Value: "some longer words\nand more", Prose: true},
			}}},
			`
			About
			uri    file:///a
			about  some longer words
			       and more
			`,
		},
		{
			"a long value continues below itself",
			Options{Width: 20},
			[]Section{{Kind: Fields, Fields: []Field{{Label: "a", Value: "one two three four five six"}}}},
			`
			a  one two three
			   four five six
			`,
		},
		{
			"text wraps after spaces, else where the line is full",
			Options{Width: 11},
			[]Section{{Kind: Text, Text: "hello wonderful world\nabcdefghijklmnop\n\nend"}},
			`
			hello
			wonderful
			world
			abcdefghij
			klmnop

			end
			`,
		},
		{
			"lines are numbered, continuations are not",
			Options{Width: 13, Numbers: true},
			[]Section{{Kind: Text, Text: "hello wonderful\nb\n"}},
			`
			1 hello
			  wonderful
			2 b
			`,
		},
		{
			"numbers are aligned at the right",
			Options{Width: 13, Numbers: true},
			[]Section{{Kind: Text, Text: strings.Repeat("x\n", 10)}},
			" 1 x\n 2 x\n 3 x\n 4 x\n 5 x\n 6 x\n 7 x\n 8 x\n 9 x\n10 x\n",
		},
		{
			"tabs go to the next multiple of eight",
			Options{Width: 20},
			[]Section{{Kind: Text, Text: "a\tb\tc\nabcdefgh\ti"}},
			"a       b       c\nabcdefgh        i\n",
		},
		{
			"wide characters are not cut in half",
			Options{Width: 6},
			[]Section{{Kind: Text, Text: "世界世界 🙂🙂 e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301"}},
			"世界\n世界\n🙂🙂\ne\u0301e\u0301e\u0301e\u0301e\u0301\ne\u0301\n",
		},
		{
			"JSON keeps its order, numbers and duplicates",
			Options{Width: 40, Depth: -1},
			[]Section{{Kind: JSON, Data: []byte(`{"b":1.50,"a":[1e400,12345678901234567890,{}, []],"b":{"c":null},"t":"x"}`)}},
			`
			{
			  "b": 1.50,
			  "a": [
			    1e400,
			    12345678901234567890,
			    {},
			    []
			  ],
			  "b": {
			    "c": null
			  },
			  "t": "x"
			}
			`,
		},
		{
			"JSON that is nested deeper is folded",
			Options{Width: 40},
			[]Section{{Kind: JSON, Data: []byte(`{"a":{"x":1,"y":[2,3]},"b":[1],"c":{}}`)}},
			`
			{
			  "a": {▸ 2 members},
			  "b": [▸ 1 item],
			  "c": {}
			}
			`,
		},
		{
			"a long string of JSON wraps",
			Options{Width: 20, Depth: -1},
			[]Section{{Kind: JSON, Data: []byte(`{"a":"one two three four"}`)}},
			`
			{
			  "a": "one two
			    three four"
			}
			`,
		},
		{
			"what is no JSON is text with the place of the fault",
			Options{Width: 60},
			[]Section{{Kind: JSON, Data: []byte("{\"a\": 1,\n \"b\" 2}")}},
			`
			not JSON: line 2, column 6: expected a colon

			{"a": 1,
			 "b" 2}
			`,
		},
		{"empty JSON", Options{}, []Section{{Kind: JSON}}, "empty\n"},
		{"empty text", Options{}, []Section{{Kind: Text}, {Kind: Markdown}}, "empty\n\nempty\n"},
		{
			"notes and errors",
			Options{Width: 16},
			[]Section{{Kind: Note, Text: "nothing yet"}, {Kind: Error, Text: "it broke and then more"}},
			`
			nothing yet

			! it broke and
			  then more
			`,
		},
		{
			"a line break of Windows is a line break",
			Options{},
			[]Section{{Kind: Text, Text: "a\r\nb\r\n"}},
			"a\nb\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, unindent(tt.want), document(t, build(t, tt.o, tt.blocks...)))
		})
	}
}

func TestJSONIsShownAsItMeans(t *testing.T) {
	for name, tt := range map[string]struct {
		in, want string
		o        Options
	}{
		"space behind a value is not shown": {in: "{\n  \"a\": 1\n, \"b\": [\n true\n,\tnull\r\n ]\n}\n", want: "{\n  \"a\": 1,\n  \"b\": [\n    true,\n    null\n  ]\n}\n", o: Options{Depth: 9}},
		"escapes that hide nothing are decoded": {in: `{"\u65e5\u672c":"\ud83d\ude00 \u001b \ud83d \u202e \u0041 \\u65e5 \n"}`, want: `{
  "日本": "😀 \u001b \ud83d \u202e \u0041 \\u65e5 \n"
}
`, o: Options{Depth: 9}},
		"a list of flat objects folds at once":            {in: `[{"a":1},{"b":2,"c":3}]`, want: "[\n  {▸ 1 member},\n  {▸ 2 members}\n]\n", o: Options{Depth: 12, Fold: 1}},
		"the levels that there are fold, innermost first": {in: `{"a":{"b":{"c":[1]}},"d":[2]}`, want: "{\n  \"a\": {\n    \"b\": {▸ 1 member}\n  },\n  \"d\": [\n    2\n  ]\n}\n", o: Options{Depth: 12, Fold: 2}},
		"no more than there are":                          {in: `{"a":{"b":1}}`, want: "{\n  \"a\": {▸ 1 member}\n}\n", o: Options{Depth: 12, Fold: 7}},
		"deeper than the first look":                      {in: `[[[1]]]`, want: "[\n  [\n    [\n      1\n    ]\n  ]\n]\n", o: Options{Depth: 1, Fold: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, document(t, build(t, tt.o, Section{Kind: JSON, Data: []byte(tt.in)})))
		})
	}
}

func TestOneNodeOfJSONIsFoldedAndStaysSoWhenTheRestChanges(t *testing.T) {
	block := func(in string) Section { return Section{Kind: JSON, Data: []byte(in)} }
	d := build(t, Options{Depth: 9}, block(`{"a":{"x":1},"b":[{"y":2}]}`))
	require.Equal(t, 2, d.Levels())
	v := NewView(plainLook())
	v.Show(d, false)
	shot(t, v, 40, 5)
	_, ok := v.Node(2, false)
	require.False(t, ok, "no node begins there")
	id, ok := v.Node(1, false)
	require.True(t, ok)
	near, ok := v.Node(2, true)
	require.True(t, ok)
	require.NotEqual(t, id, near)
	o := Options{Depth: 9, Toggled: map[uint64]bool{id: true}}
	d = build(t, o, block(`{"new":[0],"a":{"x":1,"z":2},"b":[{"y":2}]}`))
	text := document(t, d)
	require.Contains(t, text, `"a": {`)
	require.NotContains(t, text, `"x"`)
	require.Contains(t, text, `"y": 2`)
	v.Show(d, false)
	shot(t, v, 40, 5)
	again, _ := v.Node(4, false)
	require.Equal(t, id, again, "so that it can be unfolded")
	require.Contains(t, document(t, build(t, Options{Depth: 0, Toggled: map[uint64]bool{id: true}}, block(`{"a":{"x":1},"b":[1]}`))), `"x": 1`)
}

func TestMarkdownIsLaidOut(t *testing.T) {
	tests := []struct {
		name  string
		width int
		in    string
		want  string
	}{
		{"headings", 40, "# One\ntext\n\nTwo\n---\n### Three ###\n", "# One\ntext\n\n## Two\n### Three\n"},
		{"paragraphs are filled", 21, "one two\nthree four\nfive\n\nsix", "one two three four\nfive\n\nsix\n"},
		{"hard line breaks", 40, "one  \ntwo\\\nthree", "one\ntwo\nthree\n"},
		{"lists hang", 14, "- one two three\n  four\n* b\n  1. c\n  2) d\n- [ ] e\n- [x] f", "• one two\n  three four\n• b\n  1. c\n  2) d\n☐ e\n✓ f\n"},
		{"a second paragraph of an item", 40, "- a\n\n  b\n\nc", "• a\n\n  b\n\nc\n"},
		{"quotes", 13, "> one two three\n> four\n>> deep\n\nout", "│ one two\n│ three four\n│ │ deep\n\nout\n"},
		{"fenced code is left alone", 40, "```go\nfunc  *a*() {\n\treturn\n}\n```\nx", "  func  *a*() {\n          return\n  }\nx\n"},
		{"a fence that never ends", 40, "~~~\n# a", "  # a\n"},
		{"indented code", 40, "a\n\n    b  *c*\n", "a\n\n      b  *c*\n"},
		{"a rule", 9, "a\n\n***\nb", "a\n\n────────\nb\n"},
		{"emphasis", 60, "a **b c** *d* __e__ _f_ snake_case_name 2 * 3 * 4 ***g***", "a b c d e f snake_case_name 2 * 3 * 4 g\n"},
		{"nested emphasis", 60, "**a *b* c** and *d **e** f*", "a b c and d e f\n"},
		{"marks that never end", 60, "**a *b _c `d", "**a *b _c `d\n"},
		{"code in a line", 60, "run `go  *test*` or ``a`b``", "run `go  *test*` or `a`b`\n"},
		{"links", 70, "[goblin](https://x.example/a) <https://y.example> ![pic](p.png \"t\") [a] [b](", "goblin (https://x.example/a) https://y.example image: pic (p.png) [a]\n[b](\n"},
		{"escapes and entities", 60, `\*a\* &lt;b&gt; &amp; &unknown;`, "*a* <b> & &unknown;\n"},
		{"a table", 40, "text\n\n| name | *n* |\n|:-----|--:|\n| a \\| b | 1 |\n| `c` | 22 | 3 |\n| d\nend", "text\n\nname  │  n\n──────┼───\na | b │  1\n`c`   │ 22\nd     │\nend\n"},
		{"a table without bars at its sides, in the middle", 40, "a | b\n:-: | -\nccc | d", " a  │ b\n────┼──\nccc │ d\n"},
		{"cells wrap", 18, "|a|b|\n|-|-|\n|one two three|four five|", "a       │ b\n────────┼────────\none two │ four\nthree   │ five\n"},
		{"a table that has no room", 12, "| a | bcd | efg |hij|\n|---|---|---|---|", "| a | bcd …\n|---|---|-…\n"},
		{"bars without dashes are text, bold over lines", 60, "**Docs\n| [A](a.md)\n| B**", "Docs | A (a.md) | B\n"},
		{"HTML is text", 60, "<b>x</b>", "<b>x</b>\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := build(t, Options{Width: tt.width}, Section{Kind: Markdown, Text: tt.in})
			require.Equal(t, tt.want, document(t, d))
			require.Equal(t, strings.TrimRight(tt.in, "\n")+"\n", d.Plain(), "copying returns the source")
		})
	}
}

func TestMarkdownMarksStayWhereTheThemeCannotShowThem(t *testing.T) {
	dumb := theme.New(theme.Options{Getenv: func(name string) string {
		if name == "TERM" {
			return "dumb"
		}
		return ""
	}})
	d, err := Build(context.Background(), dumb, []Section{{Kind: Markdown, Text: "- **a** _b_ `c`"}}, Options{})
	require.NoError(t, err)
	v := NewView(dumb)
	v.Show(d, false)
	require.Equal(t, " - **a** _b_ `c`    ", v.Lines(20, 1)[0])
}

func TestStylesAreThoseOfTheThemeAtTheTimeOfDrawing(t *testing.T) {
	lk := theme.New(theme.Options{Theme: "auto"})
	d, err := Build(context.Background(), lk, []Section{
		{Kind: Fields, Fields: []Field{{Label: "l", Value: "v", Style: lk.Good}}},
		{Kind: JSON, Data: []byte(`{"a":1}`)},
		{Kind: Markdown, Text: "*e* **wrapped words here**"},
		{Kind: Error, Text: "e"},
	}, Options{Width: 20})
	require.NoError(t, err)
	v := NewView(plainLook())
	v.SetTheme(lk)
	v.Show(d, false)
	require.Equal(t, []string{
		" " + lk.Dim.On("l  ") + lk.Good.On("v") + theme.Spaces(15),
		theme.Spaces(20),
		" " + lk.Punct.On("{") + theme.Spaces(18),
		"   " + lk.Name.On(`"a"`) + lk.Punct.On(": ") + lk.Number.On("1") + theme.Spaces(11),
		" " + lk.Punct.On("}") + theme.Spaces(18),
		theme.Spaces(20),
		" " + lk.Underline.On("e") + " " + lk.Bold.On("wrapped words ") + theme.Spaces(3),
		" " + lk.Bold.On("here") + theme.Spaces(15),
		theme.Spaces(20),
		" " + lk.Bad.On("! e") + theme.Spaces(16),
	}, v.Lines(20, 10))
}

func TestBytesAreShownByWhatTheyAre(t *testing.T) {
	d := build(t, Options{Width: 80}, Section{Kind: Hex, MIME: "application/x-a", Data: []byte("Hello, goblin!\x00\xffx")})
	require.Equal(t, unindent(`
		type    application/x-a
		size    17 B
		sha256  352e34c55ee04db9b71ac5d9d06c1bb03a8b975401c043d949cc17c6b52adb84

		00000000  48 65 6c 6c 6f 2c 20 67  6f 62 6c 69 6e 21 00 ff  |Hello, goblin!..|
		00000010  78                                                |x|
		`), document(t, d))

	narrow := document(t, build(t, Options{Width: 50}, Section{Kind: Hex, Data: []byte("abc")}))
	require.Contains(t, narrow, "sha256  ba7816bf8f01cfea414140de5dae2223b00361a39\n        6177a9cb410ff61f20015ad")
	require.Contains(t, narrow, "00000000  61 62 63                 |abc|")

	long := document(t, build(t, Options{Opens: "E"}, Section{Kind: Hex, Data: make([]byte, 1000)}))
	require.Contains(t, long, "000000f0 ")
	require.NotContains(t, long, "00000100 ")
	require.Contains(t, long, "first 256 of 1000 bytes, E opens all")
}

func TestDimensionsOfImages(t *testing.T) {
	m := image.NewPaletted(image.Rect(0, 0, 30, 7), color.Palette{color.Black, color.White})
	var p, g, j bytes.Buffer
	require.NoError(t, png.Encode(&p, m))
	require.NoError(t, gif.Encode(&g, m, nil))
	require.NoError(t, jpeg.Encode(&j, m, nil))
	webp := func(chunk, data string) []byte {
		return []byte("RIFF\x16\x00\x00\x00WEBP" + chunk + "\x0a\x00\x00\x00" + data)
	}
	tests := []struct {
		name string
		data []byte
		want string
	}{
		{"png", p.Bytes(), "png, 30 x 7 pixels"},
		{"gif", g.Bytes(), "gif, 30 x 7 pixels"},
		{"jpeg", j.Bytes(), "jpeg, 30 x 7 pixels"},
		{"webp lossy", webp("VP8 ", "\x10\x00\x00\x9d\x01\x2a\x1e\x00\x07\x00"), "webp, 30 x 7 pixels"},
		{"webp lossless", webp("VP8L", "\x2f\x1d\x80\x01\x00\x00\x00\x00\x00\x00"), "webp, 30 x 7 pixels"},
		{"webp extended", webp("VP8X", "\x00\x00\x00\x00\x1d\x00\x00\x06\x00\x00"), "webp, 30 x 7 pixels"},
		{"png cut short", p.Bytes()[:12], "png, dimensions unknown"},
		{"something else", []byte("hello"), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := document(t, build(t, Options{}, Section{Kind: Hex, Data: tt.data}))
			if tt.want == "" {
				require.NotContains(t, got, "image")
				return
			}
			require.Contains(t, got, "image   "+tt.want+"\n")
		})
	}
}

func TestWhatIsTooLongIsCutAndSaysSo(t *testing.T) {
	text := strings.Repeat("0123456789abcde\n", 640) // 10.2 kB
	tests := []struct {
		name  string
		block Section
		note  string
	}{
		{"text", Section{Kind: Text, Text: text}, "showing 1.0 of 10.2 kB, E opens all"},
		{"Markdown", Section{Kind: Markdown, Text: text}, "showing 1.0 of 10.2 kB, E opens all"},
		{"JSON", Section{Kind: JSON, Data: []byte(`["` + strings.ReplaceAll(strings.TrimSpace(text), "\n", `","`) + `"]`)}, "of 11.5 kB, E opens all"},
		{"one long string", Section{Kind: JSON, Data: []byte(`{"a":"` + strings.Repeat("x", 9000) + `"}`)}, "of 9.0 kB, E opens all"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := build(t, Options{MaxBytes: 1 << 10, Depth: -1, Opens: "E"}, tt.block)
			got := document(t, d)
			require.Contains(t, got, tt.note)
			require.NotContains(t, got, "not JSON")
			require.Less(t, len(got), 3000)
			require.GreaterOrEqual(t, len(d.Plain()), max(len(tt.block.Text), len(tt.block.Data)), "the copied text is complete")
		})
	}
}

func TestHostileTextIsMadeVisible(t *testing.T) {
	evil := "a\x1b]0;owned\x07\u202etxt.exe\u009b31m\xff\u200b\x01\x02z"
	quoted := jsonOf(evil)
	for name, b := range map[string]Section{
		"title":        {Title: evil, Kind: Note, Text: "x"},
		"facts":        {Kind: Fields, Fields: []Field{{Label: evil, Value: evil}}},
		"text":         {Kind: Text, Text: evil},
		"markdown":     {Kind: Markdown, Text: "# " + evil + "\n- *" + evil + "* `" + evil + "`\n```\n" + evil + "\n"},
		"JSON":         {Kind: JSON, Data: []byte(quoted)},
		"broken JSON":  {Kind: JSON, Data: []byte("{" + evil)},
		"hex":          {Kind: Hex, Data: []byte(evil), MIME: evil},
		"note":         {Kind: Note, Text: evil},
		"error":        {Kind: Error, Text: evil},
		"mostly marks": {Kind: Text, Text: "a" + strings.Repeat("\u0301", 10000) + "\n" + strings.Repeat("\u1100", 10000)},
	} {
		t.Run(name, func(t *testing.T) {
			d := build(t, Options{Width: 50}, b)
			for _, s := range append(strings.Split(document(t, d), "\n"), d.Plain()) {
				require.False(t, strings.ContainsAny(s, "\x1b\x07\x01\x02\u202e\u009b\u200b"), "%q", s)
			}
		})
	}
	v := NewView(plainLook())
	v.Show(build(t, Options{Width: 40}, Section{Kind: Text, Text: "a" + strings.Repeat("\u0301", 10000)}), false)
	require.Less(t, len(v.Lines(40, 1)[0]), 40*lookCluster, "lines are limited")
}

func TestAPictureOfMorePicturesThanAnyNeedsIsReplaced(t *testing.T) {
	const one, joined = "👨", "👨\ufe0f\u200d"
	shown := func(text string) string {
		return document(t, build(t, Options{Width: 40}, Section{Kind: Text, Text: text + "x"}))
	}
	longest := strings.Repeat(joined, 6) + one
	require.Len(t, longest, longCluster)
	require.Equal(t, longest+"x\n", shown(longest))
	require.Equal(t, replacement+"x\n", shown(joined+longest))
}

// jsonOf returns JSON that contains a text, without escaping more than necessary.
func jsonOf(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' {
			return 'C'
		}
		return r
	}, s)
	return `{"` + s + `":["` + s + `"]}`
}

func TestBuildEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Build(ctx, plainLook(), []Section{{Kind: Text, Text: "a"}}, Options{})
	require.ErrorIs(t, err, context.Canceled)

	// Also in the middle of a block: this context is cancelled when it is checked.
	late := &lateContext{Context: context.Background()}
	_, err = Build(late, plainLook(), []Section{{Kind: Text, Text: strings.Repeat("a\n", 10000)}}, Options{})
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, late.asked, 5, "the loop continued")
}

type lateContext struct {
	context.Context
	asked int
}

func (c *lateContext) Err() error {
	c.asked++
	return context.Canceled
}

func TestPlainIsUnwrappedAndSafe(t *testing.T) {
	d := build(t, Options{Width: 10, Numbers: true},
		Section{Title: "T", Kind: Fields, Fields: []Field{{Label: "a", Value: "one two three four"}, {Label: "bcd", Value: "x\ny", Prose: true}, {Label: "c", Value: "x\nserver  z"}}},
		Section{Kind: Text, Text: "a\tlong line that wraps \x1b[2J"},
		Section{Kind: JSON, Data: []byte(`{"a": [1, {"b": []}],"c":{}}`)},
		Section{Kind: Error, Text: "bad"})
	require.Equal(t, "T\na    one two three four\nbcd  x\n     y\nc    x\\nserver  z\n\n"+
		"a\tlong line that wraps \\x1b[2J\n\n"+
		"{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    }\n  ],\n  \"c\": {}\n}\n\n! bad\n", d.Plain())
}

func TestSimpleRunesAreAsWideAsTheTerminalTakesThem(t *testing.T) {
	var all strings.Builder
	for r := rune(0); r < 0x30000; r++ {
		if w := runeWidth(r); w > 0 {
			require.Equal(t, w, ansi.StringWidth(string(r)), "%U", r)
			require.Equal(t, 2*w, ansi.StringWidth(string(r)+string(r)), "%U twice", r)
			all.WriteRune(r)
		}
	}
	n := 0
	for _, r := range all.String() {
		n += runeWidth(r)
	}
	require.Equal(t, n, ansi.StringWidth(all.String()), "none joins with the next")
}

func FuzzBuild(f *testing.F) {
	for k, s := range []string{
		"a\n\tb", `{"a":[1,{"b":"c\u001b"}]}`, "# h\n- *a* **b** [c](d) `e`\n> q\n```\nx\n", "\x1b[2J\u202e世界🙂e\u0301",
		"🇩🇪🇫🇷🇩*🇪*\u1100\u1161\u11a8", "*\u0301*\ufe0f#\ufe0f\u20e3 👍🏽", "| a |\n1. x\n***\n===", "\x01\x02\x0e", "_*\u093f_",
	} {
		f.Add(s, uint8(k), uint8(20), uint8(10), int8(1))
	}
	f.Fuzz(func(t *testing.T, s string, search, width, w uint8, right int8) {
		lk := plainLook()
		if search%2 == 0 {
			lk = theme.New(theme.Options{Theme: "auto"})
		}
		var blocks []Section
		for k := Fields; k <= Error; k++ {
			blocks = append(blocks, Section{
				Title: s, Kind: k, Text: s, Data: []byte(s), MIME: s,
				Fields: []Field{{Label: s, Value: s, Style: lk.Good}, {Label: "x", Value: s}},
			})
		}
		d, err := Build(context.Background(), lk, blocks, Options{Width: int(width), MaxBytes: 4096, Depth: int(search%4) - 1, Numbers: search%3 == 0})
		require.NoError(t, err)
		old, err := Build(context.Background(), lk, blocks[:2], Options{Width: 30})
		require.NoError(t, err)
		d.Mark(old)
		v := NewView(lk)
		v.Show(old, false)
		v.Lines(int(w), 5)
		v.Scroll(3)
		v.Show(d, true)
		if len(s) > 0 {
			from := int(search) % len(s)
			v.Search(s[from:min(from+3, len(s))])
			v.Next()
		}
		v.Right(int(right))
		v.Top()
		for range 3 {
			for i, l := range v.Lines(int(w), 60) {
				if n := ansi.StringWidth(l); n != int(w) {
					t.Fatalf("line %d of width %d has %d cells: %q", i, w, n, l)
				}
				for _, r := range sgr.ReplaceAllString(l, "") {
					if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x202e {
						t.Fatalf("%U in %q", r, l)
					}
				}
			}
			v.Page(1)
		}
		for _, r := range d.Plain() {
			if r != '\n' && r != '\t' && (r < ' ' || r == 0x202e) {
				t.Fatalf("%U in the copied text", r)
			}
		}
	})
}

func blob(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
