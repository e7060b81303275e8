package savedcall_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goblin/registry/savedcall"
)

// TestMistakesNameTheirLines checks the messages of texts that are no saved calls.
func TestMistakesNameTheirLines(t *testing.T) {
	t.Parallel()
	digest := "sha256:" + strings.Repeat("a", 63)
	for _, c := range []struct{ text, want string }{
		{"", `a.yaml:1: the file is empty; write "call: NAME", "read: URI" or "prompt: NAME"`},
		{"# only a comment\n", `a.yaml:1: the file is empty; write "call: NAME", "read: URI" or "prompt: NAME"`},
		{"- call: x\n", `a.yaml:1: the file must be a mapping with "call", "read" or "prompt", not a list`},
		{"arguments: {}\n", `a.yaml:1: one of "call", "read" and "prompt" is missing`},
		{"call: x\nread: y\n", `a.yaml:2: "call" and "read" are mutually exclusive; keep one of them`},
		{"call:\n", `a.yaml:1: "call" must be a text, not nothing`},
		{"call: x\nargumnets: {}\n", `a.yaml:2: unknown key "argumnets" in a saved call; did you mean "arguments"?`},
		{"call: x\ncall: y\n", `a.yaml:2: key "call" occurs twice in a saved call`},
		{"call: x\narguments: {a: 1, a: 2}\n", `a.yaml:2: key "a" occurs twice in an object`},
		{"call: x\narguments: [1]\n", `a.yaml:2: "arguments" must be a mapping, not a list`},
		{"read: x\narguments: {a: 1}\n", `a.yaml:2: "arguments" cannot be combined with "read"`},
		{"prompt: x\narguments: {a: [1]}\n", `a.yaml:2: an argument of a prompt must be a text, not a list`},
		{"call: x\narguments:\n  a: .nan\n", `a.yaml:3: ".nan" is no number in JSON; quote a text`},
		{"call: x\narguments:\n  a: &b 1\n  c: *b\n", `a.yaml:4: aliases are not supported; write the value again`},
		{"call: x\narguments:\n  a: !secret b\n", `a.yaml:3: tag "!secret" is not supported`},
		{"call: x\narguments: {q: ${Q}}\n", `a.yaml:2: not valid YAML: did not find expected ',' or '}'; inside [ ] and { }, quote a text with "${"`},
		{"call: x\narguments:\n  q: ${Q\n", `a.yaml:3: "${" has no "}"; write "$${" for a literal "${"`},
		{"call: x\narguments:\n  q: ${keyring:q}\n", `a.yaml:3: a "${…}" is neither ${NAME} nor ${NAME:-default}; write "$${" for a literal "${"`},
		{"call: ${A:-${B:-${9}}}\n", `a.yaml:1: a "${…}" is neither ${NAME} nor ${NAME:-default}; write "$${" for a literal "${"`},
		{"call: x\ncapture: {a-b: $.x}\n", `a.yaml:2: "a-b" is no name of a variable; use letters, digits and _`},
		{"call: x\ncapture: {a: x}\n", `a.yaml:2: path "x": it does not begin with "$"; write a JSONPath such as $.content[0].text`},
		{"call: x\ncapture: {a: \"$.a[\"}\n", `a.yaml:2: path "$.a[": unexpected eof at position 5`},
		{"call: x\ncapture: {a: $..a..b..c}\n", `a.yaml:2: path "$..a..b..c": more than 2 ".."`},
		{"call: x\nexpect: {time: 2s}\n", `a.yaml:2: "expect" must be a list, not a mapping`},
		{"call: x\nexpect: [time]\n", `a.yaml:2: a check must be a mapping such as {path: "$.isError", equals: false}, not "time"`},
		{"call: x\nexpect: [{}]\n", `a.yaml:2: a check needs one of path, time, size, schema, definition and same`},
		{"call: x\nexpect: [{tiem: 2s}]\n", `a.yaml:2: unknown key "tiem" in a check; did you mean "time"?`},
		{"call: x\nexpect: [{time: 2s, size: 1B}]\n", `a.yaml:2: a check has "time" and "size"; write two checks`},
		{"call: x\nexpect:\n  - {time: 2s}\n  - {time: 2}\n", `a.yaml:4: "time" must be a duration such as "500ms" or "2s", not "2"`},
		{"call: x\nexpect: [{time: -2s}]\n", `a.yaml:2: "time" must be a duration such as "500ms" or "2s", not "-2s"`},
		{"call: x\nexpect: [{size: 64k}]\n", `a.yaml:2: "size" must be a size such as "64KiB" or "2MB", not "64k"`},
		{"call: x\nexpect: [{schema: false}]\n", `a.yaml:2: "schema" must be true; remove the check instead`},
		{"call: x\nexpect: [{same: yes}]\n", `a.yaml:2: "same" must be true or false, not "yes"`},
		{"call: x\nexpect: [{same: true, ignore: [$]}]\n", `a.yaml:2: "ignore" cannot contain the whole answer`},
		{"call: x\nexpect: [{same: true, ignore: $..a..b}]\n", `a.yaml:2: path "$..a..b": more than one ".." in "ignore"`},
		{"call: x\nexpect: [{time: 2s, ignore: [$.a]}]\n", `a.yaml:2: "ignore" needs "same" in the same check`},
		{"call: x\nexpect: [{definition: \"" + digest + "\"}]\n", `a.yaml:2: "definition" must be "sha256:" and 64 hexadecimal digits`},
		{"call: x\nexpect: [{path: $.a}]\n", `a.yaml:2: a check of a path needs one of equals, matches and exists`},
		{"call: x\nexpect: [{path: $.a, equals: 1, exists: true}]\n", `a.yaml:2: a check of a path needs one of equals, matches and exists`},
		{"call: x\nexpect: [{path: $.a, matches: \"(\"}]\n", "a.yaml:2: \"matches\": error parsing regexp: missing closing ): `(`"},
		{"call: x\n---\ncall: y\n", `a.yaml:2: a second document begins here; write one call per file`},
		{"call: x\n\targuments: {}\n", `a.yaml:2: not valid YAML: found a tab character that violates indentation`},
		{"call: x\nexpect:\n\t- {time: 2s}\n", "a.yaml:3: not valid YAML: a tab in the indentation; use spaces"},
		{"call: \"\\e[31m\"\nx\x1b: 1\n", `a.yaml:2: not valid YAML: control characters are not allowed`},
		{"call: x\narguments:\n  a: " + strings.Repeat("[", 150) + strings.Repeat("]", 150), `a.yaml:3: values are nested more than 100 deep`},
		{"call: x\n#" + strings.Repeat("x", 1<<20), `a.yaml:1: the file is larger than 1 MiB`},
		{"call: x\nexpect:\n" + strings.Repeat("  - {time: 1s}\n", 101), `a.yaml:3: "expect" has more than 100 checks`},
		{"dev: 1\ncall: x\nargs: {}\n", "a.yaml:1: \"dev\" must be true or false, not \"1\"\n" +
			`a.yaml:3: unknown key "args" in a saved call; did you mean "arguments"?`},
	} {
		_, err := savedcall.Parse("a.yaml", []byte(c.text))
		require.Error(t, err, c.text)
		assert.Equal(t, c.want, err.Error(), c.text)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(example, `{"content":[{"type":"text","text":"a"}],"isError":true}`)
	f.Add("prompt: p\narguments:\n  a: ${A:-1e999}\n  b: 0x1F\ndev: true\n", `{"a":[1,{"b":2e999}],"a":null}`)
	f.Add("read: \"mcp://a/${B}\"\nexpect:\n  - path: $..['a','b'][?@.x > 1]\n    equals: ${C}\n  - {same: true, ignore: [$.a, '$.content[-1:]']}\n", `[[[]],"\ud800"]`)
	f.Fuzz(func(t *testing.T, text, answer string) {
		c, err := savedcall.Parse("a.yaml", []byte(text))
		if err != nil {
			return
		}
		formatted := c.Format()
		again, err := savedcall.Parse("a.yaml", formatted)
		require.NoError(t, err, "%s", formatted)
		require.Equal(t, string(formatted), string(again.Format()))
		updated, err := c.Update([]byte(text))
		require.NoError(t, err)
		again, err = savedcall.Parse("a.yaml", updated)
		require.NoError(t, err)
		require.Equal(t, string(formatted), string(again.Format()))
		vars := savedcall.Variables{Env: func(name string) (string, bool) { return name, true }}
		x, err := c.Resolve(vars)
		if err != nil {
			return
		}
		y, err := again.Resolve(vars)
		require.NoError(t, err)
		require.Equal(t, string(x.Params), string(y.Params))
		a := savedcall.Answer{Result: []byte(answer)}
		a.Stored = a.Document()
		for _, o := range x.Evaluate(a) {
			require.Equal(t, o.OK, o.Got == "", "%s", o.Text)
			require.True(t, o.OK || o.Check.Kind != savedcall.CheckSame || a.Stored == nil, "%s: %s", o.Text, o.Got)
		}
	})
}
