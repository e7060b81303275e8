package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/registry/rule"
)

const ruledServers = "servers: {files: {command: /bin/true}}\n"

func TestRulesAreRead(t *testing.T) {
	t.Parallel()
	cfg := parse(t, "goblin.yaml", ruledServers+`rules:
  - when: method:tools/call destructive:yes client:${CLIENT:-codex}
    then: stop
    timeout: 2m
    default: send
    ask: client
    text: Ask me first.
  - {when: "server:=files", on: request, then: delay, delay: 1500ms, p: 0.1, count: 3}
  - {when: "name:a", then: answer, result: {content: [{type: text, text: "é ${CLIENT:-x} $${y}"}], n: 12345678901234567890, "a/b": [1.5, true, null]}, delay: 1s}
  - {when: "name:b", then: fail, code: -32000}
  - {then: truncate, when: "server:files size:>1k"}
`)
	require.Empty(t, cfg.Warnings)
	var texts []string
	for _, r := range cfg.Rules {
		texts = append(texts, r.String())
	}
	require.Equal(t, []string{
		`{when: "method:tools/call destructive:yes client:codex", then: stop, text: "Ask me first.", timeout: 2m, default: send, ask: client}`,
		`{when: "server:=files", then: delay, delay: 1.5s, p: 0.1, count: 3}`,
		`{when: "name:a", then: answer, result: {"content": [{"type": "text", "text": "é x $${y}"}], "n": 12345678901234567890, "a/b": [1.5, true, null]}, delay: 1s}`,
		`{when: "name:b", then: fail, code: -32000}`,
		`{when: "server:files size:>1k", then: truncate}`,
	}, texts)
	require.Equal(t, 3, cfg.Rules[0].Line)
	require.Equal(t, rule.OnAnswer, cfg.Rules[4].On)
	for _, text := range texts {
		again, err := config.ParseRule(text)
		require.NoError(t, err)
		require.Equal(t, text, again.String())
	}
}

func TestMistakesInRulesHaveTheirLine(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"rules: {a: 1}":                   `goblin.yaml:2: "rules" must be a list, not a mapping`,
		"rules: [deny]":                   `goblin.yaml:2: "rules[0]" must be a mapping with "when" and "then", not text`,
		"rules:\n- when: a\n  then: deni": `goblin.yaml:4: "then" in rules[0] must be stop, deny, answer, delay, fail, drop, freeze, truncate or stale, not "deni"; did you mean "deny"?`,
		"rules:\n- when: a\n  thn: deny":  `goblin.yaml:4: unknown key "thn" in rules[0]; did you mean "then"?`,
		"rules:\n- when: a":               `goblin.yaml:3: "then" in rules[0] is missing`,
		"rules:\n- {when: a, then: deny}\n- when: \"client: x\"\n  then: deny": `goblin.yaml:4: "when" in rules[1] is wrong in column 1: "client:" has no value and would match everything`,
		"rules:\n- {when: a, then: fail, code: 0}":                             `goblin.yaml:3: "code" in rules[0] must not be 0`,
		"rules:\n- {when: a, then: fail, code: 1.5}":                           `goblin.yaml:3: "code" in rules[0] must be a whole number, not a fraction`,
		"rules:\n- {when: a, then: answer, result: [1]}":                       `goblin.yaml:3: "result" in rules[0] must be a mapping, not a list`,
		"rules:\n- {when: a, then: answer, result: {x: .nan}}":                 `goblin.yaml:3: "x" in rules[0].result is a number that JSON cannot represent`,
		"rules:\n- {when: a, then: delay, delay: 5}":                           `goblin.yaml:3: "delay" in rules[0] must be a duration with a unit`,
		"rules:\n- {when: a, then: deny, p: 1.5}":                              `goblin.yaml:3: "p" in rules[0] must be from 0 to 1`,
		"rules:\n- {when: a, then: deny, count: 0}":                            `goblin.yaml:3: "count" in rules[0] must be from 1 to 100000000`,
		"rules:\n- {when: '${NONE}', then: deny}":                              `goblin.yaml:3: ${NONE} is not set, but "when" in rules[0] needs it`,
		"rules:\n- {when: 'client:${EMPTY}', then: deny}":                      `goblin.yaml:3: "when" in rules[0] is wrong in column 1: "client:" has no value`,
		"rules:\n- {when: '${keyring:x}', then: deny}":                         `goblin.yaml:3: "when" in rules[0]`,
		"rules: [" + strings.Repeat("{then: deny},", 501) + "]":                `goblin.yaml:2: "rules" has more than 500 rules`,
	} {
		_, err := config.Parse("goblin.yaml", []byte(ruledServers+src), func(name string) (string, bool) { return "", name == "EMPTY" })
		require.ErrorContains(t, err, want, src)
	}
}

// A client's file tolerates much, but a rule may protect something.
func TestMistakesInRulesOfClientFilesCount(t *testing.T) {
	t.Parallel()
	const src = `{"mcpServers": {"files": {"command": "/bin/true"}}, "theme": "dark", "rules": [
  {"when": "server:files", "then": "deny"},
  {"when": "server:files", "then": "delay", "delay": 5}
]}`
	_, err := config.Parse("claude_desktop_config.json", []byte(src), env)
	require.ErrorContains(t, err, `claude_desktop_config.json:3: "delay" in rules[1] must be a duration with a unit`)
	cfg := parse(t, "claude_desktop_config.json", strings.Replace(src, `"delay": 5`, `"delay": "5s"`, 1))
	require.Len(t, cfg.Rules, 2)
}

func TestRulesThatCannotWorkAreWarnings(t *testing.T) {
	t.Parallel()
	cfg := parse(t, "goblin.yaml", ruledServers+`rules:
  - {when: "server:fils", then: deny}
  - {when: "name:x", then: deny}
  - {when: "name:x", then: stop}
  - {then: drop}
`)
	var got []string
	for _, w := range cfg.Warnings {
		got = append(got, w.String())
	}
	require.Equal(t, []string{
		`goblin.yaml:3: rules[0] server:fils matches no server of the config; did you mean "files"?`,
		`goblin.yaml:5: rules[2] contradicts rules[1] on line 4, which selects the same and comes first, so this rule never applies; remove one of them`,
		`goblin.yaml:6: rules[3] matches every request, so it can make Goblin unusable; add a term such as method:tools/call to when`,
	}, got)
}

func TestARuleOutsideOfAFileHasPositions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                    "the rule is empty",
		"deny":                                `column 1: the rule must be a mapping with "when" and "then", not text`,
		"{when: a, then: deny":                "line 1: not valid YAML",
		"{when: a, dely: 2s, then: delay}":    `column 11: unknown key "dely" in the rule; did you mean "delay"?`,
		"when: a\nthen: stop\ntimeout: 1000h": `line 3, column 10: "timeout" in the rule must be from 0 to 24h`,
		"{when: a, then: deny}\n---\n{}":      "line 2: a second YAML document begins here",
		strings.Repeat("x", 1<<20):            "a rule is at most 64KiB long",
	} {
		_, err := config.ParseRule(text)
		require.ErrorContains(t, err, want)
	}
	_, err := config.ParseRules([]string{"{when: a, then: deny}", "{when: a, then: denny}"})
	require.ErrorContains(t, err, "rule 2: column 17: \"then\" in the rule must be")
	one, err := config.ParseRule(`{"when": "a", "then": "deny", "text": "\u00e9\n"}`)
	require.NoError(t, err)
	require.Equal(t, `{when: "a", then: deny, text: "é\n"}`, one.String())
}

// FuzzParseRule checks that the text of any rule parses to the same rule.
func FuzzParseRule(f *testing.F) {
	for _, text := range []string{
		"{when: \"server:files\", then: delay, delay: 2s, p: 0.1}",
		"{when: \"${HOME} $${x}\", then: answer, result: {\"a\\u2028\": [\"\\x7f\", 1e3, 0x10, null, {}], ? long : {b: ''}}}",
		"when: |\n  a\n  b\nthen: stop\ntimeout: 1h0m5s\nask: client\n", "{then: fail, code: -1, text: \"\\ud83d\", count: 7, on: answer}",
		"&a {when: x, then: deny, result: *a}", "{<<: {then: drop}, when: 'ms:>5', on: answer}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		one, err := config.ParseRule(text)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		again, err := config.ParseRule(one.String())
		require.NoError(t, err, one.String())
		require.Equal(t, one.String(), again.String())
		require.NotContains(t, one.String(), "\n")
	})
}
