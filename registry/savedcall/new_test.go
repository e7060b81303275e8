package savedcall_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goblin/registry/savedcall"
)

func TestNewSavesTheRequest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ method, params, want string }{
		{"tools/call", `{"name":"a_b","arguments":{"s":"007","n":1e999,"i":123456789012345678901234567890,"f":1.50,"b":true,"z":null,"o":{"x":[{},[],""]},"date":"2001-01-01","multi":"a\nb\n","ctl":"\u0000\u2028"},"_meta":{"progressToken":1}}`, ""},
		{"tools/call", `{"name":"a","arguments":{"v":"${X} $${Y} $Z","w":"${X}"}}`, ""},
		{"tools/call", `{"name":"a"}`, ""},
		{"tools/call", `{"name":"a","arguments":{}}`, ""},
		{"prompts/get", `{"name":"s/p","arguments":{"a":"3"}}`, ""},
		{"resources/read", `{"uri":"mcp://s/file:///a b?c=${d}"}`, ""},
		{"tools/list", `{}`, "tools/list cannot be saved; only tools/call, resources/read and prompts/get can"},
		{"tools/call", `{"name":"a","arg`, "the params of the request are missing or incomplete"},
		{"tools/call", ``, "the params of the request are missing or incomplete"},
		{"tools/call", `{"arguments":{}}`, "the request has no name"},
		{"tools/call", `{"name":"a","arguments":{"x":1,"x":2}}`, `the member "x" is repeated or hidden`},
		{"tools/call", `{"name":"a","arguments":{"x":` + strings.Repeat("[", 120) + strings.Repeat("]", 120) + `}}`, "values are nested more than 100 deep"},
	} {
		call, variables, err := savedcall.New(c.method, json.RawMessage(c.params))
		if c.want != "" {
			require.EqualError(t, err, c.want)
			continue
		}
		require.NoError(t, err, c.params)
		require.Empty(t, variables)
		text := call.Format()
		again, err := savedcall.Parse("a.yaml", text)
		require.NoError(t, err, "%s", text)
		r, err := again.Resolve(savedcall.Variables{})
		require.NoError(t, err, "%s", text)
		require.Equal(t, c.method, r.Method)
		want, _, _ := strings.Cut(c.params, `,"_meta"`)
		if want != c.params {
			want += "}"
		}
		assert.Equal(t, canonical(want), canonical(string(r.Params)), "%s", text)
	}
}

// canonical spells escapes of strings like savedcall.
func canonical(text string) string {
	return strings.NewReplacer(`\u2028`, "\u2028", `\n`, `\n`).Replace(text)
}

func TestHiddenSecretsBecomeVariables(t *testing.T) {
	t.Parallel()
	call, variables, err := savedcall.New("tools/call", json.RawMessage(`{"name":"a","arguments":{
		"apiKey":"[hidden:0a1b2c3d]","headers":[{"Authorization":"Bearer [hidden:0a1b2c3d] ${X}"}],"token":"[hidden]","more":{"token":"[hidden]"},"9":"[hidden]"}}`))
	require.NoError(t, err)
	require.Equal(t, []string{"APIKEY", "TOKEN", "TOKEN_2", "SECRET_9"}, variables)
	require.Equal(t, `call: a
arguments:
  apiKey: "${APIKEY}"
  headers:
    - Authorization: Bearer ${APIKEY} $${X}
  token: "${TOKEN}"
  more:
    token: "${TOKEN_2}"
  "9": "${SECRET_9}"
`, string(call.Format()))
}

func TestUpdateKeepsCommentsAndOrder(t *testing.T) {
	t.Parallel()
	const text = `# What this file checks.

expect:
  # the shop answers fast
  - {time: 2000ms} # a limit
  - path: $.isError # no error
    equals: false
  - {size: 0064KiB}

# the call
call: search # listed name
arguments:
  # words
  query: ${WORD:-dune}
  limit: 0x10
  old: 1
`
	call, err := savedcall.Parse("a.yaml", []byte(text))
	require.NoError(t, err)
	same, err := call.Update([]byte(text))
	require.NoError(t, err)
	require.Equal(t, text, string(same))
	windows := strings.ReplaceAll("\ufeff"+text, "\n", "\r\n")
	same, err = call.Update([]byte(windows))
	require.NoError(t, err)
	require.Equal(t, strings.TrimPrefix(windows, "\ufeff"), string(same))

	call.Name = "find"
	call.Dev = true
	call.Arguments = json.RawMessage(`{"query":"${WORD:-dune}","limit":17,"new":["${A}"]}`)
	call.Capture = []savedcall.Capture{{Name: "id", Path: "$.a['b c']"}}
	call.Expect = append(call.Expect[:1:1], call.Expect[2], savedcall.Check{Kind: savedcall.CheckSame, Ignore: []string{"$.content[*].text"}})
	changed, err := call.Update([]byte(text))
	require.NoError(t, err)
	require.Equal(t, `# What this file checks.

expect:
  # the shop answers fast
  - {time: 2000ms} # a limit
  - {size: 0064KiB}
  - {same: true, ignore: ["$.content[*].text"]}

# the call
call: find # listed name
arguments:
  # words
  query: ${WORD:-dune}
  limit: 17
  new:
    - "${A}"
capture:
  id: "$.a['b c']"
dev: true
`, string(changed))
	_, err = call.Update([]byte("call: [\n"))
	require.ErrorContains(t, err, "a.yaml:1: not valid YAML")
}

func TestFileNamesAreSafe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, name, want string }{
		{"call", "library_search", "library_search.yaml"},
		{"call", "../../etc/passwd", "etc_passwd.yaml"},
		{"call", "a\\b:c\x00\x1b[31m", "a_b_c_31m.yaml"},
		{"call", "CON", "con_call.yaml"},
		{"call", "com1", "com1_call.yaml"},
		{"call", "${TOOL}", "tool.yaml"},
		{"call", "図書", "call.yaml"},
		{"call", ".hidden.", "hidden.yaml"},
		{"prompt", "server/greet", "server_greet.yaml"},
		{"read", "mcp://files/file:///home/me/notes.txt", "files_file_home_me_notes_txt.yaml"},
		{"read", "mcp://a/" + strings.Repeat("x", 200), strings.Repeat("x", 60) + ".yaml"},
		{"call", "taken", "taken_3.yaml"},
	} {
		call := savedcall.Call{Kind: savedcall.Kind(c.kind), Name: c.name}
		taken := func(name string) bool { return name == "taken.yaml" || name == "taken_2.yaml" }
		require.Equal(t, c.want, call.FileName(taken))
	}
	require.Equal(t, "a/one.answer.json", savedcall.AnswerFile("a/one.yaml"))
	require.True(t, savedcall.IsFile("a.YML"))
	require.False(t, savedcall.IsFile("one.answer.json"))
}

func TestVariablesOfNumbersAreNotQuoted(t *testing.T) {
	t.Parallel()
	c, err := savedcall.Parse("a.yaml", []byte(`{call: t, arguments: {n: "${N:-3}", s: "${S:-x}"}}`))
	require.NoError(t, err)
	c.UnquoteVariables(json.RawMessage(`{"properties":{"n":{"type":"integer"},"s":{"type":"string"}}}`))
	again, err := savedcall.Parse("a.yaml", c.Format())
	require.NoError(t, err)
	r, err := again.Resolve(savedcall.Variables{Env: func(string) (string, bool) { return "", false }})
	require.NoError(t, err)
	require.JSONEq(t, `{"name":"t","arguments":{"n":3,"s":"x"}}`, string(r.Params))
}
