package tui

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
)

// hostileNames are names of servers' things and of clients.
var hostileNames = []string{
	"clear\x1b[2J\x1b]52;c;QQ==\a\x9b31m", "\u202eright\u2066to\u200fleft\u200b", "marks" + strings.Repeat("\u0301", 500),
	"👩‍👩‍👧‍👦 family 🇩🇪 \U0001F3F4\U000E0067\U000E007F ☺\ufe0f", strings.Repeat("long ", 2000), strings.Repeat("x", 10_000), "lines\n\r\n\u2028\ttab\v\f\x00\x7f", "字" + strings.Repeat("寬", 300), "", "\xff\xfe\ufffd",
}

// newHostileUI has each name in each place that servers and clients choose.
func newHostileUI(t *testing.T, w, h int) *testUI {
	t.Helper()
	r := newExampleUI(t, w, h, plainEnv)
	now := r.clock.now()
	lists := map[registry.Kind][][]byte{}
	for i, name := range hostileNames {
		add := func(kind registry.Kind, item map[string]any) {
			raw, err := json.Marshal(item)
			require.NoError(t, err)
			lists[kind] = append(lists[kind], raw)
		}
		schema := map[string]any{"type": "object", "properties": map[string]any{name: map[string]any{"type": "string", "title": name, "description": name, "enum": []string{name, "b"}}, name + "2": map[string]any{"type": "array", "items": map[string]any{"type": "string"}}}, "required": []string{name}}
		unique := fmt.Sprint(i, name)
		add(registry.Tool, map[string]any{"name": unique, "title": name, "description": name, "inputSchema": schema, "annotations": map[string]any{"title": name}})
		add(registry.Prompt, map[string]any{"name": unique, "title": name, "description": name, "arguments": []any{map[string]any{"name": name, "description": name}}})
		add(registry.Resource, map[string]any{"uri": "x:" + unique, "name": name, "title": name, "mimeType": name, "description": name})
		add(registry.Template, map[string]any{"uriTemplate": "x:" + unique + "{" + "a" + "}", "name": name, "mimeType": name})
		r.reg.SetSession(registry.Session{ID: fmt.Sprint("h", i), Transport: "stdio", Client: name, Version: name, Protocol: name, Since: now})
		r.reg.Logs().Append(registry.LogRecord{Time: now, Server: "github", Source: registry.SourceStderr, Level: slog.LevelError, Text: name})
		r.reg.Logs().Append(registry.LogRecord{Time: now, Server: "github", Source: registry.SourceMessage, Level: slog.LevelError, Text: name})
		result, err := json.Marshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": name}}, name: name})
		require.NoError(t, err)
		r.reg.Traffic().Append(registry.TrafficRecord{Time: now, Session: fmt.Sprint("h", i), Client: name, Server: "github", Method: "tools/call", Name: name, Duration: time.Second, Status: "failure", Request: result, Response: result})
		r.reg.SetSubscription(registry.SubscriptionState{Server: "github", URI: "x:" + unique, Status: registry.SubscriptionRefused, Error: name})
		r.backend.files[fmt.Sprintf("hostile/%d.yaml", i)] = name
	}
	for kind, items := range lists {
		r.reg.SetList("github", kind, items) // some names are refused
	}
	all := strings.Join(hostileNames, " ")
	r.reg.SetState("legacy", registry.ServerState{State: registry.StateFailed, Transport: "http", LastError: all, Instructions: all, ServerName: all, ServerTitle: all, ServerVersion: all})
	text := string(must(json.Marshal(all)))
	r.setAnswer("resources/read", `{"contents":[{"uri":`+text+`,"mimeType":`+text+`,"text":`+text+`}]}`)
	r.setAnswer("tools/call", `{"isError":true,"content":[{"type":"text","text":`+text+`}],"structuredContent":{`+text+`:`+text+`}}`)
	r.setError("prompts/get", all)
	r.setAnswer("completion/complete", `{"completion":{"values":[`+text+`,"b"]}}`)
	r.backend.fails = errors.New(all)
	return r.refresh(registry.AllChanges)
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// everyPlace are the keys that lead to each pane and dialog.
var everyPlace = []string{
	"1", "1 enter", "1 a", "1 D", "1 j j j enter l", "2", "2 enter", "2 enter l", "2 c", "2 c ctrl+e", "2 c x ctrl+s", "2 H", "2 b", "3", "3 enter", "3 c",
	"4", "4 enter", "4 enter l / a", "4 t", "4 t enter", "4 f", "4 m", "4 s", "4 W", "4 F", "5", "5 enter", "5 ]", "5 ] enter", "5 ] enter enter",
	"5 ] Y", "5 ] v k v", "5 ] b", "5 ] i", "5 ] ]", "5 ] ] enter", "5 ] ] ]", "5 ] ] ] ]", "6", "6 ]", "6 ] ]", "6 ] ] ]", "6 enter", "7", "7 enter", "7 j j c", "7 V",
	"0", "0 enter", "w", "w enter", "B", "B a", "? ", ": g", ":", "q", "|", "/ x", "4 / l", "!", "V", "4 enter | a",
}

// storm are the sizes that a window has while its user drags its border.
var storm = [][2]int{{120, 40}, {1, 1}, {10, 3}, {40, 10}, {39, 200}, {500, 9}, {80, 24}, {500, 200}, {41, 11}}

func TestHostileNamesFitEveryPlaceAtEverySize(t *testing.T) {
	t.Parallel()
	for _, keys := range everyPlace {
		t.Run(keys, func(t *testing.T) {
			t.Parallel()
			r := newHostileUI(t, 120, 40)
			for word := range strings.FieldsSeq(keys) {
				r.send(keyOf(word), 0)
				r.screen()
			}
			for range 2 {
				for _, size := range storm {
					r.resize(size[0], size[1]).screen()
					for i, c := range sgr.ReplaceAllString(r.app.View(), "") {
						require.False(t, c != '\n' && (unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) || c == '\u200b' || c == '\u2028'), "%q at %d of %dx%d", c, i, size[0], size[1])
					}
				}
				r.send(keyOf("down"), 0)
				r.send(tea.MouseMsg{X: 5, Y: 5, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress}, 0)
			}
		})
	}
}

// A paste outside of text fields runs no keys, and one that is too long for a field is
// refused.
func TestAPasteIsTextOrAMessage(t *testing.T) {
	t.Parallel()
	paste := func(r *testUI, text string) *testUI {
		r.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(text), Paste: true}, 0)
		return r
	}
	r := newExampleUI(t, 120, 40, plainEnv).keys("4")
	open := r.app.Open
	for _, text := range []string{"q", "2", "qy\n1", ""} {
		require.Contains(t, paste(r, text).screen(), "Not pasted: no text field has the focus")
		require.Equal(t, open, r.app.Open)
		require.Empty(t, r.app.Dialogs)
	}
	long := strings.Repeat("megabyte", 130_000)
	for name, field := range textInputs() {
		r := field.open(t).typeText("typed")
		require.Contains(t, paste(r, long).screen(), "Not pasted: 1.0M characters; this field takes at most", name)
		require.Equal(t, "typed", field.value(r), name)
		paste(r, "more")
		require.Equal(t, "typedmore", field.value(r), name)
	}

	// The JSON of a form takes more.
	long = strings.Repeat("x", 50_000)
	r = newExampleUI(t, 120, 40, plainEnv).keys("2 j j c ctrl+e")
	r.pressKeys(tea.KeyCtrlK, tea.KeyCtrlK, tea.KeyCtrlK, tea.KeyCtrlK)
	paste(r, `{"a":"`+long+`"}`).screen()
	r.keys("ctrl+s")
	require.Contains(t, r.backend.sentRequests(), `tools/call {"name":"github_search","arguments":{"a":"`+long+`"}}`)
}

// A terminal may interpret control characters when the user pastes.
func TestCopiedContentControlsNoTerminal(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"a\tb\n\x1b[201~\ntouch hit\n": "a\tb\n\\x1b[201~\ntouch hit\n",
		"a\r\n\t\u263a\ufe0f":          "a\r\n\t\u263a\ufe0f", // not changed without need
	} {
		r := newTestUI(t, 120, 40, "files")
		r.app.Copy(content, "the content")()
		require.Equal(t, want, r.clipboard())
	}
}
