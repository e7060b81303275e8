package form_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/tui/form"
	"goblin/tui/theme"
)

var keyTypes = map[string]tea.KeyType{
	"tab": tea.KeyTab, "s-tab": tea.KeyShiftTab, "enter": tea.KeyEnter, "esc": tea.KeyEsc,
	"up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight,
	"space": tea.KeySpace, "backspace": tea.KeyBackspace, "c-s": tea.KeyCtrlS, "c-e": tea.KeyCtrlE,
	"c-r": tea.KeyCtrlR, "c-j": tea.KeyCtrlJ, "c-u": tea.KeyCtrlU, "c-k": tea.KeyCtrlK, "c-v": tea.KeyCtrlV,
	"c-space": tea.KeyCtrlAt, "c-w": tea.KeyCtrlW, "end": tea.KeyEnd, "home": tea.KeyHome,
	"c-n": tea.KeyCtrlN, "c-x": tea.KeyCtrlX, "c-t": tea.KeyCtrlT, "s-up": tea.KeyShiftUp, "s-down": tea.KeyShiftDown, "pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp,
}

// keyMsg returns a key by its name. 'text' means runes in one message, paste:text is
// pasted, alt+x means Escape and x as terminals send them.
func keyMsg(s string) tea.KeyMsg {
	if kind, ok := keyTypes[s]; ok {
		k := tea.KeyMsg{Type: kind}
		if s == "space" {
			k.Runes = []rune{' '}
		}
		return k
	}
	if text, ok := strings.CutPrefix(s, "paste:"); ok {
		return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(text), Paste: true}
	}
	if text, ok := strings.CutPrefix(s, "alt+"); ok {
		return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(text), Alt: true}
	}
	return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(strings.Trim(s, "'"))}
}

// press sends keys until one finishes the form.
func press(f *form.Form, keys ...string) form.Action {
	for _, k := range keys {
		if k == "draw" { // as the UI does after each key
			f.Lines(80, 24)
			continue
		}
		if action, _ := f.Update(keyMsg(k)); action != form.None {
			return action
		}
	}
	return form.None
}

func plainLook() *theme.Theme { return theme.New(theme.Options{Theme: "none"}) }

func newForm(t testing.TB, s form.Spec) *form.Form {
	t.Helper()
	if s.Fields == nil && len(s.Schema) > 0 {
		fields, err := form.FromSchema(s.Schema)
		require.NoError(t, err)
		s.Fields = fields
	}
	return form.New(plainLook(), s)
}

// objectSchema returns the schema of an object with the given members.
func objectSchema(s string) json.RawMessage { return json.RawMessage(`{"type":"object",` + s + `}`) }

func TestKeysMakeValues(t *testing.T) {
	t.Parallel()
	const two = `"properties":{"a":{"type":"string"},"b":{"type":"string"}}`
	tests := []struct {
		name, schema string
		keys         []string
		want         string
	}{
		{"nothing typed sends nothing", two, nil, `{}`},
		{"text, Tab and S-Tab", two, []string{"'one'", "tab", "'two'", "s-tab", "'!'"}, `{"a":"one!","b":"two"}`},
		{"arrows walk too, and in a circle", two, []string{"down", "'two'", "up", "'one'", "up", "up", "up", "'!'"}, `{"a":"one","b":"two!"}`},
		{"Enter continues", two, []string{"'one'", "enter", "'two'"}, `{"a":"one","b":"two"}`},
		{"a burst of runes that is called like a key is text", two, []string{"'end'", "'up'", "'enter'", "'tab'"}, `{"a":"endupentertab"}`},
		{"a space in text", two, []string{"'x'", "space", "'y'"}, `{"a":"x y"}`},
		{"pasted lines stay lines", two, []string{"paste:one\r\ntwo\nthree\n"}, `{"a":"one\ntwo\nthree\n"}`},
		{"and tabs tabs, wherever the cursor is", two, []string{"'<>'", "left", "paste:one\rtwo\n\ttab", "paste:\t", "'!'", "tab", "paste:x\ty", "'!'"}, `{"a":"<one\ntwo\n\ttab\t!>","b":"x\ty!"}`},
		{"a new line on request", two, []string{"'one'", "left", "c-j", "end", "'!'"}, `{"a":"on\ne!"}`},
		{"the clipboard of this machine is not read", two, []string{"'x'", "c-v"}, `{"a":"x"}`},
		{"defaults are sent", `"properties":{"a":{"type":"string","default":"d"},"n":{"type":"integer","default":7},"x":{"type":"integer","default":"seven"}}`, nil, `{"a":"d","n":7}`},
		{"emptied defaults are not", `"properties":{"a":{"type":"string","default":"d"}}`, []string{"c-u"}, `{}`},
		{"a typed number replaces its default, a typed text does not", `"properties":{"from":{"type":"integer","default":10},"note":{"type":"string","default":"a"}}`, []string{"'3'", "'0'", "tab", "'b'"}, `{"from":30,"note":"ab"}`},
		{"integers of any size as typed", `"properties":{"n":{"type":"integer"}}`, []string{"'9007199254740993123'"}, `{"n":9007199254740993123}`},
		{"numbers as typed", `"properties":{"n":{"type":"number"}}`, []string{"' -1.50e3 '"}, `{"n":-1.50e3}`},
		{"an optional truth is sent once touched", `"properties":{"b":{"type":"boolean"}}`, []string{"space"}, `{"b":true}`},
		{"and toggles", `"properties":{"b":{"type":"boolean"}}`, []string{"space", "space"}, `{"b":false}`},
		{"a burst of spaces toggles as often", `"properties":{"b":{"type":"boolean"}}`, []string{"'   '"}, `{"b":true}`},
		{"and is taken back", `"properties":{"b":{"type":"boolean"}}`, []string{"space", "backspace"}, `{}`},
		{"a required truth is false until toggled", `"required":["b"],"properties":{"b":{"type":"boolean"}}`, []string{"backspace"}, `{"b":false}`},
		{"radio by arrows", `"properties":{"e":{"enum":["a","b","c"]}}`, []string{"right", "right"}, `{"e":"b"}`},
		{"radio by Space, and back", `"properties":{"e":{"enum":["a","b","c"]}}`, []string{"space", "space"}, `{}`},
		{"a required radio is not taken back", `"required":["e"],"properties":{"e":{"enum":["a","b"]}}`, []string{"space", "space"}, `{"e":"a"}`},
		{"a required constant is chosen", `"required":["e"],"properties":{"e":{"const":"x"},"f":{"const":"y"}}`, nil, `{"e":"x"}`},
		{"several by Space", `"properties":{"s":{"type":"array","items":{"enum":["a","b","c"]}}}`, []string{"right", "right", "space", "left", "left", "space"}, `{"s":["a","c"]}`},
		{"a filtered list", cities, []string{"'a'", "'p'", "'o'", "enter"}, `{"c":"Singapore"}`},
		{"a list by arrows", cities, []string{"down", "space"}, `{"c":"Lima"}`},
		{"Enter alone leaves a list unchosen", cities, []string{"enter"}, `{}`},
		{"Esc clears the filter first", cities, []string{"'q'", "'q'", "esc", "'lim'", "space"}, `{"c":"Lima"}`},
		{"a filter does not stay", cities, []string{"'lim'", "tab", "s-tab", "down", "space"}, `{"c":"Oslo"}`},
		{"a list, one a line", `"properties":{"l":{"type":"array","items":{"type":"string"}}}`, []string{"'one'", "enter", "enter", "' two '"}, `{"l":["one","two"]}`},
		{"a list of numbers", `"properties":{"l":{"type":"array","items":{"type":"integer"}}}`, []string{"paste:1\n2\r\n3"}, `{"l":[1,2,3]}`},
		{"JSON", `"properties":{"j":{"type":"object"}}`, []string{"'{\"a\": [1,'", "enter", "'2]}'"}, `{"j":{"a":[1,2]}}`},
		{"arrows move inside JSON and leave at its ends", `"properties":{"j":{"type":"object"},"a":{"type":"string"}}`, []string{"'{'", "enter", "'}'", "up", "end", "'\"x\":1'", "down", "down", "'y'"}, `{"j":{"x":1},"a":"y"}`},
		{"Escape and a rune at once, in a filter", cities, []string{"'zz'", "alt+l", "'im'", "space"}, `{"c":"Lima"}`},
		{"an object that is not wanted is not sent, whatever its defaults", `"properties":{"o":{"type":"object","required":["n"],"properties":{"n":{"type":"string"},"d":{"type":"integer","default":1}}}}`, nil, `{}`},
		{"one that is, with them", `"properties":{"o":{"type":"object","required":["n"],"properties":{"n":{"type":"string"},"d":{"type":"integer","default":1}}}}`, []string{"space", "down", "'x'"}, `{"o":{"n":"x","d":1}}`},
		{"what was typed in it waits", `"properties":{"o":{"type":"object","properties":{"n":{"type":"string"}}}}`, []string{"space", "down", "'x'", "up", "space", "space"}, `{"o":{"n":"x"}}`},
		{"a default opens it", `"properties":{"o":{"type":"object","default":{"n":"x","m":[1]},"properties":{"n":{"type":"string"}}}}`, nil, `{"o":{"n":"x","m":[1]}}`},
		{"items added, moved and removed", `"properties":{"l":{"type":"array","items":{"type":"object","properties":{"n":{"type":"string"}}}}}`, []string{"space", "'a'", "c-n", "'b'", "c-n", "'c'", "s-up", "s-up", "s-up", "down", "down", "c-x"}, `{"l":[{"n":"c"},{"n":"a"}]}`},
		{"all removed", `"properties":{"l":{"type":"array","items":{"type":"object","properties":{"n":{"type":"string"}}}}}`, []string{"c-n", "c-x"}, `{}`},
		{"lines of a list are moved", `"properties":{"l":{"type":"array","items":{"type":"integer"}}}`, []string{"'1'", "enter", "'2'", "enter", "'3'", "s-up", "s-up", "end", "'0'"}, `{"l":[30,1,2]}`},
		{"lists in lists", `"properties":{"l":{"type":"array","items":{"type":"array","items":{"type":"integer"}}}}`, []string{"space", "'1'", "enter", "'2'", "c-n", "'3'"}, `{"l":[[1,2],[3]]}`},
		{"a kind by its title", `"properties":{"s":{"oneOf":[{"type":"string","title":"Name"},{"type":"object","title":"Place","properties":{"x":{"type":"number"}}}]}}`, []string{"right", "right", "down", "'1.50'"}, `{"s":{"x":1.50}}`},
		{"another kind, and none again", `"properties":{"s":{"type":["string","integer","null"]}}`, []string{"right", "down", "'x'", "up", "right", "right", "space"}, `{}`},
		{"null as a kind", `"properties":{"s":{"type":["string","integer","null"]}}`, []string{"right", "right", "right"}, `{"s":null}`},
		{"a list of several kinds", `"properties":{"l":{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}`, []string{"space", "right", "down", "'x'", "c-n", "right", "right", "down", "'5'"}, `{"l":["x",5]}`},
		{"alternatives for some members", `"required":["n"],"properties":{"n":{"type":"string"}},"oneOf":[{"required":["k","r"],"properties":{"k":{"const":"a"},"r":{"type":"integer"}}},{"required":["k"],"properties":{"k":{"const":"b"}}}]`, []string{"'x'", "down", "right", "down", "'7'"}, `{"n":"x","k":"a","r":7}`},
		{"an object within itself", `"$defs":{"t":{"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#/$defs/t"}}}},"properties":{"t":{"$ref":"#/$defs/t"}}`, []string{"space", "down", "'1'", "down", "space", "down", "'2'"}, `{"t":{"v":1,"next":{"v":2}}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newForm(t, form.Spec{Schema: objectSchema(tt.schema)})
			f.Lines(80, 24)
			press(f, tt.keys...)
			args, meta, err := f.Values()
			require.NoError(t, err)
			require.Nil(t, meta)
			require.Equal(t, tt.want, string(args))
		})
	}
}

const cities = `"properties":{"c":{"enum":["Accra","Lima","Oslo","Quito","Singapore","Tunis"]},"d":{"type":"string"}}`

func TestWhatIsWrongIsSaidUnderItsField(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, schema string
		keys         []string
		want         string
	}{
		{"required", `"required":["a"],"properties":{"a":{"type":"string"}}`, nil, "a: required"},
		{"too short", `"properties":{"a":{"type":"string","minLength":3}}`, []string{"'äö'"}, "a: must have at least 3 characters, has 2"},
		{"too long", `"properties":{"a":{"type":"string","maxLength":1}}`, []string{"'äö'"}, "a: must have at most 1 character, has 2"},
		{"pattern", `"properties":{"a":{"type":"string","pattern":"^[a-z]+$"}}`, []string{"'A'"}, "a: does not match ^[a-z]+$"},
		{"email", `"properties":{"a":{"type":"string","format":"email"}}`, []string{"'Bob <b@c.de>'"}, "a: not an email address"},
		{"uri", `"properties":{"a":{"type":"string","format":"uri"}}`, []string{"'/x'"}, "a: not a URI with a scheme, e.g. https://host/path"},
		{"date", `"properties":{"a":{"type":"string","format":"date"}}`, []string{"'2026-02-30'"}, "a: not a date, e.g. 2026-01-31"},
		{"date-time", `"properties":{"a":{"type":"string","format":"date-time"}}`, []string{"'2026-02-20T10:00:00'"}, "a: not a date with time and zone, e.g. 2026-01-31T12:00:00Z"},
		{"no number", `"properties":{"a":{"type":"number"}}`, []string{"'1,5'"}, "a: not a number"},
		{"no integer", `"properties":{"a":{"type":"integer"}}`, []string{"'1.5'"}, "a: not a whole number"},
		{"leading zeros", `"properties":{"a":{"type":"integer"}}`, []string{"'007'"}, "a: not a whole number"},
		{"an enormous exponent", `"properties":{"a":{"type":"number","maximum":5}}`, []string{"'1e999999999'"}, "a: exponent too large"},
		{"below", `"properties":{"a":{"type":"integer","minimum":9007199254740992}}`, []string{"'9007199254740991'"}, "a: must be at least 9007199254740992"},
		{"above", `"properties":{"a":{"type":"number","maximum":0.5}}`, []string{"'0.51'"}, "a: must be at most 0.5"},
		{"a line of a list", `"properties":{"a":{"type":"array","items":{"type":"string","format":"email"}}}`, []string{"paste:a@b.de\nb"}, "a: line 2: not an email address"},
		{"too many", `"properties":{"a":{"type":"array","maxItems":1,"items":{"enum":["x","y"]}}}`, []string{"space", "right", "space"}, "a: must have at most 1 value, has 2"},
		{"JSON that is none", `"properties":{"a":{"type":"object"}}`, []string{"paste:{\n  \"x\": 1,\n}"}, "a: line 3, column 1: expected a member name"},
		{"JSON that ends", `"properties":{"a":{"type":"object"}}`, []string{"'{'"}, "a: line 1, column 2: expected a member name"},
		{"text where JSON is wanted", `"properties":{"a":{}}`, []string{"'hello'"}, "a: line 1, column 1: unexpected 'h' (put text in quotes)"},
		{"only the whole schema knows: exclusive", `"properties":{"a":{"type":"integer","exclusiveMinimum":5}}`, []string{"'5'"}, "a: must be more than 5"},
		{"only the whole schema knows: inside", `"properties":{"a":{"allOf":[{"type":"object"},{"properties":{"b":{"type":"string"}}}]}}`, []string{"'{\"b\":5}'"}, "a: at /b: got integer, want string"},
		{"what must be in an object", `"properties":{"a":{"type":"object","required":["b"],"properties":{"b":{"type":"string"}}}}`, []string{"space"}, "a/b: required"},
		{"an item of a list", `"required":["a"],"properties":{"a":{"type":"array","minItems":2,"items":{"type":"object","required":["b"],"properties":{"b":{"type":"string","format":"uuid"}}}}}`, []string{"'00000000-0000-4000-8000-000000000000'", "down", "'x'"}, "a/2/b: not a UUID, e.g. 00000000-0000-4000-8000-000000000000"},
		{"too few items", `"required":["a"],"properties":{"a":{"type":"array","minItems":9,"items":{"type":"object","properties":{"b":{"type":"string"}}}}}`, nil, "a: must have at least 9 items, has 8"},
		{"none of several kinds", `"required":["a"],"properties":{"a":{"type":["string","integer"]}}`, nil, "a: required"},
		{"one of several kinds that is not", `"required":["a"],"properties":{"a":{"type":["string","integer"]}}`, []string{"right", "right", "down", "'x'"}, "a: not a whole number"},
		{"only the whole schema knows: in an object", `"properties":{"a":{"type":"object","properties":{"b":{"type":"integer","multipleOf":2}}}}`, []string{"space", "down", "'3'"}, "a: at /b: must be a multiple of 2"},
		{"time", `"properties":{"a":{"type":"string","format":"time"}}`, []string{"'25:00:00Z'"}, "a: not a time with zone, e.g. 12:00:00Z"},
		{"address", `"properties":{"a":{"type":"string","format":"ipv6"}}`, []string{"'192.0.2.1'"}, "a: not an IPv6 address, e.g. 2001:db8::1"},
		{"an address of the other version", `"properties":{"a":{"type":"string","format":"ipv4"}}`, []string{"'2001:db8::1'"}, "a: not an IPv4 address, e.g. 192.0.2.1"},
		{"an address of one machine's own interface", `"properties":{"a":{"type":"string","format":"ipv6"}}`, []string{"'fe80::1%eth0'"}, "a: not an IPv6 address, e.g. 2001:db8::1"},
		{"no address at all", `"properties":{"a":{"type":"string","format":"ipv6"}}`, []string{"'here'"}, "a: not an IPv6 address, e.g. 2001:db8::1"},
		{"only the whole schema knows: what it refers to", `"properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"multipleOf":2.5}}`, []string{"'4'"}, "a: must be a multiple of 2.5"},
		{"only the whole schema knows: alternatives", `"properties":{"a":{"type":"object","anyOf":[{"required":["x"]},{"maxProperties":0}]}}`, []string{"'{\"y\":1}'"}, "a: matches no alternative"},
		{"only the whole schema knows: together", `"minProperties":1,"properties":{"a":{"type":"string"}}`, nil, "minProperties: object has 0 properties, less than 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newForm(t, form.Spec{Schema: objectSchema(tt.schema)})
			press(f, tt.keys...)
			_, _, err := f.Values()
			require.EqualError(t, err, tt.want)
			require.Equal(t, form.None, press(f, "c-s"))
			// The form shows the message without the field's name.
			text := regexp.MustCompile(`^a[/\w]*: `).ReplaceAllString(tt.want, "")
			if strings.HasSuffix(tt.name, "in an object") {
				text = strings.TrimPrefix(text, "at /b: ") // the message is shown at that field
			}
			screen := strings.Join(strings.Fields(plainText(f.Lines(120, 24))), " ")
			require.Contains(t, screen, "! "+text)
		})
	}
}

func TestSubmitting(t *testing.T) {
	t.Parallel()
	schema := objectSchema(`"required":["a","b"],"properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"boolean"}}`)
	t.Run("Enter on the last field", func(t *testing.T) {
		f := newForm(t, form.Spec{Schema: schema})
		require.Equal(t, form.Submitted, press(f, "'x'", "enter", "'y'", "enter", "enter"))
	})
	t.Run("Enter and Space on the button", func(t *testing.T) {
		for _, k := range []string{"enter", "space", "' '"} {
			f := newForm(t, form.Spec{Schema: schema})
			require.Equal(t, form.Submitted, press(f, "'x'", "enter", "'y'", "tab", "tab", k), k)
		}
	})
	t.Run("C-s jumps to the first that is wrong, which disappears once it is right", func(t *testing.T) {
		f := newForm(t, form.Spec{Schema: schema})
		require.Equal(t, form.None, press(f, "'x'", "tab", "tab", "c-s"))
		require.Contains(t, plainText(f.Lines(80, 24)), "> b *  ")
		require.Contains(t, plainText(f.Lines(80, 24)), "! required")
		require.Equal(t, form.None, press(f, "'y'"))
		require.NotContains(t, plainText(f.Lines(80, 24)), "! required")
		require.Equal(t, form.Submitted, press(f, "c-s"))
	})
	t.Run("Esc, and Escape with a letter, cancel", func(t *testing.T) {
		require.Equal(t, form.Cancelled, press(newForm(t, form.Spec{Schema: schema}), "esc"))
		require.Equal(t, form.Cancelled, press(newForm(t, form.Spec{Schema: schema}), "'x'", "alt+q"))
	})
	t.Run("three buttons for an answer", func(t *testing.T) {
		spec := form.Spec{Schema: schema, Submit: "answer", Decline: true}
		require.Equal(t, form.Declined, press(newForm(t, spec), "s-tab", "s-tab", "enter"))
		require.Equal(t, form.Cancelled, press(newForm(t, spec), "s-tab", "s-tab", "right", "enter"))
		require.Equal(t, form.Submitted, press(newForm(t, spec), "'x'", "tab", "'y'", "tab", "tab", "right", "left", "enter"))
	})
	t.Run("a failure keeps the focus and goes with the next attempt", func(t *testing.T) {
		f := newForm(t, form.Spec{Schema: schema})
		press(f, "'x'", "tab", "'y'")
		f.ShowError("the disk is \x1b[31mfull")
		screen := plainText(f.Lines(80, 24))
		require.Contains(t, screen, `! the disk is \x1b[31mfull`)
		require.Contains(t, screen, "> b *")
		require.Equal(t, form.Submitted, press(f, "c-s"))
		require.NotContains(t, plainText(f.Lines(80, 24)), "disk")
	})
}

func TestPrefilledValues(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, schema, values, want string }{
		{"in the order of the schema, strangers last", `"properties":{"a":{"type":"string"},"b":{"type":"integer"}}`, `{"z": 1, "b": 2, "a": "x"}`, `{"a":"x","b":2,"z":1}`},
		{"what the text fields would change stays", `"properties":{"a":{"type":"string"}}`, `{"a":"tab\tbell\u0007\ufffd\u202e\nline"}`, `{"a":"tab\tbell\u0007\ufffd\u202e\nline"}`},
		{"numbers as written", `"properties":{"a":{"type":"number"},"b":{"type":"integer"}}`, `{"a":1.0e1,"b":123456789012345678901234567890}`, `{"a":1.0e1,"b":123456789012345678901234567890}`},
		{"the order of several", `"properties":{"a":{"type":"array","items":{"enum":["x","y"]}}}`, `{"a":["y","x"]}`, `{"a":["y","x"]}`},
		{"null and the empty string", `"properties":{"a":{"type":["string","null"]},"b":{"type":"string"},"c":{"type":["integer","null"]}}`, `{"a":null,"b":"","c":null}`, `{"a":null,"b":"","c":null}`},
		{"null among the options", `"properties":{"a":{"enum":["x",null],"default":"x"}}`, `{"a":null}`, `{"a":null}`},
		{"scalars of another type, as they are typed", `"properties":{"a":{"type":"string"},"b":{"type":"integer"}}`, `{"a":5,"b":"6"}`, `{"a":"5","b":6}`},
		{"objects and lists of them, with what the schema does not know", `"properties":{"o":{"type":"object","properties":{"n":{"type":"string"},"l":{"type":"array","items":{"type":"object","properties":{"b":{"type":"boolean"}}}}}}}`, `{"o":{"n":"a\tb","l":[{"b":true,"more":{"k":1e2}},{}],"z":[null]}}`, `{"o":{"n":"a\tb","l":[{"b":true,"more":{"k":1e2}},{}],"z":[null]}}`},
		{"empty objects and lists, and null", `"properties":{"o":{"type":"object","properties":{"n":{"type":"string"}}},"l":{"type":"array","items":{"type":"object","properties":{"b":{"type":"boolean"}}}},"p":{"type":["object","null"],"properties":{"n":{"type":"string"}}}}`, `{"o":{},"l":[],"p":null}`, `{"o":{},"l":[],"p":null}`},
		{"the kind that fits", `"properties":{"a":{"$ref":"#/$defs/e"},"b":{"$ref":"#/$defs/e"},"c":{"$ref":"#/$defs/e"}},"$defs":{"e":{"oneOf":[{"type":"object","required":["k"],"properties":{"k":{"const":"x"},"n":{"type":"integer"}}},{"type":"object","required":["k"],"properties":{"k":{"const":"y"},"n":{"$ref":"#/$defs/e"}}},{"type":"string"}]}}`, `{"a":{"k":"y","n":{"k":"x","n":3}},"b":"s","c":{"k":"x"}}`, `{"a":{"k":"y","n":{"k":"x","n":3}},"b":"s","c":{"k":"x"}}`},
		{"members of alternatives", `"properties":{"n":{"type":"string"}},"anyOf":[{"properties":{"k":{"const":"a"},"r":{"type":"integer"}}},{"properties":{"k":{"const":"b"},"s":{"type":"integer"}}}]`, `{"n":"x","k":"b","s":4,"z":1}`, `{"n":"x","k":"b","s":4,"z":1}`},
		{"a list of what is no line", `"properties":{"a":{"type":"array","items":{"type":"string"}}}`, `{"a":["x\ny",""," z"]}`, `{"a":["x\ny",""," z"]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newForm(t, form.Spec{Schema: objectSchema(tt.schema), Values: json.RawMessage(tt.values)})
			args, _, err := f.Values()
			require.NoError(t, err)
			require.Equal(t, tt.want, string(args))
			require.Equal(t, form.None, press(f, "c-e", "c-e"))
			args, _, err = f.Values()
			require.NoError(t, err)
			require.Equal(t, tt.want, string(args), "after the raw mode")
			require.False(t, f.IsEdited())
		})
	}
	t.Run("a text of too many lines is not cut", func(t *testing.T) {
		values := `{"a":"` + strings.Repeat(`x\n`, 12000) + `"}`
		f := newForm(t, form.Spec{Schema: objectSchema(`"properties":{"a":{"type":"string"}}`), Values: json.RawMessage(values)})
		press(f, "'!'")
		args, _, err := f.Values()
		require.NoError(t, err)
		require.Equal(t, strings.Replace(values, "x", "!x", 1), string(args))
	})
	t.Run("nor is one that is pasted", func(t *testing.T) {
		f := newForm(t, form.Spec{Schema: objectSchema(`"properties":{"a":{"type":"string"}}`)})
		press(f, "'<>'", "left", "paste:"+strings.Repeat("x\t\n", 12000), "'!'")
		args, _, err := f.Values()
		require.NoError(t, err)
		require.Equal(t, `{"a":"<`+strings.Repeat(`x\t\n`, 12000)+`!>"}`, string(args))
	})
	t.Run("lines pasted for a prompt are lines, and are not completed", func(t *testing.T) {
		f := newForm(t, form.Spec{Strings: true, Fields: []form.Field{{Name: "a", Completes: true}, {Name: "b", OneLine: true}}})
		_, cmd := f.Update(keyMsg("paste:one\n\ttwo"))
		require.Nil(t, cmd)
		press(f, "tab", "paste:one\n\ttwo\n")
		args, _, err := f.Values()
		require.NoError(t, err)
		require.Equal(t, `{"a":"one\n\ttwo","b":"one two"}`, string(args), "except in single-line fields")
	})
	t.Run("a tab survives an edit", func(t *testing.T) {
		f := newForm(t, form.Spec{Schema: objectSchema(`"properties":{"a":{"type":"string"}}`), Values: json.RawMessage(`{"a":"x\ty\u0001\n"}`)})
		press(f, "end", "'!'")
		args, _, err := f.Values()
		require.NoError(t, err)
		require.Equal(t, `{"a":"x\ty\u0001!\n"}`, string(args))
	})
}

func TestRawMode(t *testing.T) {
	t.Parallel()
	schema := objectSchema(`"required":["a"],"properties":{"a":{"type":"string"},"n":{"type":"integer"},"j":{"type":"object"}}`)
	t.Run("switching modes keeps all values, even unfinished ones", func(t *testing.T) {
		f := newForm(t, form.Spec{Schema: schema, Values: json.RawMessage(`{"extra":{"k":[1]}}`)})
		press(f, "'x'", "tab", "'12x'", "tab", "'{\"p\": '", "c-e", "c-e", "'1}'", "s-tab", "backspace")
		args, _, err := f.Values()
		require.NoError(t, err)
		require.Equal(t, `{"a":"x","n":12,"j":{"p":1},"extra":{"k":[1]}}`, string(args))
	})
	t.Run("what is edited there is in the form", func(t *testing.T) {
		f := newForm(t, form.Spec{Schema: schema})
		press(f, "'x'", "c-e")
		replaceRaw(f, `{"a":"y","n":3,"new":true}`)
		args, _, err := f.Values()
		require.NoError(t, err)
		require.Equal(t, `{"a":"y","n":3,"new":true}`, string(args))
		press(f, "c-e", "'!'")
		require.Contains(t, plainText(f.Lines(80, 24)), "also sent: new")
		args, _, err = f.Values()
		require.NoError(t, err)
		require.Equal(t, `{"a":"y!","n":3,"new":true}`, string(args))
	})
	t.Run("what was not chosen is not sent", func(t *testing.T) {
		f := newForm(t, form.Spec{Schema: objectSchema(`"required":["fruit"],"properties":{"fruit":{"enum":["apple","pear"]}}`)})
		require.Equal(t, form.None, press(f, "c-e", "c-s"))
		screen := plainText(f.Lines(80, 24))
		require.Contains(t, screen, `"fruit": ""`)
		require.Contains(t, screen, "! fruit: required")
	})
	t.Run("a removed member is empty", func(t *testing.T) {
		f := newForm(t, form.Spec{Schema: schema})
		press(f, "'x'", "tab", "'5'", "c-e")
		replaceRaw(f, `{"a":"x"}`)
		press(f, "c-e")
		args, _, err := f.Values()
		require.NoError(t, err)
		require.Equal(t, `{"a":"x"}`, string(args))
	})
	t.Run("the way back is refused with the place", func(t *testing.T) {
		f := newForm(t, form.Spec{Schema: schema})
		press(f, "c-e")
		replaceRaw(f, "{\n \"a\": ?}")
		press(f, "c-e")
		screen := plainText(f.Lines(80, 24))
		require.Contains(t, screen, "! line 2, column 7: ")
		require.Contains(t, screen, "> arguments")
		replaceRaw(f, "[]")
		press(f, "c-e")
		require.Contains(t, plainText(f.Lines(80, 24)), "! must be an object")
	})
	t.Run("text that is no JSON stays as it is", func(t *testing.T) {
		f := newForm(t, form.Spec{Schema: objectSchema(`"properties":{"a":{"type":"string"},"o":{"type":"object"}}`)})
		press(f, "'x'", "tab", "'Bob'", "c-e")
		require.Contains(t, plainText(f.Lines(80, 24)), `"o": Bob`)
		require.Equal(t, form.None, press(f, "c-s"))
		require.Contains(t, plainText(f.Lines(80, 24)), "! line 3, column 8: ")
		press(f, "c-e")
		require.NotContains(t, plainText(f.Lines(80, 24)), "> arguments", "leaving must work while nothing changed")
		press(f, "backspace", "backspace", "backspace", "'{}'")
		args, _, err := f.Values()
		require.NoError(t, err)
		require.Equal(t, `{"a":"x","o":{}}`, string(args))
	})
	t.Run("text that is no JSON within a list stays as it is, too", func(t *testing.T) {
		f := newForm(t, form.Spec{Schema: objectSchema(`"properties":{"l":{"type":"array","items":{"type":"object","properties":{"j":{}}}}}`)})
		press(f, "space", "'Bob'", "c-e")
		require.Contains(t, plainText(f.Lines(80, 24)), `"j": Bob`)
		press(f, "c-e", "'by'")
		require.Contains(t, plainText(f.Lines(80, 24)), "Bobby")
	})
	t.Run("what must be there is, and what may be on request", func(t *testing.T) {
		f := newForm(t, form.Spec{Schema: orderJSON})
		press(f, "c-e")
		require.Contains(t, plainText(f.Lines(120, 30)), `"customer": {`)
		_, _, err := f.Values()
		require.EqualError(t, err, "customer/city: required", "an empty value that was never shown must not be sent")
		press(f, "c-e")
		require.Contains(t, plainText(f.Lines(80, 24)), "no items", "nothing changed in the form")
		press(f, "c-e")
		replaceRaw(f, `{"customer": {"city": "Lima"}}`)
		press(f, "c-t")
		args, _, err := f.Values()
		require.NoError(t, err)
		require.Equal(t, `{"customer":{"city":"Lima"},"lines":[{"day":"2026-01-31","count":1}],"pay":{"kind":"card","number":""},"gift":{"text":"","wrap":true}}`, string(args))
		press(f, "c-e")
		require.Contains(t, plainText(f.Lines(80, 24)), "2026-01-31")
	})
	t.Run("a number that must be there begins at its least if that is above zero", func(t *testing.T) {
		f := newForm(t, form.Spec{Schema: objectSchema(`"required":["a","b"],"properties":{"a":{"type":"integer","minimum":5},"b":{"type":"number","minimum":-5}}`)})
		press(f, "c-e")
		require.Contains(t, plainText(f.Lines(80, 24)), `"a": 5,`)
		require.Contains(t, plainText(f.Lines(80, 24)), `"b": 0`)
	})
	t.Run("of very many members those are left out that are too many", func(t *testing.T) {
		var objects []string
		for i := range 100 {
			objects = append(objects, fmt.Sprintf(`"o%d":{"type":"object","required":["a","b","c","d"],"properties":{"a":{"const":1},"b":{"const":1},"c":{"const":1},"d":{"const":1}}}`, i))
		}
		fields, err := form.FromSchema(objectSchema(`"properties":{` + strings.Join(objects, ",") + `}`))
		require.NoError(t, err)
		f := newForm(t, form.Spec{Fields: fields})
		press(f, "c-e", "c-t")
		args, _, err := f.Values()
		require.NoError(t, err)
		require.NotContains(t, string(args), "null", "not a valid value")
		require.Contains(t, string(args), `"o79":{"a":1,`)
		require.NotContains(t, string(args), "o80")
	})
	t.Run("it is checked before it is submitted", func(t *testing.T) {
		f := newForm(t, form.Spec{Schema: schema})
		press(f, "c-e")
		require.Equal(t, form.None, press(f, "c-s"))
		require.Contains(t, plainText(f.Lines(80, 24)), "! a: required")
		replaceRaw(f, `{"a":"x"}`)
		require.Equal(t, form.Submitted, press(f, "c-s"))
	})
	t.Run("_meta", func(t *testing.T) {
		f := newForm(t, form.Spec{Schema: schema, Meta: true})
		press(f, "'x'", "c-e", "tab", "'{\"k\":1'")
		require.Equal(t, form.None, press(f, "c-s"))
		require.Contains(t, plainText(f.Lines(80, 24)), "! line 1, column 7: unexpected end")
		press(f, "c-e")
		require.Contains(t, plainText(f.Lines(80, 24)), "> _meta", "not hidden while it is wrong")
		press(f, "'}'", "c-e", "'!'")
		args, meta, err := f.Values()
		require.NoError(t, err)
		require.Equal(t, `{"a":"x!"}`, string(args))
		require.Equal(t, `{"k":1}`, string(meta))
	})
	t.Run("no _meta row unless wanted", func(t *testing.T) {
		f := newForm(t, form.Spec{Schema: schema})
		press(f, "c-e")
		require.NotContains(t, plainText(f.Lines(80, 24)), "_meta")
	})
	t.Run("strings only", func(t *testing.T) {
		f := newForm(t, form.Spec{Fields: form.FromTemplate([]string{"a"}), Strings: true})
		press(f, "c-e")
		replaceRaw(f, `{"a":5}`)
		_, _, err := f.Values()
		require.EqualError(t, err, "a: must be a string, in quotes")
	})
	t.Run("strings only, whatever the fields are", func(t *testing.T) {
		f := newForm(t, form.Spec{Strings: true, Schema: objectSchema(`"properties":{"a":{"type":"integer"},"b":{"type":"boolean"},"c":{}}`), Values: json.RawMessage(`{"c":null}`)})
		f.Update(keyMsg("'5'"))
		press(f, "tab", "space")
		_, _, err := f.Values()
		require.EqualError(t, err, "a: got string, want integer", "the schema decides")
	})
	t.Run("hidden characters are seen", func(t *testing.T) {
		f := newForm(t, form.Spec{Schema: schema, Values: json.RawMessage("{\"a\":\"x\u202ey\ufffd\U000e0041\"}")})
		press(f, "c-e")
		require.Contains(t, plainText(f.Lines(80, 24)), `"a": "x\u202ey\ufffd\udb40\udc41"`)
		args, _, err := f.Values()
		require.NoError(t, err)
		require.JSONEq(t, `{"a":"x\u202ey\ufffd\udb40\udc41"}`, string(args))
	})
}

// replaceRaw replaces the text of the raw mode.
func replaceRaw(f *form.Form, text string) {
	press(f, "tab")
	for range 4 { // back to the arguments, regardless of the focus
		if strings.Contains(plainText(f.Lines(80, 24)), "> arguments") {
			break
		}
		press(f, "tab")
	}
	for range 40 {
		press(f, "end", "c-k")
		f.Update(tea.KeyMsg{Type: tea.KeyCtrlEnd})
		press(f, "c-u")
	}
	press(f, "paste:"+text)
}

func TestLastArguments(t *testing.T) {
	t.Parallel()
	schema := objectSchema(`"properties":{"a":{"type":"string"},"b":{"type":"string"}}`)
	spec := form.Spec{Schema: schema, Last: json.RawMessage(`{"b":"old","c":1}`)}
	f := newForm(t, spec)
	press(f, "'x'", "c-r")
	args, _, err := f.Values()
	require.NoError(t, err)
	require.Equal(t, `{"b":"old","c":1}`, string(args), "as sent: a is empty")
	f = newForm(t, spec)
	press(f, "c-e", "c-r")
	args, _, err = f.Values()
	require.NoError(t, err)
	require.Equal(t, `{"b":"old","c":1}`, string(args))
	f = newForm(t, form.Spec{Schema: schema})
	press(f, "'x'", "c-r")
	args, _, _ = f.Values()
	require.Equal(t, `{"a":"x"}`, string(args), "there are none")
}

func TestSchemasThatAreNotChecked(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, schema, why string }{
		{"does not compile", `{"type":"object","properties":{"a":{"pattern":"(","type":5}}}`, "not checked against the schema"},
		{"other documents", `{"type":"object","properties":{"a":{"$ref":"file:///etc/hostname"}}}`, "references to other documents are not supported"},
		{"takes for ever", nestedAnyOf(40), "too complex"},
		{"complex patterns", `{"type":"object","properties":{"a":{"type":"string","pattern":"` + strings.Repeat(".{0,1000}", 20) + `"}}}`, "the pattern is too complex"},
		{"never ends", `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"}]}}}`, "refers to itself"},
		{"by anchors", `{"type":"object","properties":{"a":{"$ref":"#here"}},"$defs":{"a":{"$anchor":"here"}}}`, "unsupported reference"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newForm(t, form.Spec{Schema: json.RawMessage(tt.schema)})
			require.Contains(t, strings.Join(strings.Fields(plainText(f.Lines(200, 24))), " "), tt.why)
			require.Equal(t, form.Submitted, press(f, "c-s"))
		})
	}
}

// nestedAnyOf returns a schema in which each definition refers to the next one twice.
func nestedAnyOf(n int) string {
	defs := make([]string, n)
	for i := range defs {
		ref := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, (i+1)%n)
		if i == n-1 {
			ref = `{"maxProperties":0}`
		}
		defs[i] = fmt.Sprintf(`"d%d":{"anyOf":[%s,%s]}`, i, ref, ref)
	}
	return `{"type":"object","minProperties":1,"$ref":"#/$defs/d0","$defs":{` + strings.Join(defs, ",") + `}}`
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		newForm(b, form.Spec{Schema: issueJSON})
	}
}

func TestPreview(t *testing.T) {
	t.Parallel()
	f := newForm(t, form.Spec{
		Fields: form.FromTemplate([]string{"owner", "repo"}), Strings: true, Submit: "read",
		Preview: func(v map[string]string) string { return "repo\x07://" + v["owner"] + "/" + v["repo"] },
	})
	require.Contains(t, plainText(f.Lines(80, 24)), `→ repo\x07:///`)
	press(f, "'me'")
	require.Contains(t, plainText(f.Lines(80, 24)), `→ repo\x07://me/`)
	press(f, "tab", "'x'")
	require.Contains(t, plainText(f.Lines(80, 24)), `→ repo\x07://me/x`)
}

func TestAVeryLongWordIsEditedInTheRawMode(t *testing.T) {
	t.Parallel()
	f := newForm(t, form.Spec{Values: json.RawMessage(`{"a":1}`)})
	press(f, "c-e")
	for range 4 {
		press(f, "c-k", "c-k")
	}
	long := `{"a":"` + strings.Repeat("x", 60_000)
	f.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(long), Paste: true})
	press(f, "'\"'", "'}'")
	args, _, err := f.Values()
	require.NoError(t, err)
	require.JSONEq(t, long+`"}`, string(args))
}

func TestTextWithoutWidthIsEdited(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("\u202e", 50_000)
	f := newForm(t, form.Spec{Fields: []form.Field{{Name: "a", Kind: form.Text, Format: "textarea", Default: json.RawMessage(`"` + text + `"`)}}})
	press(f, "'x'")
	f.Lines(80, 24)
	args, _, err := f.Values()
	require.NoError(t, err)
	require.JSONEq(t, `{"a":"x`+text+`"}`, string(args))
}
