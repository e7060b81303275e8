package savedcall

import (
	"encoding/json"
	"time"
)

// Answer is the answer to a call, with the facts that checks need.
type Answer struct {
	// Result or Error is the member of the JSON-RPC response. Error is an object with code
	// and message.
	Result json.RawMessage
	Error  json.RawMessage
	Time   time.Duration
	// OutputSchema and Definition are parts of the server's own list, or nil. The
	// definition is the one that pins use, before overrides and with the own name.
	OutputSchema json.RawMessage
	Definition   json.RawMessage
	// Stored is the text of the file beside the call, see [Answer.StoredDocument], or nil.
	Stored json.RawMessage
	// Redact hides the secrets of the config in a text; nil hides none.
	Redact func(string) string
}

// Outcome is the result of one check.
type Outcome struct {
	Check Check
	OK    bool
	// Text describes the check, such as `$.isError equals false`.
	Text string
	// Got describes the difference if the check failed.
	Got string
	// Diff are the differences of CheckSame, at most 20 lines.
	Diff []string
}
