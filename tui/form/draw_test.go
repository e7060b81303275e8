package form_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"goblin/tui/form"
	"goblin/tui/theme"
)

// plainText joins lines without styles and trailing spaces.
func plainText(lines []string) string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = strings.TrimRight(ansi.Strip(line), " ")
	}
	return strings.Join(out, "\n")
}

var issueJSON = json.RawMessage(issueSchema)

func issueForm(t testing.TB) *form.Form {
	return newForm(t, form.Spec{
		Intro: "Opens an issue.", Submit: "call", Schema: issueJSON,
		Danger: "destructive: asks before it runs", Last: json.RawMessage(`{}`), Meta: true,
	})
}

func TestScreens(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		w, h int
		form func(testing.TB) *form.Form
		keys []string
		want string
	}{
		{"a tool's arguments", 80, 24, issueForm, []string{"'It breaks'", "tab", "tab", "tab", "right", "space"}, `
                                              ! destructive: asks before it runs
Opens an issue.

  title *    It breaks_______________________________________
             One line
  Body       ________________________________________________
  Priority   ( ) low  (•) normal  ( ) urgent
> labels *    [ ] bug >[x] docs  [ ] question
             any of 3 · * required · at most 2 values
  estimate   ________________________________________________
  assignees  no items  [ add ]
  watchers   │
  parent     [-] not sent  members: next
  notify     [x] true
  milestone  ________________________________________________

  [ call ]    [ cancel ]






space choose  tab next  C-s call  C-e raw JSON  C-r last values  esc cancel`},
		{"errors, in a small window", 60, 10, issueForm, []string{"'It'", "c-s"}, `
                          ! destructive: asks before it runs
Opens an issue.

> title *    It ___________________________________________
             ! must have at least 3 characters, has 2
             text · * required · 3 to 80 characters
             One line
  Body       ______________________________________________
  Priority   ( ) low  (•) normal  ( ) urgent
tab next  C-s call  C-e raw JSON  esc cancel            8/17`},
		{"JSON with its schema beside it, which scrolls", 110, 12, func(t testing.TB) *form.Form {
			return newForm(t, form.Spec{Schema: objectSchema(`"properties":{"a":{"type":"object","additionalProperties":{"type":"array","items":{"type":"string"}},"minProperties":1}}`)})
		}, []string{"'{'", "enter", "'\"login\": 5}'", "draw", "pgdown"}, `
> a  │ {                                                  │     "type": "array",
     │ "login": 5}                                        │     "items": {
     │                                                    │       "type": "string"
     │                                                    │     }
     │                                                    │   },
     │                                                    │   "minProperties": 1
     │                                                    │ }
     │                                                    │ … lines 4 to 10 of 10, PgDn
     JSON · optional

  [ submit ]    [ cancel ]
tab next  C-s submit  C-e raw JSON  esc cancel  PgDn schema`},
		{
			"objects, lists and kinds", 80, 26, func(t testing.TB) *form.Form { return newForm(t, form.Spec{Schema: orderJSON}) },
			[]string{"'Lima'", "down", "down", "space", "'07.11.'", "down", "'2'", "c-n", "draw", "'2026-02-01'", "down", "'1'", "down", "right", "right", "down", "'9'", "up"},
			`
  customer
    city *     Lima____________________________________________
    zip        ________________________________________________
  lines *      2 items  [ add ]
    1
      day *    07.11.__________________________________________
               ! not a date, e.g. 2026-01-31
      count *  2_______________________________________________
    2
      day *    2026-02-01______________________________________
      count *  1_______________________________________________
> pay          ( ) card  (•) invoice
               one of 2 types · optional
    due *      9_______________________________________________
  gift         [-] not sent  members: text, wrap

  [ submit ]    [ cancel ]` + strings.Repeat("\n", 8) + `
space choose  tab next  C-s submit  C-e raw JSON  esc cancel`,
		},
		{"narrow, and a list that is filtered", 34, 12, func(t testing.TB) *form.Form {
			return newForm(t, form.Spec{Schema: objectSchema(cities)})
		}, []string{"'i'", "down"}, `
> c
    / i _____________________ 4/6
      ( ) Lima
    > ( ) Quito
      ( ) Singapore
      ( ) Tunis
    one of 6 · optional
  d
    _____________________________

  [ submit ]    [ cancel ]
C-s submit  esc cancel`},
		{"raw", 60, 10, issueForm, []string{"'It'", "c-e"}, `
                          ! destructive: asks before it runs
> arguments
  │ {
  │   "title": "It",
  │   "priority": "normal",
  │   "labels": [],
  │   "notify": true
  _meta ________________________________________________
  [ call ]    [ cancel ]
tab next  C-s call  C-e form  C-r last values  esc cancel`},
		{"a question with three answers", 60, 9, func(t testing.TB) *form.Form {
			return newForm(t, form.Spec{
				Intro: "Which account?\n\x1b[2JIt is \u202eneeded.", Submit: "answer", Decline: true,
				Schema: objectSchema(`"required":["mail"],"properties":{"mail":{"type":"string","format":"email","title":"Mail\u0007"}}`),
			})
		}, []string{"tab", "right"}, `
Which account?
\x1b[2JIt is \u202eneeded.

  Mail\x07 *  _____________________________________________

  [ answer ]  > [ decline ]    [ cancel ]


tab next  C-s answer  C-e raw JSON  esc cancel`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := tt.form(t)
			f.Lines(tt.w, tt.h)
			press(f, tt.keys...)
			lines := f.Lines(tt.w, tt.h)
			requireExact(t, lines, tt.w, tt.h)
			got := plainText(lines)
			if got != strings.TrimPrefix(tt.want, "\n") {
				t.Errorf("got\n%s\nwant%s", got, tt.want)
			}
		})
	}
}

// orderJSON is a schema with objects, lists of objects, and alternatives.
var orderJSON = objectSchema(`"required":["customer","lines"],"properties":{
	"customer":{"type":"object","required":["city"],"properties":{"city":{"type":"string"},"zip":{"type":"string"}}},
	"lines":{"type":"array","items":{"type":"object","required":["day","count"],"properties":{"day":{"type":"string","format":"date"},"count":{"type":"integer","default":1}}}},
	"pay":{"oneOf":[{"type":"object","required":["kind"],"properties":{"kind":{"const":"card"},"number":{"type":"string"}}},
		{"type":"object","required":["kind","due"],"properties":{"kind":{"const":"invoice"},"due":{"type":"integer"}}}]},
	"gift":{"type":"object","properties":{"text":{"type":"string"},"wrap":{"type":"boolean","default":true}}}}`)

func requireExact(t testing.TB, lines []string, w, h int) {
	t.Helper()
	require.Len(t, lines, max(h, 0))
	for i, line := range lines {
		if got := ansi.StringWidth(line); got != max(w, 0) {
			t.Fatalf("line %d of %dx%d has %d cells: %q", i, w, h, got, line)
		}
		if strings.ContainsAny(line, "\n\t\r") {
			t.Fatalf("line %d is more than a line: %q", i, line)
		}
	}
}

func TestEverySizeIsExactAndShowsTheFocus(t *testing.T) {
	t.Parallel()
	f := issueForm(t)
	for stop := range 12 {
		for _, size := range [][2]int{{0, 0}, {1, 1}, {5, 3}, {20, 5}, {34, 8}, {48, 9}, {80, 24}, {250, 60}} {
			lines := f.Lines(size[0], size[1])
			requireExact(t, lines, size[0], size[1])
			if size[0] >= 20 && size[1] >= 5 {
				require.Regexp(t, `(?m)^( *> |.* > \[)`, plainText(lines), "stop %d at %v", stop, size)
			}
		}
		press(f, "tab")
	}
	press(f, "c-e")
	for range 4 {
		for _, size := range [][2]int{{1, 1}, {5, 3}, {20, 4}, {34, 8}, {80, 24}} {
			requireExact(t, f.Lines(size[0], size[1]), size[0], size[1])
		}
		press(f, "tab")
	}
}

func TestReadableInASCIIAndOnATerminalWithoutStyles(t *testing.T) {
	t.Parallel()
	fields, err := form.FromSchema(objectSchema(`"properties":{"a":{"type":"string"},"e":{"enum":["x","y"],"default":"y"}}`))
	require.NoError(t, err)
	f := form.New(theme.New(theme.Options{Getenv: func(k string) string {
		return map[string]string{"TERM": "dumb"}[k]
	}}), form.Spec{Fields: fields})
	press(f, "'hi'")
	lines := f.Lines(60, 8)
	require.NotContains(t, strings.Join(lines, ""), "\x1b")
	got := plainText(lines)
	require.Contains(t, got, "> a  hi_")
	require.Contains(t, got, "  e  ( ) x  (*) y")
	for _, r := range got {
		require.Less(t, r, rune(0x7f))
	}
}

func TestClicks(t *testing.T) {
	t.Parallel()
	f := issueForm(t)
	click := func(text string) form.Action {
		t.Helper()
		for y, line := range f.Lines(80, 24) {
			if at := strings.Index(ansi.Strip(line), text); at >= 0 {
				action, _ := f.Click(ansi.StringWidth(ansi.Strip(line)[:at]), y)
				return action
			}
		}
		t.Fatalf("no %q on\n%s", text, plainText(f.Lines(80, 24)))
		return form.None
	}
	require.Equal(t, form.None, click("[ call ]"))
	require.Contains(t, plainText(f.Lines(80, 24)), "> title *", "the first problem must have the focus")
	press(f, "'Title'")
	click("( ) urgent")
	click("[ ] bug")
	click("[x] true")
	click("milestone")
	press(f, "'7'")
	args, _, err := f.Values()
	require.NoError(t, err)
	require.Equal(t, `{"title":"Title","priority":"urgent","labels":["bug"],"notify":false,"milestone":7}`, string(args))
	require.Equal(t, form.Submitted, click("[ call ]"))
	require.Equal(t, form.Cancelled, click("[ cancel ]"))
	for _, p := range [][2]int{{-1, -1}, {0, 99}, {500, 3}} {
		action, _ := f.Click(p[0], p[1])
		require.Equal(t, form.None, action)
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	start := func() *form.Form {
		return newForm(t, form.Spec{Fields: form.FromTemplate([]string{"owner", "repo"}), Strings: true})
	}
	typed := func(f *form.Form, key string) tea.Cmd {
		_, cmd := f.Update(keyMsg(key))
		require.NotNil(t, cmd)
		return cmd
	}
	t.Run("only the last key asks", func(t *testing.T) {
		t.Parallel()
		f := start()
		press(f, "'me'", "tab")
		early, late := typed(f, "'g'"), typed(f, "'o'")
		require.Nil(t, early())
		ask, ok := late().(form.Completion)
		require.True(t, ok)
		require.Same(t, f, ask.Form)
		require.Equal(t, "repo", ask.Field)
		require.Equal(t, "go", ask.Value)
		require.Equal(t, map[string]string{"owner": "me"}, ask.Others)
	})
	t.Run("no requests after leaving the field", func(t *testing.T) {
		t.Parallel()
		f := start()
		cmd := typed(f, "'g'")
		press(f, "tab")
		require.Nil(t, cmd())
	})
	t.Run("a key asks without waiting", func(t *testing.T) {
		t.Parallel()
		f := start()
		require.IsType(t, form.Completion{}, typed(f, "c-space")())
	})
	offered := func(values ...string) *form.Form {
		f := start()
		ask := typed(f, "'g'")().(form.Completion)
		f.ShowCompletions(ask.Gen, values, 40, true)
		return f
	}
	t.Run("Tab takes the first, arrows choose", func(t *testing.T) {
		t.Parallel()
		f := offered("go\x1b", "gopher", "gg")
		screen := plainText(f.Lines(60, 14))
		require.Contains(t, screen, "│  go\\x1b\n")
		require.Contains(t, screen, "│ 3 of 40")
		press(f, "down", "down", "up", "down", "tab")
		args, _, err := f.Values()
		require.NoError(t, err)
		require.Equal(t, `{"owner":"gopher"}`, string(args))
		require.NotContains(t, plainText(f.Lines(60, 14)), "gg")
		f = offered("go", "gopher")
		press(f, "tab", "'!'")
		args, _, _ = f.Values()
		require.Equal(t, `{"owner":"go!"}`, string(args))
	})
	t.Run("Enter accepts the selection or continues", func(t *testing.T) {
		t.Parallel()
		f := offered("go", "gopher")
		press(f, "down", "enter", "'!'")
		args, _, _ := f.Values()
		require.Equal(t, `{"owner":"go!"}`, string(args))
		f = offered("go", "gopher")
		press(f, "enter", "'x'")
		args, _, _ = f.Values()
		require.Equal(t, `{"owner":"g","repo":"x"}`, string(args))
	})
	t.Run("Tab continues without a suggestion", func(t *testing.T) {
		t.Parallel()
		f := offered("g")
		press(f, "tab", "'x'")
		args, _, _ := f.Values()
		require.Equal(t, `{"owner":"g","repo":"x"}`, string(args))
	})
	t.Run("Tab skips a suggestion that is not selected", func(t *testing.T) {
		t.Parallel()
		for want, keys := range map[string][]string{
			`{"repo":"x"}`:                  {"tab", "'x'"},
			`{"owner":"go","repo":"x"}`:     {"down", "tab", "tab", "'x'"},
			`{"owner":"gopher","repo":"x"}`: {"down", "down", "tab", "tab", "'x'"},
		} {
			f := start()
			ask := typed(f, "c-space")().(form.Completion)
			f.ShowCompletions(ask.Gen, []string{"go", "gopher"}, 2, false)
			press(f, keys...)
			args, _, err := f.Values()
			require.NoError(t, err)
			require.Equal(t, want, string(args))
		}
	})
	t.Run("Esc closes the list, then the form", func(t *testing.T) {
		t.Parallel()
		f := offered("go")
		require.Equal(t, form.None, press(f, "esc"))
		require.NotContains(t, plainText(f.Lines(60, 14)), "│  go")
		require.Equal(t, form.Cancelled, press(f, "esc"))
	})
	t.Run("Escape and a letter close the list and type it", func(t *testing.T) {
		t.Parallel()
		f := offered("go")
		require.Equal(t, form.None, press(f, "alt+f"))
		args, _, _ := f.Values()
		require.Equal(t, `{"owner":"gf"}`, string(args))
	})
	t.Run("an answer that is late is dropped", func(t *testing.T) {
		t.Parallel()
		f := start()
		ask := typed(f, "'g'")().(form.Completion)
		typed(f, "'o'")
		f.ShowCompletions(ask.Gen, []string{"golem"}, 1, false)
		require.NotContains(t, plainText(f.Lines(60, 14)), "golem")
	})
	t.Run("a click takes", func(t *testing.T) {
		t.Parallel()
		f := offered("go", "gopher")
		for y, line := range f.Lines(60, 14) {
			if strings.Contains(line, "gopher") {
				f.Click(12, y)
			}
		}
		args, _, _ := f.Values()
		require.Equal(t, `{"owner":"gopher"}`, string(args))
	})
}

func BenchmarkLines(b *testing.B) {
	var p []string
	for i := range form.MaxFields {
		p = append(p, fmt.Sprintf(`"field%d":{"type":"string","description":"What this field is for, in a sentence that is wrapped at eighty columns or so."}`, i))
	}
	f := newForm(b, form.Spec{Schema: objectSchema(`"properties":{` + strings.Join(p, ",") + `}`)})
	b.ReportAllocs()
	for b.Loop() {
		f.Update(keyMsg("'x'"))
		f.Lines(120, 40)
	}
}
