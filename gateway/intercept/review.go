package intercept

import (
	"fmt"
	"strings"

	"goblin/registry/rule"
)

// SetNames sets the names that rules can refer to, for [registry.RuleEntry.Problem].
func (g *Gate) SetNames(names rule.Names) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.names = names
	g.updateLocked()
}

// reviewLocked finds rules that never apply, or that apply to everything.
func (g *Gate) reviewLocked() {
	used := make([]*rule.Rule, len(g.rules))
	for i, e := range g.rules {
		if !e.disabled && e.left != 0 {
			used[i] = e.Rule
		}
	}
	for i, text := range rule.Review(used, g.names, func(i int) string { return fmt.Sprintf("rule %d", g.rules[i].id) }) {
		g.rules[i].problem = strings.ReplaceAll(text, "\n", "; ")
	}
}
