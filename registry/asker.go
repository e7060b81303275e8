package registry

// AskerKey is the `_meta` key with the origin of a request from a server, for the UI. The
// gateway replaces any value that a server sends under this key.
const AskerKey = "goblin/asker"

// Asker is the value of [AskerKey]. Client and Call are untrusted text from clients.
type Asker struct {
	Server string    `json:"server"`
	Why    AskReason `json:"why"`
	Client string    `json:"client,omitempty"` // client of the call that caused the request
	Call   string    `json:"call,omitempty"`   // tool, prompt or URI of that call; "" if ambiguous
}

// AskReason is the reason for sending a request from a server to a UI.
type AskReason string

// Reasons of requests from servers.
const (
	AskOwnCall   AskReason = "own"       // the UI's own call caused the request
	AskNoCall    AskReason = "none"      // no call caused it
	AskAmbiguous AskReason = "ambiguous" // calls of several clients may have caused it
	AskUnable    AskReason = "unable"    // the calling client cannot answer
)
