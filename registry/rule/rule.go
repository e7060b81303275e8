// Package rule defines the rules that stop, change or answer clients' requests.
//
// A [Rule] selects requests or answers by a text in the language of package query. Call
// [Rule.Compile] once before its use; then a rule is immutable and safe for concurrent
// use. A rule with any mistake does not compile, so that it is never ignored.
package rule

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"goblin/registry/query"
	"goblin/registry/rawjson"
	"goblin/registry/termtext"
)

// On is the part of an exchange that a rule applies to.
type On string

// Values of [On].
const (
	OnRequest On = "request"
	OnAnswer  On = "answer"
)

// Action is the effect of a rule.
type Action string

// Actions. Truncate needs an answer; the others work on both.
const (
	Stop     Action = "stop"     // waits for the user
	Deny     Action = "deny"     // answers with the error DENIED
	Answer   Action = "answer"   // answers with Result or Text
	Delay    Action = "delay"    // waits for Delay
	Fail     Action = "fail"     // answers with a JSON-RPC error
	Drop     Action = "drop"     // never answers
	Freeze   Action = "freeze"   // waits until the rule is disabled or removed
	Truncate Action = "truncate" // sends the first half of the answer
	Stale    Action = "stale"    // repeats the client's previous answer to this request
)

// Actions lists all actions.
var Actions = []Action{Stop, Deny, Answer, Delay, Fail, Drop, Freeze, Truncate, Stale}

// Values of Rule.Default.
const (
	DefaultDeny = "deny"
	DefaultSend = "send"
)

// AskClient is the value of Rule.Ask that asks the client's user by elicitation.
const AskClient = "client"

// DefaultTimeout is the time of a stop. SDK clients give up after 60 seconds.
const DefaultTimeout = 50 * time.Second

// Limits of a rule.
const (
	maxTimeout = 24 * time.Hour // of Timeout and Delay
	maxWhen    = 4096           // bytes
	MaxCount   = 100_000_000
)

// Rule is one rule. Members that YAML omits are zero.
type Rule struct {
	When    string // "" selects everything
	On      On     // "" means the natural one of the action
	Then    Action
	Text    string          // for the model, the error's message, or with Answer the content
	Result  json.RawMessage // with Answer, unless Text is set
	Code    int             // of the JSON-RPC error, with Fail; 0 means -32603
	Delay   time.Duration   // with Delay; with others a wait before them
	Timeout time.Duration   // with Stop; 0 means DefaultTimeout. With Freeze: 0 means an hour
	Default string          // with Stop; "" means DefaultDeny
	Ask     string          // with Stop: AskClient or ""
	P       *float64        // probability; nil means 1
	Count   *int            // number of hits until the rule ends; nil means no limit

	Line int // in the config, or 0

	parsed   []query.Term
	methods  bool      // the rule names a method
	hints    bool      // the rule reads hints of tools
	matchers sync.Pool // of *matcher
}

// Compile prepares the rule and sets On. The error contains all mistakes.
func (r *Rule) Compile() error {
	if wrong := r.Mistakes(); len(wrong) > 0 {
		texts := make([]string, len(wrong))
		for i, m := range wrong {
			texts[i] = m.Key + " " + m.Text
		}
		return errors.New(strings.Join(texts, "; "))
	}
	r.On = r.on()
	r.parsed = query.Terms(r.When, noValues())
	for _, t := range r.parsed {
		r.methods = r.methods || t.Field == "method" && !t.Not
		r.hints = r.hints || t.Field == fieldDestructive || t.Field == fieldReadOnly
	}
	r.matchers.New = func() any { return newMatcher(r.When) }
	return nil
}

// on returns the part that the rule applies to.
func (r *Rule) on() On {
	switch {
	case r.On != "":
		return r.On
	case r.Then == Truncate:
		return OnAnswer
	}
	return OnRequest
}

// HasHints reports whether the rule has terms about hints of tools.
func (r *Rule) HasHints() bool { return r.hints }

// Describe returns the action in a few words, such as "delay 2 s".
func (r *Rule) Describe() string {
	switch {
	case r.Then == Delay:
		return "delay " + termtext.Duration(r.Delay)
	case r.Then == Fail && r.Code != 0:
		return "fail " + strconv.Itoa(r.Code)
	}
	return string(r.Then)
}

// String returns the rule as a YAML mapping in one line, as in the config. Its parts are
// in a fixed order, so equal rules have equal texts.
func (r *Rule) String() string {
	parts := []string{"when: " + quote(r.When)}
	add := func(is bool, key, value string) {
		if is {
			parts = append(parts, key+": "+value)
		}
	}
	natural := Rule{Then: r.Then}
	add(r.on() != natural.on(), "on", string(r.On))
	add(true, "then", string(r.Then))
	add(r.Text != "", "text", quote(r.Text))
	if r.Result != nil {
		add(true, "result", flow(r.Result))
	}
	add(r.Code != 0, "code", strconv.Itoa(r.Code))
	add(r.Delay != 0, "delay", duration(r.Delay))
	add(r.Timeout != 0, "timeout", duration(r.Timeout))
	add(r.Default != "", "default", r.Default)
	add(r.Ask != "", "ask", r.Ask)
	if r.P != nil {
		add(true, "p", strconv.FormatFloat(*r.P, 'f', -1, 64))
	}
	if r.Count != nil {
		add(true, "count", strconv.Itoa(*r.Count))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// quote returns a text in YAML's double quotes, whose escapes include Go's. A "${" in it
// does not begin a variable.
func quote(s string) string { return strconv.Quote(strings.ReplaceAll(s, "${", "$${")) }

// flow returns JSON as YAML, which lacks some of JSON's escapes.
func flow(v []byte) string {
	var parts []string
	switch {
	case rawjson.IsObject(v):
		for key, value := range rawjson.Members(v) {
			parts = append(parts, strconv.Quote(string(key.Name()))+": "+flow(value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case rawjson.IsArray(v):
		for value := range rawjson.Elements(v) {
			parts = append(parts, flow(value))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	if s, ok := rawjson.String(v); ok {
		return quote(s)
	}
	return string(v)
}

// duration returns a duration without zero units, such as 1m.
func duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
