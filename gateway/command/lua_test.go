package command

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
	"goblin/gateway/daemon"
)

func TestLuaPrintsWhatTheScriptReturns(t *testing.T) {
	for name, tt := range map[string]struct {
		answer daemon.ScriptAnswer
		args   []string
		tty    bool
		want   outcome
	}{
		"a text":               {daemon.ScriptAnswer{Value: []byte(`"a\nb"`)}, nil, false, outcome{out: "a\nb\n"}},
		"a text on a terminal": {daemon.ScriptAnswer{Value: []byte(`"a\u001b[31m"`)}, nil, true, outcome{out: "a\\x1b[31m\n"}},
		"a text as JSON":       {daemon.ScriptAnswer{Value: []byte(`"a"`)}, []string{"--json"}, false, outcome{out: "\"a\"\n"}},
		"a table":              {daemon.ScriptAnswer{Value: []byte(`{"b":1,"a":9007199254740993}`)}, nil, false, outcome{out: "{\n  \"b\": 1,\n  \"a\": 9007199254740993\n}\n"}},
		"a table as JSON":      {daemon.ScriptAnswer{Value: []byte(`{"b":1}`)}, []string{"--json"}, false, outcome{out: "{\"b\":1}\n"}},
		"nothing":              {daemon.ScriptAnswer{Hint: "end it with return"}, nil, false, outcome{err: "goblin: end it with return\n"}},
		"nothing as JSON":      {daemon.ScriptAnswer{}, []string{"--json"}, false, outcome{out: "null\n"}},
		"what it printed":      {daemon.ScriptAnswer{Printed: "seen\n", Value: []byte(`1`)}, nil, false, outcome{out: "1\n", err: "seen\n"}},
		"an error":             {daemon.ScriptAnswer{Error: "script:2: oops"}, nil, false, outcome{err: "goblin: stdin:2: oops\n", code: cli.CodeFailure}},
		"an error after text":  {daemon.ScriptAnswer{Printed: "seen", Error: "x"}, nil, false, outcome{err: "seen\ngoblin: stdin: x\n", code: cli.CodeFailure}},
		"too long":             {daemon.ScriptAnswer{Error: "x", Timeout: true}, nil, false, outcome{err: "goblin: stdin: x\n", code: cli.CodeTimeout}},
	} {
		t.Run(name, func(t *testing.T) {
			source := ""
			g := &scripted{status: ready("a"), ran: func(s string) daemon.ScriptAnswer { source = s; return tt.answer }}
			got := try{gateway: g, stdin: "return 1", tty: tt.tty}.run(t, append([]string{"lua", "-"}, tt.args...)...)
			require.Equal(t, tt.want, got)
			require.Equal(t, "return 1", source)
			require.True(t, json.Valid([]byte(got.out)) || len(tt.args) == 0)
		})
	}
}
