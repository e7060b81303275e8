package registry

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// RuleState describes the rules that stop, change or answer requests. It is immutable.
type RuleState struct {
	Rules     []RuleEntry
	Stopped   []StoppedRequest // the oldest first
	Approvals []CallApproval
}

// Origins of rules. The UI's come first, then those of the command line and the config.
const (
	RuleFromUI     = "UI"
	RuleFromFlag   = "--rule"
	RuleFromConfig = "config"
)

// RuleEntry is one rule.
type RuleEntry struct {
	ID      uint64 // in this process
	Origin  string // one of the constants
	Line    int    // in the config, or 0
	Text    string // the rule as a YAML mapping in one line, as in the config
	When    string
	On      string // "request" or "answer"
	Then    string // "stop", "delay 2s", "answer", …
	Enabled bool
	Hits    uint64
	// Left is the number of remaining hits of a rule with a count, or -1.
	Left int
	// Problem explains why the rule cannot match, or that it matches everything, or is "".
	Problem string
}

// StoppedRequest is a request or an answer that waits for the user.
type StoppedRequest struct {
	ID      uint64
	Rule    uint64 // its ID; the rule may be gone
	When    string // of the rule
	On      string // "request" or "answer"
	Since   time.Time
	Until   time.Time // then Default applies
	Default string    // "deny" or "send"
	Client  string
	Session string
	Server  string
	Method  string
	Name    string // as listed
	Number  uint64 // of the request, see [TrafficRecord]
	// Params and Answer are complete and not masked. Answer is the result, or with IsError
	// an error object; it is nil for requests.
	Params, Answer json.RawMessage
	IsError        bool
	// Editable reports whether the user may change Params.
	Editable bool
	// AsksClient reports that the client's user is asked, too.
	AsksClient bool
	Events     []RuleEvent
}

// RuleEvent is a step of a request that a rule changed.
type RuleEvent struct {
	Time time.Time `json:"time"`
	Rule uint64    `json:"rule,omitempty"` // RuleEntry.ID
	// Text describes the step, such as "stopped" or "delayed 2 s". It may quote the client
	// or the server. Secrets are masked.
	Text string `json:"text"`
	// Quotes reports that Text contains values of the params or the answer.
	Quotes bool `json:"quotes,omitempty"`
}

// WithoutQuotes returns the steps whose texts contain nothing of bodies.
func WithoutQuotes(events []RuleEvent) []RuleEvent {
	return slices.DeleteFunc(slices.Clone(events), func(e RuleEvent) bool { return e.Quotes })
}

// RuleSummary returns the steps as one text, such as "rule 3: stopped, sent by the user". It
// is untrusted.
func RuleSummary(events []RuleEvent) string {
	text := ""
	for i, e := range events {
		switch {
		case i > 0 && e.Rule == events[i-1].Rule:
			text += ", " + e.Text
		case i > 0:
			text += fmt.Sprintf("; rule %d: %s", e.Rule, e.Text)
		default:
			text = fmt.Sprintf("rule %d: %s", e.Rule, e.Text)
		}
	}
	return text
}

// CallApproval lets calls of a client pass a rule that stops them.
type CallApproval struct {
	ID     string `json:"id"`   // depends on all members except Since
	When   string `json:"when"` // of the rule
	Client string `json:"client"`
	Server string `json:"server"`
	Kind   string `json:"kind"` // "tool", "prompt" or "resource"
	Name   string `json:"name"` // the server's own
	// Session is set for approvals until that session ends.
	Session string `json:"session,omitempty"`
	// Definition is the digest that the definition must have, or "".
	Definition string    `json:"definition,omitempty"`
	Since      time.Time `json:"since"`
}

// Actions of [Decision].
const (
	DecideSend   = "send"
	DecideDeny   = "deny"
	DecideAnswer = "answer"
	DecideFail   = "fail"
)

// Values of Decision.Remember.
const (
	RememberTool       = "tool"       // for calls of this tool by this client
	RememberSession    = "session"    // until the client's session ends
	RememberDefinition = "definition" // until the definition changes
)

// Decision is the user's answer to a [StoppedRequest].
type Decision struct {
	Action string
	// Params replace those of the request with DecideSend; nil keeps them. The name must
	// stay the same.
	Params json.RawMessage
	// Result answers with DecideAnswer. With DecideSend it replaces a stopped answer; nil
	// keeps it.
	Result json.RawMessage
	Text   string // for the model with DecideDeny, the message with DecideFail
	Code   int    // with DecideFail; 0 means -32603
	// Remember lets later calls pass the rule, with DecideSend of an unchanged request.
	Remember string
}

// Rules returns the state of the rules, or an empty one.
func (r *Registry) Rules() *RuleState {
	if s := r.ruleState.Load(); s != nil {
		return s
	}
	return &RuleState{}
}

// SetRules replaces the state of the rules.
func (r *Registry) SetRules(s *RuleState) {
	r.ruleState.Store(s)
	r.feed.publish(Rules)
}
