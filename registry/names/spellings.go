package names

import "sync"

// Clients keep names, in permissions and in what was said, longer than a config
// keeps its max_name. So a tool is also understood by the names that it would be
// listed under with another one. Who has such a name follows from the rules for
// names of that length, as it does for listed names.

// RuleSet are the rules for names of other lengths, made when they are wanted.
type RuleSet struct {
	servers []string // in the config's order

	mu    sync.Mutex
	rules map[int]map[string]*Rule // by the length of names, then by server
}

// NewRuleSet has the rules of the configured servers, in the config's order.
func NewRuleSet(servers []string) *RuleSet {
	return &RuleSet{servers: servers, rules: map[int]map[string]*Rule{}}
}

// forLength returns the rules for listed names of at most n bytes.
func (s *RuleSet) forLength(most int) map[string]*Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rules[most] == nil {
		s.rules[most] = Rules(s.servers, most)
	}
	return s.rules[most]
}

// ForName returns the rules that can have led to a name: a name that was cut is as
// long as names may be, and one that was not stands the same wherever it fits.
func (s *RuleSet) ForName(name string) []map[string]*Rule {
	if len(name) > MaxNameLen {
		return nil
	}
	return []map[string]*Rule{s.forLength(max(len(name), MinNameLen)), s.forLength(MaxNameLen)}
}
