package form_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry/keymap"
	"goblin/tui/form"
)

// Rebound keys do what the default keys did in every kind of field. The default keys then
// do nothing, or what they mean in text.
func TestFieldsTakeTheKeysOfTheConfig(t *testing.T) {
	t.Parallel()
	const two = `"properties":{"a":{"type":"string"},"b":{"type":"string"}}`
	const items = `"properties":{"l":{"type":"array","items":{"type":"object","properties":{"x":{"type":"string"}}}}}`
	changed := map[string][]string{
		"form.up": {"c-v"}, "form.down": {"c-w"}, "form.left": {"c-k"}, "form.right": {"c-u"}, "form.enter": {"c-n"}, "form.toggle": {"c-t"},
		"form.empty": {"c-r"}, "form.lines": {"pgup"}, "form.add": {"pgdown"}, "form.members": {}, "form.save-call": {}, "form.last": {}, "form.schema-up": {}, "form.schema-down": {},
	}
	for id, all := range changed {
		for i, k := range all {
			key, why := keymap.ParseKey(k)
			require.Empty(t, why)
			changed[id][i] = key
		}
	}
	require.Empty(t, keymap.Conflicts(changed))
	for name, tc := range map[string]struct {
		schema string
		keys   []string
		want   string
	}{
		"down and up":                    {two, []string{"c-w", "'two'", "c-v", "'one'"}, `{"a":"one","b":"two"}`},
		"not by those of before":         {two, []string{"down", "'one'", "enter", "'!'"}, `{"a":"one!"}`},
		"on from a field":                {two, []string{"'one'", "c-n", "'two'"}, `{"a":"one","b":"two"}`},
		"left and right in a text":       {two, []string{"'ac'", "c-k", "'b'", "c-u", "'d'"}, `{"a":"abcd"}`},
		"lines, which enter ends":        {two, []string{"'one'", "pgup", "'two'", "enter", "'three'", "c-n", "'b'"}, `{"a":"one\ntwo\nthree","b":"b"}`},
		"up and down in lines":           {two, []string{"'one'", "pgup", "c-v", "'!'", "c-w", "c-w", "'b'"}, `{"a":"!one\n","b":"b"}`},
		"a space is text":                {two, []string{"'x'", "space", "'y'"}, `{"a":"x y"}`},
		"a truth is toggled":             {`"properties":{"b":{"type":"boolean"}}`, []string{"c-t"}, `{"b":true}`},
		"and not by a space":             {`"properties":{"b":{"type":"boolean"}}`, []string{"space", "'   '"}, `{}`},
		"and taken back":                 {`"properties":{"b":{"type":"boolean"}}`, []string{"c-t", "c-r"}, `{}`},
		"radio":                          {`"properties":{"e":{"enum":["a","b","c"]}}`, []string{"c-u", "c-u"}, `{"e":"b"}`},
		"an object is filled in":         {`"properties":{"o":{"type":"object","properties":{"x":{"type":"string"}}}}`, []string{"c-t", "c-w", "'v'"}, `{"o":{"x":"v"}}`},
		"items are added and taken away": {items, []string{"pgdown", "'1'", "pgdown", "'2'", "c-x"}, `{"l":[{"x":"1"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newForm(t, form.Spec{Schema: objectSchema(tc.schema), Actions: keymap.Rebind(changed)})
			require.Equal(t, form.None, press(f, tc.keys...))
			args, _, err := f.Values()
			require.NoError(t, err)
			require.JSONEq(t, tc.want, string(args))
		})
	}
}
