package export_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/registry/export"
)

func TestCommands(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, method, params, want string }{
		{"no arguments", "tools/call", `{"name":"a_b"}`, `goblin call a_b`},
		{"meta without the token", "tools/call", `{"name":"a","_meta":{"progressToken":1,"x":"y"}}`, `goblin call a --meta '{"x":"y"}'`},
		{"a name that looks like a flag", "tools/call", `{"name":"--args","arguments":{}}`, `goblin call --args '{}' -- --args`},
		{"prompt", "prompts/get", `{"name":"n/p","arguments":{"z":"two words","a":"$(rm)"}}`, `goblin prompt n/p --arg 'z=two words' --arg 'a=$(rm)'`},
		{"prompt with a number", "prompts/get", `{"name":"n","arguments":{"z":1}}`, ``},
		{"prompt with an odd name", "prompts/get", `{"name":"n","arguments":{"a=b":"1"}}`, ``},
		{"a URI that hides", "resources/read", `{"uri":"a:\u001b[201~\nrm -rf ~\u202e'"}`, `goblin read $'a:\033[201~\012rm -rf ~\342\200\256\047'`},
		{"arguments that hide", "tools/call", `{"name":"a","arguments":{"t":"` + "\u009b\u202e" + `"}}`, `goblin call a --args '{"t":"\u009b\u202e"}'`},
		{"not whole", "tools/call", `{"name":"a","argu`, ``},
		{"no name", "tools/call", `{}`, ``},
		{"another method", "tools/list", `{}`, ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, why := export.ShellCommand(&registry.TrafficRecord{Method: tt.method, Request: []byte(tt.params)}, "")
			require.Equal(t, tt.want, got)
			require.Equal(t, got == "", why != "")
		})
	}
}
