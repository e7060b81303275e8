package rule

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"goblin/registry"
	"goblin/registry/query"
	"goblin/registry/suggest"
)

// methods lists the requests of clients.
var methods = []string{
	"initialize", "server/discover", "ping", "tools/list", "tools/call", "prompts/list", "prompts/get",
	"resources/list", "resources/templates/list", "resources/read", "resources/subscribe", "resources/unsubscribe", "resources/directory/read",
	"skills/list", "skills/get", "completion/complete", "logging/setLevel", "subscriptions/listen",
	"tasks/list", "tasks/get", "tasks/result", "tasks/update", "tasks/cancel",
}

// listMethods are the methods of requests that have no server and no name.
var listMethods = []string{
	"initialize", "server/discover", "ping", "tools/list", "prompts/list", "resources/list", "resources/templates/list",
	"skills/list", "logging/setLevel", "subscriptions/listen", "tasks/list",
}

// otherMethods lists requests of servers, and a notification for all notifications.
var otherMethods = []string{"sampling/createMessage", "elicitation/create", "roots/list", "notifications/progress"}

// isOfServers reports whether a term selects no request of clients, but one of servers.
func isOfServers(t query.Term) bool {
	return strings.HasPrefix(strings.TrimPrefix(t.Value, "="), "notifications/") ||
		!selects(t.Raw, "method", methods...) && selects(t.Raw, "method", otherMethods...)
}

// Names are the names that rules can refer to. Lists that are nil are not checked.
type Names struct {
	Servers  []string
	Profiles []string
}

// Review returns the warnings about each rule, one per line: why it never applies, or that
// it applies to everything. rules are in the order of their use; nil ones are not in use. label
// names a rule in a warning about another one, such as "rule 3".
func Review(rules []*Rule, known Names, label func(i int) string) []string {
	warnings := make([]string, len(rules))
	all := make([]selection, len(rules))
	for i, r := range rules {
		if r == nil {
			continue
		}
		all[i] = newSelection(r)
		found := all[i].warnings(r, known)
		for j, first := range rules[:i] {
			if first == nil || first.P != nil || first.Count != nil || first.On != r.On || !all[j].includes(&all[i]) {
				continue
			}
			if all[i].includes(&all[j]) && first.Then != r.Then {
				found = append(found, fmt.Sprintf("contradicts %s, which selects the same and comes first, so this rule never applies; remove one of them", label(j)))
			} else {
				found = append(found, fmt.Sprintf("never applies, because %s selects the same requests first; move this rule up or remove it", label(j)))
			}
			break
		}
		warnings[i] = strings.Join(found, "\n")
	}
	return warnings
}

// selection is the text of a rule in a form that can be compared.
type selection struct {
	// anyOf has the values of which a subject must have one, by field and path.
	anyOf map[string][]query.Term
	// others are the other terms, all of which must match.
	others     map[string]bool
	restricted bool // by anything but exclusions
	methods    bool
}

func newSelection(r *Rule) selection {
	s := selection{anyOf: map[string][]query.Term{}, others: map[string]bool{}, methods: r.methods}
	for _, t := range r.parsed {
		switch {
		case strings.Trim(t.Value, "*") == "" && t.Value != "" && t.Field != "" && !t.Not:
			continue // any value
		case t.Not || t.Field == "" || t.Field == "ms" || t.Field == "size":
			s.others[t.Raw] = true
		default:
			s.anyOf[fieldOf(t)] = append(s.anyOf[fieldOf(t)], t)
		}
		s.restricted = s.restricted || !t.Not
	}
	return s
}

// fieldOf returns a term's field with its path, such as arg.options.force.
func fieldOf(t query.Term) string {
	if t.Path == "" {
		return t.Field
	}
	return t.Field + "." + t.Path
}

// includes reports whether s selects everything that b selects. It compares only texts, so
// it may return false although it does.
func (s *selection) includes(b *selection) bool {
	if !s.methods && b.methods && slices.ContainsFunc(b.anyOf["method"], func(t query.Term) bool { return selects(t.Raw, "method", alwaysPassed...) }) {
		return false
	}
	for raw := range s.others {
		if !b.others[raw] {
			return false
		}
	}
	for key, values := range s.anyOf {
		narrow := b.anyOf[key]
		if len(narrow) == 0 || slices.ContainsFunc(narrow, func(t query.Term) bool { return !covered(t, values) }) {
			return false
		}
	}
	return true
}

// covered reports whether one of the values matches everything that t matches.
func covered(t query.Term, values []query.Term) bool {
	exact, isExact := strings.CutPrefix(t.Value, "=")
	return slices.ContainsFunc(values, func(wide query.Term) bool {
		return strings.EqualFold(wide.Value, t.Value) ||
			isExact && !strings.HasPrefix(wide.Value, "=") && selects(wide.Raw, wide.Field, exact)
	})
}

// selects reports whether terms of one field match one of its values.
func selects(terms, field string, values ...string) bool {
	return selectsSubject(terms, func(yield func(*Subject)) {
		for _, value := range values {
			s := &Subject{}
			switch field {
			case "method":
				s.Record.Method = value
			case "server":
				s.Record.Server = value
			case "client":
				s.Record.Client = value
			case "profile":
				s.Record.Profile = value
			case "name":
				s.Names = []string{value}
			default:
				continue
			}
			yield(s)
		}
	})
}

func selectsSubject(terms string, subjects func(yield func(*Subject))) (found bool) {
	m := newMatcher(terms)
	subjects(func(s *Subject) {
		m.subject = s
		found = found || m.query.Matches("", time.Time{})
	})
	return found
}

func (s *selection) warnings(r *Rule, known Names) (found []string) {
	if r.P != nil && *r.P == 0 {
		found = append(found, "never applies, because p is 0")
	}
	if !s.restricted && r.P == nil && r.Count == nil && r.Then != Delay {
		what := "every " + string(r.on())
		if len(s.others) > 0 {
			what += " except a few"
		}
		found = append(found, fmt.Sprintf("matches %s, so it can make Goblin unusable; add a term such as method:tools/call to when", what))
	}
	for _, field := range []struct {
		name, what string
		values     []string
	}{
		{"method", "no request of clients that Goblin knows", methods},
		{"server", "no server of the config", known.Servers},
		{"profile", "no profile of the config", known.Profiles},
	} {
		if text := r.unmatched(field.name, field.what, field.values); text != "" {
			found = append(found, text)
		}
	}
	hints := func(yield func(*Subject)) {
		yield(&Subject{Destructive: true})
		yield(&Subject{ReadOnly: true})
		yield(&Subject{})
	}
	if terms := r.termsOf(fieldDestructive, fieldReadOnly); terms != "" && !selectsSubject(terms, hints) {
		found = append(found, fmt.Sprintf("never applies, because no tool fits %s", terms))
	}
	if text := r.wrongMethod(); text != "" && len(found) == 0 {
		found = append(found, text)
	}
	for _, t := range r.parsed {
		if len(found) == 0 && s.excludedBy(t) {
			found = append(found, fmt.Sprintf("never applies, because %s matches nothing", r.termsOf(t.Field)))
		}
	}
	return found
}

// wrongMethod explains which terms select nothing in requests of the rule's methods, or
// returns "".
func (r *Rule) wrongMethod() string {
	terms := r.termsOf("method")
	if terms == "" || !selects(terms, "method", methods...) {
		return ""
	}
	empty := func(yield func(*Subject)) { yield(&Subject{}) }
	isTargeted := slices.ContainsFunc(methods, func(m string) bool {
		return !slices.Contains(listMethods, m) && selects(terms, "method", m)
	})
	if !isTargeted && !selectsSubject(r.termsOf("server", "name"), empty) {
		return fmt.Sprintf("never applies, because requests of %s have no server and no name", terms)
	}
	if hints := r.termsOf(fieldDestructive, fieldReadOnly); !selects(terms, "method", "tools/call") && !selectsSubject(hints, empty) {
		return fmt.Sprintf("never applies, because only tools/call fits %s", hints)
	}
	return ""
}

// excludedBy reports whether a term excludes all values that the other terms of its field select.
func (s *selection) excludedBy(t query.Term) bool {
	values := s.anyOf[fieldOf(t)]
	t.Raw = strings.TrimPrefix(t.Raw, "-")
	return t.Not && len(values) > 0 && !slices.ContainsFunc(values, func(v query.Term) bool { return !covered(v, []query.Term{t}) })
}

// termsOf returns the terms of some fields, as typed.
func (r *Rule) termsOf(fields ...string) string {
	var all []string
	for _, t := range r.parsed {
		if slices.Contains(fields, t.Field) {
			all = append(all, t.Raw)
		}
	}
	return strings.Join(all, " ")
}

// unmatched explains why the terms of a field select none of its values, or returns "".
func (r *Rule) unmatched(field, what string, values []string) string {
	if values == nil {
		return ""
	}
	possible := values
	switch field {
	case "server": // Goblin's own tools, and requests without a server
		possible = slices.Concat(values, []string{registry.Local, ""})
	case "profile":
		possible = slices.Concat(values, []string{""})
	}
	for _, t := range r.parsed {
		if t.Field != field || t.Not || selects(t.Raw, field, possible...) {
			continue
		}
		text := fmt.Sprintf("%s matches %s", t.Raw, what)
		near := suggest.New(strings.Trim(t.Value, "=*"))
		for _, v := range values {
			near.Add(v, v)
		}
		if best := near.Best(); len(best) > 0 {
			text += suggest.DidYouMean(best[0])
		}
		return text
	}
	if terms := r.termsOf(field); terms != "" && !selects(terms, field, possible...) {
		return fmt.Sprintf("never applies, because %s matches %s", terms, what)
	}
	return ""
}

// UnknownNames returns the terms for names of tools and prompts, without wildcards, that
// match none of known. It skips URIs and rules for other methods.
func (r *Rule) UnknownNames(known []string) (terms []string) {
	if methods := r.termsOf("method"); methods != "" && !selects(methods, "method", "tools/call", "prompts/get") {
		return nil
	}
	for _, t := range r.parsed {
		if t.Field == "name" && !t.Not && !strings.ContainsAny(t.Value, "*:/") && !selects(t.Raw, "name", known...) {
			terms = append(terms, t.Raw)
		}
	}
	return terms
}
