package lua_test

import (
	"context"
	"testing"
	"time"

	"goblin/meta/lua"
)

func run(t *testing.T, h lua.Host, script string) (lua.Result, error) {
	t.Helper()
	return lua.Run(context.Background(), script, h, lua.Limits{Calls: 1000, Timeout: 20 * time.Second})
}

func TestValues(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"R1-12 structured content is a table", `result(calculator.add({a=10,b=20}):await())`, `{"sum":30}`},
		{"R1-12 a plain call gives the result", `local r = calculator.add{a=1,b=2} return r.sum`, `3`},
		{"R1-12 a number can be awaited", `return calculator.add{a=1,b=2}.sum:await()`, `3`},
		{"R1-12 a single text is a string", `return calculator.div{a=1,b=4}`, `"0.25"`},
		{"R1-12 a single JSON text is a table", `return data_server.get_user{id=5}.id`, `5`},
		{"R1-12 anything else is the whole result", `return #notes.link{}.content`, `2`},
		{"R1-13 two servers in one script", `return {calculator.add{a=1,b=1}.sum, notes.echo{x="y"}}`, `[2,{"x":"y"}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, err := run(t, newHost(t), c.script)
			if err != nil || string(res.JSON) != c.want {
				t.Fatalf("%s\n got %s, %v\nwant %s", c.script, res.JSON, err, c.want)
			}
		})
	}
}
