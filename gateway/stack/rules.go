package stack

import (
	"fmt"
	"slices"

	"goblin/gateway/config"
	"goblin/registry"
	"goblin/registry/rule"
)

// applyRules uses the rules of a config, followed by old ones that it does not have.
func (i *Stack) applyRules(cfg *config.Config, old ...*rule.Rule) {
	rules := slices.Clone(cfg.Rules)
	for _, r := range old {
		if !slices.ContainsFunc(cfg.Rules, func(n *rule.Rule) bool { return n.String() == r.String() }) {
			rules = append(rules, r)
		}
	}
	i.gateway.Rules.SetNames(cfg.RuleNames())
	i.gateway.Rules.Set(registry.RuleFromConfig, rules)
}

// ruleWarnings describes rules that never apply or that apply to everything.
func (i *Stack) ruleWarnings() (warnings []config.Problem) {
	for _, e := range i.registry.Rules().Rules {
		if e.Problem == "" {
			continue
		}
		w := config.Problem{File: e.Origin, Text: fmt.Sprintf("rule %d %s", e.ID, e.Problem)}
		if e.Origin == registry.RuleFromConfig {
			w.File, w.Line = i.o.Config.Path, e.Line
		}
		warnings = append(warnings, w)
	}
	return warnings
}

// AddRule adds a rule of the UI, as in the config, before all others and returns its id.
func (i *Stack) AddRule(text string) (uint64, error) {
	r, err := config.ParseRule(text)
	if err != nil {
		return 0, err
	}
	return i.gateway.Rules.Add(r)
}

// ChangeRule replaces a rule of the UI.
func (i *Stack) ChangeRule(id uint64, text string) error {
	r, err := config.ParseRule(text)
	if err != nil {
		return err
	}
	return i.gateway.Rules.Change(id, r)
}

// SetRuleEnabled enables or disables a rule until this process ends.
func (i *Stack) SetRuleEnabled(id uint64, on bool) error { return i.gateway.Rules.SetEnabled(id, on) }

// RemoveRule removes a rule of the UI.
func (i *Stack) RemoveRule(id uint64) error { return i.gateway.Rules.Remove(id) }

// RevokeApproval removes a remembered approval of [registry.RuleState].
func (i *Stack) RevokeApproval(id string) error { return i.gateway.Rules.Revoke(id) }

func (i *Stack) callApprovalsChanged() {
	i.report(&i.callsError, i.gateway.Rules.RefreshApprovals(), "approvals")
}

// DecideStop decides about a stopped request.
func (i *Stack) DecideStop(id uint64, d registry.Decision) error {
	return i.gateway.Rules.Decide(id, d)
}

// Redact hides the config's secrets in a text.
func (i *Stack) Redact(text string) string { return i.o.Mask.String(text) }
