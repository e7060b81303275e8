package names

import "sync"

// Clients store names in permissions and conversations, and max_name may change. So tools
// are also found by their names under other limits, whose rules decide the owner.

// RuleSet creates the rules for other name lengths on demand. It is safe for concurrent
// use.
type RuleSet struct {
	servers []string // in the config's order

	mu    sync.Mutex
	rules map[int]map[string]*Rule // by maximum length, then by server
}

// NewRuleSet returns a set for the configured servers, in the config's order.
func NewRuleSet(servers []string) *RuleSet {
	return &RuleSet{servers: servers, rules: map[int]map[string]*Rule{}}
}

func (s *RuleSet) forLength(most int) map[string]*Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rules[most] == nil {
		s.rules[most] = Rules(s.servers, most)
	}
	return s.rules[most]
}

// ForName returns the rules that can produce a name. A cut name is exactly as long as the
// limit; an uncut one is the same under all limits.
func (s *RuleSet) ForName(name string) []map[string]*Rule {
	if len(name) > MaxNameLen {
		return nil
	}
	return []map[string]*Rule{s.forLength(max(len(name), MinNameLen)), s.forLength(MaxNameLen)}
}
