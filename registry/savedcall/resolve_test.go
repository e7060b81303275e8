package savedcall_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goblin/registry/savedcall"
)

func variables(captures ...string) savedcall.Variables {
	v := savedcall.Variables{Captures: make(map[string]json.RawMessage), Env: func(name string) (string, bool) {
		value, ok := map[string]string{"WORD": "it", "N": "3", "EMPTY": "", "JSON": `{"a":1}`, "SPACE": " 1", "both": "env"}[name]
		return value, ok
	}}
	for i := 0; i < len(captures); i += 2 {
		v.Captures[captures[i]] = json.RawMessage(captures[i+1])
	}
	return v
}

func TestVariablesKeepTheirTypes(t *testing.T) {
	t.Parallel()
	vars := variables("id", "9007199254740993", "list", `[1,{"a":"${WORD}"}]`, "text", `"a\"b"`, "both", "true", "nothing", "null")
	for _, c := range []struct{ yaml, want string }{
		{`"${WORD}"`, `"it"`},
		{`${WORD}`, `"it"`},
		{`a ${WORD}${N}`, `"a it3"`},
		{`"${N}"`, `"3"`},
		{`${N}`, `3`},
		{`${NONE:-3}`, `3`},
		{`"${NONE:-3}"`, `"3"`},
		{`${NONE:-true}`, `true`},
		{`${NONE:-null}`, `null`},
		{`${NONE:-1e3}`, `1e3`},
		{`${NONE:-007}`, `"007"`},
		{`${NONE:-}`, `""`},
		{`${EMPTY}`, `""`},
		{`${EMPTY:-3}`, `3`},
		{`${JSON}`, `"{\"a\":1}"`},
		{`${SPACE}`, `" 1"`},
		{`${N:-4}`, `3`},
		{`${NONE:-${N}}`, `3`},
		{`${NONE:-${id}}`, `9007199254740993`},
		{`${NONE:-a${id}}`, `"a9007199254740993"`},
		{`"${id}"`, `9007199254740993`},
		{`${list}`, `[1,{"a":"${WORD}"}]`},
		{`"x${list}"`, `"x[1,{\"a\":\"${WORD}\"}]"`},
		{`"${text}"`, `"a\"b"`},
		{`"<${text}>"`, `"<a\"b>"`},
		{`"${nothing}"`, `null`},
		{`"${both}"`, `true`},
		{`$${WORD}`, `"${WORD}"`},
		{`$$${WORD}`, `"$${WORD}"`},
		{`$WORD $ $$`, `"$WORD $ $$"`},
		{`{a: ["${N}", 1], "${N}": 2}`, `{"a":["3",1],"${N}":2}`},
		{"[1.50, 0x1F, 1_000, -0, 123456789012345678901234567890, 2001-01-01, yes, True, ~]", `[1.50,31,1000,-0,123456789012345678901234567890,"2001-01-01","yes",true,null]`},
	} {
		parsed, err := savedcall.Parse("a.yaml", []byte("call: x\narguments:\n  v: "+c.yaml+"\n"))
		require.NoError(t, err, c.yaml)
		for _, text := range [][]byte{nil, parsed.Format()} { // and what Format writes
			if text != nil {
				parsed, err = savedcall.Parse("a.yaml", text)
				require.NoError(t, err, "%s", text)
			}
			r, err := parsed.Resolve(vars)
			require.NoError(t, err, c.yaml)
			assert.Equal(t, `{"name":"x","arguments":{"v":`+c.want+`}}`, string(r.Params), "%s\n%s", c.yaml, text)
		}
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ yaml, method, params string }{
		{"call: x", "tools/call", `{"name":"x"}`},
		{"call: ${WORD}_x\narguments: {}", "tools/call", `{"name":"it_x","arguments":{}}`},
		{"read: mcp://a/${id}", "resources/read", `{"uri":"mcp://a/7"}`},
		{"prompt: p\narguments: {a: 3, b: true, c: '${id}', d: \"${WORD}\"}", "prompts/get", `{"name":"p","arguments":{"a":"3","b":"true","c":"7","d":"it"}}`},
	} {
		parsed, err := savedcall.Parse("a.yaml", []byte(c.yaml))
		require.NoError(t, err, c.yaml)
		r, err := parsed.Resolve(variables("id", "7"))
		require.NoError(t, err, c.yaml)
		require.Equal(t, c.method, r.Method)
		require.Equal(t, c.params, string(r.Params))
	}
}

func TestMissingVariablesAreNamedWithTheirLines(t *testing.T) {
	t.Parallel()
	c, err := savedcall.Parse("a.yaml", []byte(`call: ${A}
arguments:
  x: ${B:-${C}}
  y: [1, "${A} ${A}"]
expect:
  - {path: $.a, equals: "${D}"}
  - path: $.a
    matches: ${E}
  - {path: $.b, equals: "${WORD}"}
`))
	require.NoError(t, err)
	_, err = c.Resolve(variables())
	var want []string
	for _, at := range [][2]string{{"1", "A"}, {"3", "C"}, {"4", "A"}, {"6", "D"}, {"7", "E"}} {
		want = append(want, "a.yaml:"+at[0]+": ${"+at[1]+"} is not set and no earlier file of the run captures it; set it or write ${"+at[1]+":-default}")
	}
	require.EqualError(t, err, strings.Join(want, "\n"))
}

func TestVariablesCannotGrowWithoutLimit(t *testing.T) {
	t.Parallel()
	big := savedcall.Variables{Env: func(string) (string, bool) { return strings.Repeat("x", 1<<19), true }}
	for text, want := range map[string]string{
		strings.Repeat("${A}", 1000):                          "a.yaml:2: a text is longer than 1 MiB with its variables",
		strings.Repeat(`", "${A}`, 1000):                      "a.yaml:2: the call is larger than 16 MiB with its variables",
		strings.Repeat("${A:-", 20) + strings.Repeat("}", 20): "a.yaml:2: defaults of variables are nested too deeply",
	} {
		c, err := savedcall.Parse("a.yaml", []byte("call: x\narguments: {a: [\""+text+"\"]}\n"))
		if err == nil {
			_, err = c.Resolve(big)
		}
		require.EqualError(t, err, want)
	}
}
