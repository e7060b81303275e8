package rule

import (
	"fmt"
	"slices"
	"strings"

	"goblin/registry/query"
	"goblin/registry/rawjson"
)

// Mistake is a reason why a rule cannot be used.
type Mistake struct {
	Key  string // in the config, such as "when"
	Text string // the reason and the fix; it continues the key
}

// actionKeys are the keys that have a meaning only with some actions.
var actionKeys = []struct {
	name    string
	actions []Action
	isSet   func(*Rule) bool
}{
	{"result", []Action{Answer}, func(r *Rule) bool { return r.Result != nil }},
	{"timeout", []Action{Stop, Freeze}, func(r *Rule) bool { return r.Timeout != 0 }},
	{"default", []Action{Stop}, func(r *Rule) bool { return r.Default != "" }},
	{"code", []Action{Fail}, func(r *Rule) bool { return r.Code != 0 }},
	{"text", []Action{Stop, Deny, Answer, Fail}, func(r *Rule) bool { return r.Text != "" }},
	{"ask", []Action{Stop}, func(r *Rule) bool { return r.Ask != "" }},
	{"delay", []Action{Delay, Answer, Fail, Deny, Truncate, Stale}, func(r *Rule) bool { return r.Delay != 0 }},
}

// Keys returns the keys that have a meaning with an action, except those of all actions.
func (a Action) Keys() (names []string) {
	for _, key := range actionKeys {
		if slices.Contains(key.actions, a) {
			names = append(names, key.name)
		}
	}
	return names
}

// Mistakes returns all mistakes of a rule.
func (r *Rule) Mistakes() (all []Mistake) {
	add := adder(&all)
	all = append(all, r.whenMistakes()...)
	add(r.On != "" && r.On != OnRequest && r.On != OnAnswer, "on", "must be request or answer, not %q", r.On)
	if !slices.Contains(Actions, r.Then) {
		add(r.Then == "", "then", "is missing; set it to %s", anyOf(Actions))
		add(r.Then != "", "then", "must be %s, not %q", anyOf(Actions), r.Then)
		return all
	}
	add(r.Then == Truncate && r.On == OnRequest, "on", "must be answer, because truncate changes answers; remove it")
	for _, key := range actionKeys {
		add(key.isSet(r) && !slices.Contains(key.actions, r.Then), key.name, "has no effect with \"then: %s\", only with %s; remove it", r.Then, anyOf(key.actions))
	}
	return append(all, r.valueMistakes()...)
}

// adder returns a function that appends a mistake.
func adder(all *[]Mistake) func(is bool, key, format string, args ...any) {
	return func(is bool, key, format string, args ...any) {
		if is {
			*all = append(*all, Mistake{key, fmt.Sprintf(format, args...)})
		}
	}
}

// valueMistakes returns missing values, and wrong ones of single keys.
func (r *Rule) valueMistakes() (all []Mistake) {
	add := adder(&all)
	add(r.Then == Answer && r.Result == nil && r.Text == "", "result", "is missing; add the object to answer, such as result: {content: [{type: text, text: ok}]}, or a text")
	add(r.Result != nil && r.Text != "", "text", "has no effect beside \"result\"; remove one of them")
	add(r.Result != nil && (rawjson.Valid(r.Result) != nil || !rawjson.IsObject(r.Result)), "result", "must be a mapping")
	add(r.Then == Delay && r.Delay == 0, "delay", "is missing; add the time to wait, such as delay: 2s")
	add(r.Delay < 0 || r.Delay > maxTimeout, "delay", "must be from 0 to %s", duration(maxTimeout))
	add(r.Timeout < 0 || r.Timeout > maxTimeout, "timeout", "must be from 0 to %s", duration(maxTimeout))
	add(r.Default != "" && r.Default != DefaultDeny && r.Default != DefaultSend, "default", "must be deny or send, not %q", r.Default)
	add(r.Ask != "" && r.Ask != AskClient, "ask", "must be client, not %q", r.Ask)
	add(r.Ask != "" && r.on() == OnAnswer, "ask", "works only on requests; remove it or \"on: answer\"")
	add(r.P != nil && !(*r.P >= 0 && *r.P <= 1), "p", "must be a number from 0 to 1")
	add(r.Count != nil && (*r.Count < 1 || *r.Count > MaxCount), "count", "must be from 1 to %d", MaxCount)
	return all
}

func (r *Rule) whenMistakes() (all []Mistake) {
	if len(r.When) > maxWhen {
		return []Mistake{{"when", fmt.Sprintf("is longer than %d bytes; use several rules", maxWhen)}}
	}
	add := func(t query.Term, format string, args ...any) {
		all = append(all, Mistake{"when", fmt.Sprintf("is wrong in column %d: ", t.Column) + fmt.Sprintf(format, args...)})
	}
	known := noValues()
	for _, t := range query.Terms(r.When, known) {
		switch problem := query.Parse(t.Raw, known).Problem(); {
		case problem != "":
			add(t, "%s", problem)
		case slices.Contains(operators, t.Raw):
			add(t, "%q would be searched as a word; all terms must match, and several terms of one field are alternatives; remove it or quote it", t.Raw)
		case t.Field == "" && strings.Contains(t.Value, "*") && !strings.Contains(t.Raw, `"`):
			fix := "name:" + t.Value
			if t.Not {
				fix = "-" + fix
			}
			add(t, "%q would be searched as a word, in which * is a character; name a field, such as %s, or quote it", t.Raw, fix)
		case t.Open:
			add(t, "%s has no closing quote; add it", t.Raw)
		case t.Unfinished:
			add(t, "%q has no value and would match everything; write the value without a space, or remove it", t.Raw)
		case r.on() == OnRequest && slices.Contains(answerFields, t.Field):
			add(t, "%q needs the answer, but the rule applies to requests; add on: answer", t.Raw)
		case t.Field == "method" && !t.Not && isOfServers(t):
			add(t, "%q selects no request of clients, and rules apply only to these; remove it", t.Raw)
		}
	}
	return all
}

// operators are words of other languages for filters.
var operators = []string{"AND", "OR", "NOT", "&&", "||"}

func anyOf(all []Action) string {
	words := make([]string, len(all))
	for i, w := range all {
		words[i] = string(w)
	}
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
