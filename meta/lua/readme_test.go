package lua_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"goblin/meta/lua"
)

// The manual shows each example with its result as JSON or its error.
func TestManual(t *testing.T) {
	t.Parallel()
	manual := string(must(os.ReadFile("README.md")))
	examples := regexp.MustCompile("(?s)```lua\n(.*?)```\n```(json|text)\n(.*?)\n```").FindAllStringSubmatch(manual, -1)
	if n := strings.Count(manual, "```lua"); n < 15 || len(examples) != n {
		t.Fatalf("%d examples, %d with a result", n, len(examples))
	}
	for _, e := range examples {
		l := lua.Limits{Calls: 100, Timeout: 20 * time.Second}
		if strings.Contains(e[3], "(lua.timeout)") {
			l.Timeout = 200 * time.Millisecond
		}
		res, err := runner.Run(t.Context(), e[1], newFakeGateway(t), l)
		got := string(res.JSON)
		if err != nil {
			got = err.Error()
		}
		if l.Timeout < time.Second { // no line if the process started too late
			got = strings.Replace(got, "script: ", "script:1: ", 1)
		}
		if (err != nil) != (e[2] == "text") || got != e[3] {
			t.Errorf("%s\n got %s\nwant %s", e[1], got, e[3])
		}
	}
}
