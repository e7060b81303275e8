package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"goblin/registry/rule"
	"goblin/registry/termtext"
)

const (
	maxRules    = 500
	maxRuleText = 64 << 10 // bytes of a rule outside of a file
)

func ruleKeys() []field[rule.Rule] {
	return []field[rule.Rule]{
		key("when", "A filter as in Traffic, such as `method:tools/call destructive:yes client:codex`. Empty: everything.",
			ruleText(), func(r *rule.Rule) *string { return &r.When }),
		key("on", "The part of an exchange that the rule applies to. Default: request, with truncate answer.",
			words(rule.OnRequest, rule.OnAnswer), func(r *rule.Rule) *rule.On { return &r.On }),
		key("then", "stop: wait for the user. deny: refuse. answer: answer with `result`. delay: wait for `delay`. fail: answer with an error. drop: never answer. freeze: wait until the rule ends. truncate: send half of the answer. stale: repeat the previous answer.",
			words(rule.Actions...), func(r *rule.Rule) *rule.Action { return &r.Then }),
		key("text", "With deny, and stop's default: the text for the model. With fail: the error's message. With answer: the text of the result.",
			ruleText(), func(r *rule.Rule) *string { return &r.Text }),
		key("result", "With answer: the result.",
			jsonObject(), func(r *rule.Rule) *json.RawMessage { return &r.Result }),
		key("code", "With fail: the code of the JSON-RPC error. Default: -32603.",
			noDefault(count(math.MinInt32, math.MaxInt32)), func(r *rule.Rule) *int { return &r.Code }),
		key("delay", "With delay: the time to wait. With answer, fail, deny, truncate and stale: a wait before it.",
			duration(false), func(r *rule.Rule) *time.Duration { return &r.Delay }),
		key("timeout", "With stop: the time until `default` applies; 50s if it is not set. With freeze: the time until the request continues; 1h if it is not set.",
			duration(false), func(r *rule.Rule) *time.Duration { return &r.Timeout }),
		key("default", "With stop: what happens without a decision of the user. Default: deny.",
			words(rule.DefaultDeny, rule.DefaultSend), func(r *rule.Rule) *string { return &r.Default }),
		key("ask", "With stop: client also asks the client's user, if the client supports elicitation.",
			words(rule.AskClient), func(r *rule.Rule) *string { return &r.Ask }),
		key("p", "Probability, from 0 to 1. Default: 1.",
			optional(share()), func(r *rule.Rule) **float64 { return &r.P }),
		key("count", "Number of matches until the rule ends. Default: no limit.",
			optional(noDefault(count(1, rule.MaxCount))), func(r *rule.Rule) **int { return &r.Count }),
	}
}

// rules reads the list of rules.
func rules() kind[[]*rule.Rule] {
	return kind[[]*rule.Rule]{
		schema: func([]*rule.Rule) object {
			item := tableSchema(ruleKeys(), new(rule.Rule))
			item["type"], item["required"] = "object", []string{"then"}
			return object{"type": []string{"array", "null"}, "items": item, "maxItems": maxRules}
		},
		read: func(r *reader, at keyPath, n *yaml.Node, dst *[]*rule.Rule) {
			switch {
			case isNull(n):
				return
			case n.Kind != yaml.SequenceNode:
				r.fail(n, "%s must be a list, not %s", at, describe(n))
				return
			case len(n.Content) > maxRules:
				r.fail(n, "%s has more than %d rules", at, maxRules)
				return
			}
			// A rule may protect something, so mistakes in other clients' files count, too.
			lenient := r.lenient
			r.lenient = false
			defer func() { r.lenient = lenient }()
			for i, c := range n.Content {
				if one := r.rule(at.item(i), target(c)); one != nil {
					*dst = append(*dst, one)
				}
			}
		},
	}
}

// rule reads and compiles a rule. It reports mistakes and then returns nil.
func (r *reader) rule(at keyPath, n *yaml.Node) *rule.Rule {
	if n.Kind != yaml.MappingNode {
		r.fail(n, "%s must be a mapping with \"when\" and \"then\", not %s", at, describe(n))
		return nil
	}
	before := len(r.errs)
	one := &rule.Rule{Line: n.Line}
	seen := readTable(r, at, ruleKeys(), n, one)
	if code := seen["code"]; code != nil && one.Code == 0 && len(r.errs) == before {
		r.fail(code, "%s must not be 0", at.key("code"))
	}
	if len(r.errs) > before {
		return nil
	}
	for _, m := range one.Mistakes() {
		place := n
		for i, key := range n.Content {
			if key == seen[m.Key] {
				place = n.Content[i+1]
			}
		}
		r.fail(place, "%s %s", at.key(m.Key), m.Text)
	}
	if len(r.errs) > before {
		return nil
	}
	if err := one.Compile(); err != nil {
		r.fail(n, "%s: %s", at, err)
		return nil
	}
	return one
}

// noDefault hides the default, which is not a value of the key.
func noDefault[V any](k kind[V]) kind[V] {
	schema := k.schema
	k.schema = func(def V) object {
		s := schema(def)
		delete(s, "default")
		return s
	}
	return k
}

// ruleText reads a text whose variables are masked, as those of results.
func ruleText() kind[string] {
	k := text(noNUL)
	read := k.read
	k.read = func(r *reader, at keyPath, n *yaml.Node, dst *string) {
		read(r, at, n, dst)
		r.overridden = append(r.overridden, r.named...)
		r.named = nil
	}
	return k
}

// jsonObject reads a mapping as JSON. Variables in its texts are expanded.
func jsonObject() kind[json.RawMessage] {
	return kind[json.RawMessage]{
		schema: func(json.RawMessage) object { return object{"type": "object"} },
		read: func(r *reader, at keyPath, n *yaml.Node, dst *json.RawMessage) {
			if n.Kind != yaml.MappingNode {
				r.fail(n, "%s must be a mapping, not %s", at, describe(n))
				return
			}
			if raw, ok := r.raw(at, n); ok {
				*dst = raw
			}
		},
	}
}

// ParseRule parses one rule, a YAML or JSON mapping as in the config's rules, and compiles
// it. The error has all mistakes with their positions.
func ParseRule(text string) (*rule.Rule, error) {
	if len(text) > maxRuleText {
		return nil, fmt.Errorf("a rule is at most %s long", termtext.ExactSize(maxRuleText))
	}
	n, bad := parseYAML("rule", []byte(text))
	switch {
	case bad != nil:
		return nil, fmt.Errorf("line %d: %s", bad.Problems[0].Line, bad.Problems[0].Text)
	case n == nil || isNull(n):
		return nil, errors.New("the rule is empty; write a mapping such as {when: \"server:files\", then: delay, delay: 2s}")
	}
	r := &reader{file: "rule", env: os.LookupEnv, columns: true}
	one := r.rule(keyPath{self: "the rule"}, n)
	if len(r.errs) > 0 {
		return nil, errors.New(Texts(&Errors{Problems: sortProblems(r.errs)}))
	}
	one.Line = 0
	return one, nil
}

// ParseRules parses the rules of a command line. The error numbers several ones.
func ParseRules(texts []string) (all []*rule.Rule, err error) {
	for i, text := range texts {
		one, err := ParseRule(text)
		switch {
		case err != nil && len(texts) > 1:
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		case err != nil:
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// RuleNames returns the names that rules can refer to.
func (c *Config) RuleNames() rule.Names {
	known := rule.Names{Profiles: []string{}} // a profile that is not in the config has no clients
	for i := range c.Servers {
		known.Servers = append(known.Servers, c.Servers[i].Name)
	}
	for i := range c.Profiles {
		known.Profiles = append(known.Profiles, c.Profiles[i].Name)
	}
	return known
}

// RulesEqual reports whether two configs have the same rules in the same order.
func (c *Config) RulesEqual(o *Config) bool {
	return slices.EqualFunc(c.Rules, o.Rules, func(a, b *rule.Rule) bool { return a.String() == b.String() })
}

func (r *reader) warnRules(cfg *Config) {
	warnings := rule.Review(cfg.Rules, cfg.RuleNames(), func(i int) string {
		return fmt.Sprintf("rules[%d] on line %d", i, cfg.Rules[i].Line)
	})
	for i, text := range warnings {
		for warning := range strings.SplitSeq(text, "\n") {
			if warning != "" {
				r.warn(&yaml.Node{Line: cfg.Rules[i].Line}, "rules[%d] %s", i, warning)
			}
		}
	}
}
