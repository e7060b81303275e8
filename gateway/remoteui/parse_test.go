package remoteui_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/remoteui"
)

func TestModesAreSwitchedBack(t *testing.T) {
	for name, c := range map[string]struct{ output, reset, again string }{
		"nothing shown":         {"", "", ""},
		"text only":             {"hi", "\x1b[m", ""},
		"alternate screen":      {"\x1b[?1049h", "\x1b[m\x1b[?1049l", "\x1b[?1049h"},
		"left again":            {"\x1b[?1049h\x1b[?1049l", "\x1b[m", ""},
		"screen goes last":      {"\x1b[?1049h\x1b[?25l\x1b[?1002h", "\x1b[m\x1b[?1002l\x1b[?25h\x1b[?1049l", "\x1b[?1049h\x1b[?1002h\x1b[?25l"},
		"several at once":       {"\x1b[?1002;1006;2004h", "\x1b[m\x1b[?1002l\x1b[?1006l\x1b[?2004l", "\x1b[?2004h\x1b[?1006h\x1b[?1002h"},
		"not private":           {"\x1b[4h", "\x1b[m", ""},
		"an unrelated mode":     {"\x1b[?7777h", "\x1b[m", ""},
		"intermediate byte":     {"\x1b[?1049$p", "\x1b[m", ""},
		"in a title":            {"\x1b]0;x[?1049h\a", "\x1b[m", ""},
		"escape closes a title": {"\x1b]0;x\x1b[?1049h", "\x1b[m\x1b[?1049l", "\x1b[?1049h"},
		"cancelled":             {"\x1b[?1049\x18h", "\x1b[m", ""},
		"full reset":            {"\x1b[?1049h\x1b[?25l\x1bc", "\x1b[m", ""},
		"cut in a sequence":     {"\x1b[?1004h\x1b[38;5", "\x1b\\\x1b[m\x1b[?1004l", "\x1b[?1004h"},
		"cut in a title":        {"\x1b]0;half", "\x1b\\\x1b[m", ""},
		"endless parameters":    {"\x1b[?" + strings.Repeat("1;", 1000) + "1049h", "\x1b[m", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var m remoteui.Modes
			m.Scan([]byte(c.output))
			require.Equal(t, c.reset, m.Reset())
			require.Equal(t, c.again, m.Again())
		})
	}
}

func TestDarkness(t *testing.T) {
	for colour, want := range map[string]string{
		"rgb:1e1e/1e1e/1e1e": "dark", "rgb:ffff/ffff/ffff": "light", "rgb:f/f/e": "light", "rgb:00/00/ff": "dark",
		"rgba:fdfd/f6f6/e3e3/ffff": "light", "#002b36": "dark", "#eee8d5": "light",
		"": "unknown", "rgb:": "unknown", "rgb:0/0": "unknown", "rgb:00000/0/0": "unknown", "rgb:g/0/0": "unknown", "#fff": "unknown", "hsl:0/0/0": "unknown",
	} {
		dark, ok := remoteui.IsDark(colour)
		require.Equal(t, want, word(dark, ok), "%q", colour)
	}
	for env, want := range map[string]string{"15;0": "dark", "0;15": "light", "12;default;8": "dark", "0;7": "light", "": "unknown", "0;default": "unknown", "0;16": "unknown", "-1": "unknown"} {
		p := remoteui.DarkFrom(env)
		require.Equal(t, want, word(p != nil && *p, p != nil), "%q", env)
	}
}

func word(dark, known bool) string {
	switch {
	case !known:
		return "unknown"
	case dark:
		return "dark"
	}
	return "light"
}

func TestAnswersAreCutOutOfKeys(t *testing.T) {
	for name, c := range map[string]struct {
		reads   []string
		keys    string
		answers []string
	}{
		"alone":                  {[]string{"\x1b]11;rgb:0/0/0\a"}, "", []string{"rgb:0/0/0"}},
		"ended by ST":            {[]string{"\x1b]11;rgb:0/0/0\x1b\\"}, "", []string{"rgb:0/0/0"}},
		"glued to keys":          {[]string{"jj\x1b]11;rgb:0/0/0\akk"}, "jjkk", []string{"rgb:0/0/0"}},
		"after an escape":        {[]string{"\x1b\x1b]11;rgb:0/0/0\a"}, "\x1b", []string{"rgb:0/0/0"}},
		"split in the head":      {[]string{"a\x1b]1", "1;rgb:0/0/0\ab"}, "ab", []string{"rgb:0/0/0"}},
		"split before ST's end":  {[]string{"\x1b]11;rgb:0/0/0\x1b", "\\q"}, "q", []string{"rgb:0/0/0"}},
		"split after the escape": {[]string{"\x1b", "]11;rgb:0/0/0\aq"}, "\x1bq", []string{"rgb:0/0/0"}},
		"only once":              {[]string{"\x1b]11;rgb:0/0/0\a", "\x1b]11;x\a"}, "\x1b]11;x\a", []string{"rgb:0/0/0"}},
		"another answer":         {[]string{"\x1b]10;rgb:0/0/0\a"}, "\x1b]10;rgb:0/0/0\a", nil},
		"alt with a bracket":     {[]string{"\x1b]x"}, "\x1b]x", nil},
		"not a colour":           {[]string{"\x1b]11;a b"}, "\x1b]11;a b", nil},
		"one within another":     {[]string{"\x1b]11;rgb\x1b]11;rgb:f/f/f\a"}, "\x1b]11;rgb", []string{"rgb:f/f/f"}},
		"endless":                {[]string{"\x1b]11;" + strings.Repeat("f", 200)}, "\x1b]11;" + strings.Repeat("f", 200), nil},
		"arrow keys":             {[]string{"\x1b[A", "\x1b", "\x1bOB"}, "\x1b[A\x1b\x1bOB", nil},
		"all in one":             {[]string{"\x1b]11;rgb:0/0/0\a\x1b_Gi=31;OK\x1b\\\x1b[6;20;10t\x1b[?62;4;22cq"}, "q", []string{"rgb:0/0/0", "i=31;OK", "20;10", "62;4;22"}},
		"what it is":             {[]string{"j\x1b[?6", "2;4;22ck"}, "jk", []string{"62;4;22"}},
		"nothing after the last": {[]string{"\x1b[?1c", "\x1b_Gi=31;OK\x1b\\", "\x1b[6;20;10t"}, "\x1b_Gi=31;OK\x1b\\\x1b[6;20;10t", []string{"1"}},
		"keys that begin so":     {[]string{"\x1b[6~", "\x1b[6;5~", "\x1b[<0;3;4M", "\x1b_"}, "\x1b[6~\x1b[6;5~\x1b[<0;3;4M", nil},
		"a cell without end":     {[]string{"\x1b[6;" + strings.Repeat("1", 50)}, "\x1b[6;" + strings.Repeat("1", 50), nil},
	} {
		t.Run(name, func(t *testing.T) {
			parser := remoteui.NewCutter(true)
			keys := ""
			var answers []string
			for _, read := range c.reads {
				out, found := parser.Cut([]byte(read))
				keys += string(out)
				answers = append(answers, found...)
			}
			require.Equal(t, name == "keys that begin so", parser.Held())
			require.Equal(t, c.keys, keys)
			require.Equal(t, c.answers, answers)
		})
	}
	parser := remoteui.NewCutter(false)
	keys, answers := parser.Cut([]byte("\x1b[?62;4c\x1b]11;rgb:0/0/0\a"))
	require.Equal(t, "\x1b[?62;4c", string(keys), "not requested")
	require.Equal(t, []string{"rgb:0/0/0"}, answers)
}

func TestKeysAreHeldOnlyWhenTheyMayBeAnAnswer(t *testing.T) {
	parser := remoteui.NewCutter(true)
	keys, _ := parser.Cut([]byte("\x1b"))
	require.Equal(t, "\x1b", string(keys), "Escape must not wait")
	require.False(t, parser.Held())
	keys, _ = parser.Cut([]byte("]1"))
	require.Empty(t, keys)
	require.True(t, parser.Held())
	require.Equal(t, "]1", string(parser.Flush()))
	keys, _ = parser.Cut([]byte("1;x"))
	require.Equal(t, "1;x", string(keys), "a flushed start is forgotten")
}

func TestNamesOfFilesAreSafe(t *testing.T) {
	for name, want := range map[string]string{
		"notes.md": "notes.md", "mcp://files/srv/a b.json": "a_b.json", "-rf": "rf", "../../etc/passwd": "passwd", "..": "content",
		"": "content", ".profile": "profile", "a;$(reboot)": "a___reboot_", `c:\x\y.txt`: "y.txt", "ünï.py": "_n_.py", "docs/": "docs_",
		strings.Repeat("x", 500) + ".go": strings.Repeat("x", 97) + ".go",
	} {
		require.Equal(t, want, remoteui.SafeName(name), "%q", name)
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte("i\x00\x00\x00\x02hi"))
	f.Add([]byte("o\x00\x80\x00\x01"))
	f.Add([]byte("h\xff\xff\xff\xff{}"))
	f.Add([]byte("x\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		var again []byte
		for {
			kind, payload, err := remoteui.ReadFrame(r, nil)
			if err != nil {
				if errors.Is(err, io.EOF) {
					require.Equal(t, data, append([]byte{}, again...), "complete frames equal the written ones")
				}
				return
			}
			require.LessOrEqual(t, len(payload), remoteui.MaxOutput)
			if kind == 'i' {
				require.LessOrEqual(t, len(payload), remoteui.MaxQueued)
			}
			again = remoteui.AppendFrame(again, kind, payload)
			if len(data) == 0 {
				return
			}
		}
	})
}

// FuzzScanModes checks that cuts do not matter, and that the output of Reset disables all
// modes.
func FuzzScanModes(f *testing.F) {
	f.Add([]byte("\x1b[?1049h\x1b[?25l\x1b[?1002;1006h"), 3)
	f.Add([]byte("\x1b]0;t\x1b\\\x1b[?2004h\x1bc"), 7)
	f.Add([]byte("\x1bP\x1b[?47h\x18\x1b[?1047"), 11)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		var whole, pieces remoteui.Modes
		whole.Scan(data)
		step := 1 + max(cut, -cut)%16
		if step <= 0 {
			step = 1
		}
		for p := data; len(p) > 0; p = p[min(len(p), step):] {
			pieces.Scan(p[:min(len(p), step)])
		}
		require.Equal(t, whole.Reset(), pieces.Reset())
		whole.Scan([]byte(whole.Reset()))
		if len(data) > 0 {
			require.Equal(t, "\x1b[m", whole.Reset())
		}
		require.Empty(t, whole.Again())
		// The output of Again restores the same modes.
		again := pieces.Again()
		var fresh remoteui.Modes
		fresh.Scan([]byte(again))
		require.Equal(t, again, fresh.Again())
	})
}

// FuzzBackground checks that only the reply is removed from the keys, regardless of the
// cuts.
func FuzzBackground(f *testing.F) {
	f.Add("jj", "kk", "1e1e/1e1e/1e1e", false, []byte{3, 1, 4})
	f.Add("\x1b", "\x1b]11;", "f/f/f", true, []byte{1})
	f.Add("\x1b]1", "\x1b[A", "0/0/0", true, []byte{2, 2, 2, 2})
	f.Fuzz(func(t *testing.T, before, after, colour string, st bool, cuts []byte) {
		if _, found := remoteui.NewCutter(true).Cut([]byte(before + after)); len(found) > 0 {
			return // replies to other requests
		}
		if strings.Contains(before, "\x1b]11;") || len(colour) > 40 || strings.Trim(colour, "0123456789abcdef/") != "" {
			return
		}
		end := "\a"
		if st {
			end = "\x1b\\"
		}
		input := before + "\x1b]11;rgb:" + colour + end + after
		escape := len(before) + 1 // a read that ends here returns an escape key
		parser := remoteui.NewCutter(true)
		var keys []byte
		got, leaked, at := "", false, 0
		for i := 0; at < len(input); i++ {
			n := len(input) - at
			if i < len(cuts) {
				n = min(n, int(cuts[i]))
			}
			out, found := parser.Cut([]byte(input[at : at+n]))
			at += n
			keys = append(keys, out...)
			if len(found) > 0 {
				require.Empty(t, got)
				got = found[0]
			}
			leaked = leaked || at == escape && n > 0
		}
		keys = append(keys, parser.Flush()...)
		require.Equal(t, "rgb:"+colour, got)
		want := before + after
		if leaked {
			want = before + "\x1b" + after
		}
		require.Equal(t, want, string(keys))
	})
}

// FuzzAnswers checks that only replies are removed from any input, that replies are
// short, and that keys keep their order.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte("\x1b]11;rgb:0/0/0\a\x1b_Gi=31;OK\x1b\\\x1b[6;20;10t\x1b[?62;4;22cq"), 3)
	f.Add([]byte("\x1b[6;5~\x1b\x1b[?\x1b_G\x1b"), 1)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		step := 1 + max(cut, -cut)%16
		if step <= 0 {
			step = 1
		}
		parser := remoteui.NewCutter(true)
		var keys []byte
		answers := 0
		for p := data; len(p) > 0; p = p[min(len(p), step):] {
			out, found := parser.Cut(p[:min(len(p), step)])
			keys = append(keys, out...)
			for _, a := range found {
				answers++
				require.LessOrEqual(t, len(a), 256)
			}
		}
		keys = append(keys, parser.Flush()...)
		require.LessOrEqual(t, answers, 4)
		rest := data
		for _, k := range keys {
			i := bytes.IndexByte(rest, k)
			require.GreaterOrEqual(t, i, 0)
			rest = rest[i+1:]
		}
		if answers == 0 {
			require.Equal(t, string(data), string(keys))
		}
	})
}

func BenchmarkScanFrame(b *testing.B) {
	line := "\x1b[38;5;12m│\x1b[0m " + strings.Repeat("some text ", 20) + "\r\n"
	frame := []byte(strings.Repeat(line, 60))
	var m remoteui.Modes
	b.SetBytes(int64(len(frame)))
	for b.Loop() {
		m.Scan(frame)
	}
}
