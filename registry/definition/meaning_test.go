package definition_test

import (
	"strings"
	"testing"

	"goblin/registry/definition"

	"github.com/stretchr/testify/require"
)

func TestMeaningOfChangedDefinitions(t *testing.T) {
	tool := func(properties, required string) string {
		return `{"name":"t","inputSchema":{"type":"object","properties":{` + properties + `},"required":[` + required + `]}}`
	}
	for name, test := range map[string]struct {
		kind, before, after string
		want                string // lines
	}{
		"equal":                 {"tool", `{"name":"t","title":"A"}`, `{"title": "\u0041", "name":"t"}`, ""},
		"description":           {"tool", `{"name":"t","description":"a"}`, `{"name":"t","description":"b"}`, "description changed"},
		"title and icons":       {"prompt", `{"name":"t"}`, `{"name":"t","title":"T","icons":[]}`, "title added\nicons added"},
		"unknown member":        {"tool", `{"name":"t","x":1}`, `{"name":"t"}`, `"x" removed`},
		"argument added":        {"tool", tool(``, ``), tool(`"a":{"type":"string"}`, ``), `argument "a" added`},
		"required added":        {"tool", tool(``, ``), tool(`"a":{"type":"string"}`, `"a"`), `argument "a" added, required`},
		"argument removed":      {"tool", tool(`"a":{}`, ``), tool(``, ``), `argument "a" removed`},
		"now required":          {"tool", tool(`"a":{}`, ``), tool(`"a":{}`, `"a"`), `argument "a" is now required`},
		"no longer required":    {"tool", tool(`"a":{}`, `"a"`), tool(`"a":{}`, ``), `argument "a" is no longer required`},
		"type":                  {"tool", tool(`"a":{"type":"string"}`, ``), tool(`"a":{"type":["string","null"]}`, ``), `type of argument "a" changed from string to string or null`},
		"enum":                  {"tool", tool(`"a":{"enum":[1,2]}`, ``), tool(`"a":{"enum":[1]}`, ``), `allowed values of argument "a" changed from 1 | 2 to 1`},
		"default":               {"tool", tool(`"a":{"default":1}`, ``), tool(`"a":{"default":2}`, ``), `default of argument "a" changed from 1 to 2`},
		"default added":         {"tool", tool(`"a":{}`, ``), tool(`"a":{"default":"x"}`, ``), `default of argument "a" added: "x"`},
		"lengths":               {"tool", tool(`"a":{"minimum":1,"minLength":2}`, ``), tool(`"a":{"minimum":1}`, ``), `minimum length of argument "a" removed`},
		"argument description":  {"tool", tool(`"a":{"description":"x"}`, ``), tool(`"a":{"description":"y"}`, ``), `description of argument "a" changed`},
		"nested":                {"tool", tool(`"a":{"items":{"properties":{"b":{"type":"string"}}}}`, ``), tool(`"a":{"items":{"properties":{"b":{"type":"number"}}}}`, ``), `type of argument "a[].b" changed from string to number`},
		"children of an added":  {"tool", tool(``, ``), tool(`"a":{"properties":{"b":{}}},"ab":{}`, ``), "argument \"a\" added\nargument \"ab\" added"},
		"unseen part of schema": {"tool", `{"name":"t","inputSchema":{"additionalProperties":true}}`, `{"name":"t","inputSchema":{"additionalProperties":false}}`, "input schema changed"},
		"now destructive":       {"tool", `{"name":"t","annotations":{"readOnlyHint":true}}`, `{"name":"t","annotations":{}}`, "no longer read-only\nnow destructive"},
		"explicit default":      {"tool", `{"name":"t"}`, `{"name":"t","annotations":{"destructiveHint":true}}`, "annotations added"},
		"output":                {"tool", `{"name":"t","outputSchema":{"a":1}}`, `{"name":"t","outputSchema":{"a":2}}`, "output schema changed"},
		"prompt argument":       {"prompt", `{"name":"p","arguments":[{"name":"a"}]}`, `{"name":"p","arguments":[{"name":"a","required":true}]}`, `argument "a" is now required`},
		"resource":              {"resource", `{"uri":"x:1","mimeType":"text/plain","size":1}`, `{"uri":"x:1","mimeType":"text/html","size":2}`, "MIME type changed from \"text/plain\" to \"text/html\"\nsize changed from 1 to 2"},
		"skill":                 {"skill", `{"uri":"s","frontmatter":{"description":"a"}}`, `{"uri":"s","frontmatter":{"description":"b"}}`, "description changed"},
		"control characters":    {"tool", tool("", ``), tool(`"\u001b[2J\n":{}`, ``), `argument "\x1b[2J\n" added`},
	} {
		t.Run(name, func(t *testing.T) {
			got := definition.Meaning(test.kind, []byte(test.before), []byte(test.after))
			require.Equal(t, test.want, strings.Join(got, "\n"))
		})
	}
}

func TestMeaningHasAtMostTwentyLines(t *testing.T) {
	properties := strings.Repeat(`"x":{},`, 50)
	for i := range 50 {
		properties = strings.Replace(properties, `"x"`, `"`+strings.Repeat("y", i+1)+`"`, 1)
	}
	got := definition.Meaning("tool", []byte(`{"inputSchema":{}}`), []byte(`{"inputSchema":{"properties":{`+strings.TrimSuffix(properties, ",")+`}}}`))
	require.Len(t, got, 21)
	require.Equal(t, "30 more changes", got[20])
}

func FuzzMeaning(f *testing.F) {
	f.Add([]byte(`{"name":"a","inputSchema":{"properties":{"x":{"$ref":"#/x"}}}}`), []byte(`{"name":"a"}`))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		for _, kind := range []string{"tool", "prompt", "resource", "skill"} {
			for _, line := range definition.Meaning(kind, before, after) {
				require.NotContains(t, line, "\n")
				require.NotContains(t, line, "\x1b")
			}
		}
	})
}
