package form_test

import (
	"encoding/json"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/form"
)

// pressByte sends the form the key or event of a fuzzed byte.
func pressByte(f *form.Form, b byte) {
	keys := []string{
		"tab", "s-tab", "up", "down", "left", "right", "enter", "space", "backspace", "c-e", "c-r", "c-s", "c-j", "c-u", "c-space",
		"esc", "'1'", "'a'", "'{'", "'\"'", "paste:x\ny\t\x1b世", "alt+q", "'end'", "c-k", "home", "c-n", "c-x", "c-t", "s-up", "s-down", "pgdown", "pgup",
	}
	switch n := int(b) % (len(keys) + 3); n {
	case len(keys):
		f.ShowCompletions(int(b), []string{"one", "two\x1b"}, 9, true)
	case len(keys) + 1:
		f.Click(int(b)/2, int(b)/16)
	case len(keys) + 2:
		f.ShowError("no\x1b[m\nmore")
	default:
		f.Update(keyMsg(keys[n]))
	}
}

func requireSound(t *testing.T, f *form.Form, w, h int) {
	t.Helper()
	requireExact(t, f.Lines(w, h), w, h)
	args, meta, err := f.Values()
	if err != nil {
		if args != nil || meta != nil {
			t.Fatalf("values beside the error %v", err)
		}
		return
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(args, &object); err != nil {
		t.Fatalf("%v: %q", err, args)
	}
	if meta != nil {
		if err := json.Unmarshal(meta, &object); err != nil {
			t.Fatalf("%v: %q", err, meta)
		}
	}
}

func FuzzFromSchema(f *testing.F) {
	f.Add(issueSchema, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 80, 24)
	f.Add(string(objectSchema(cities)), []byte{17, 3, 7, 9, 9, 25, 26, 27}, 34, 9)
	f.Add(`{"properties":{"\u001b[2J":{"type":"array","items":{"type":"number"},"default":[1,2e5]},"j":{"default":{"a":"\u202e"}},"b":{"type":"boolean","title":"世界🙂👨‍👩‍👧"}},"required":["b"]}`, []byte{20, 9, 0, 9, 11}, 20, 6)
	f.Add(`{"$ref":"#","properties":{"a":{"$ref":"#/properties/a"}}}`, []byte{18, 19, 9}, 1, 1)
	f.Add(`{"properties":{"e":{"oneOf":[{"const":"\ufe0f☀️","title":"☀️ e\u0301"},{"const":null}]}}}`, []byte{5, 5, 7}, 50, 5)
	f.Add(string(orderJSON), []byte{7, 7, 25, 25, 9, 9, 27, 28, 29, 30, 9, 26, 2, 2, 7, 4, 4, 9, 31, 9, 26}, 80, 24)
	f.Add(`{"$defs":{"e":{"oneOf":[{"$ref":"#/$defs/e"},{"type":"object","required":["e"],"properties":{"e":{"$ref":"#/$defs/e"}}},{"type":"array","minItems":9,"items":{"$ref":"#/$defs/e"}}]}},"properties":{"e":{"$ref":"#/$defs/e"}},"required":["e"]}`, []byte{4, 2, 4, 2, 4, 25, 25, 25, 9, 9, 10}, 60, 12)
	f.Fuzz(func(t *testing.T, schema string, keys []byte, w, h int) {
		fields, err := form.FromSchema(json.RawMessage(schema))
		if err != nil {
			return
		}
		w, h = min(max(w, 0), 300), min(max(h, 0), 80)
		fo := newForm(t, form.Spec{
			Intro: schema, Fields: fields, Schema: json.RawMessage(schema), Last: json.RawMessage(`{"a":1}`),
			Meta: true, Danger: "d", Preview: func(map[string]string) string { return schema },
		})
		for _, b := range keys[:min(len(keys), 64)] {
			pressByte(fo, b)
			requireSound(t, fo, w, h)
		}
		requireSound(t, fo, w, h)
	})
}

func FuzzRaw(f *testing.F) {
	f.Add(`{"title":"x","labels":["bug"],"body":null}`, `{"k":1}`, []byte{9, 0, 17, 9})
	f.Add(`{"title":`, `[`, []byte{9, 11})
	f.Add("{\"a\x00\xff\u202e\":\"\\ud800\"}", "", []byte{9, 9, 9})
	f.Add(`{"estimate":1e999999,"parent":{"next":{}}}`, `{}`, []byte{11, 9, 11})
	f.Fuzz(func(t *testing.T, args, meta string, keys []byte) {
		fo := newForm(t, form.Spec{Schema: issueJSON, Meta: true, Values: json.RawMessage(args)})
		requireSound(t, fo, 80, 24)
		press(fo, "c-e")
		press(fo, "c-r")
		for range 12 {
			press(fo, "c-k")
		}
		fo.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(args), Paste: true})
		press(fo, "tab")
		fo.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(meta), Paste: true})
		requireSound(t, fo, 50, 12)
		for _, b := range keys[:min(len(keys), 64)] {
			pressByte(fo, b)
			requireSound(t, fo, 70, 20)
		}
	})
}
