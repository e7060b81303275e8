package registry

// AskerKey is the member of `_meta` in which the gateway tells a screen who asks
// a question, and why it asks there. Only the gateway sets it: what a server
// sends under that name is replaced.
const AskerKey = "goblin/asker"

// Asker is the value of [AskerKey]. Client and Call come from clients.
type Asker struct {
	Server string    `json:"server"`
	Why    AskReason `json:"why"`
	Client string    `json:"client,omitempty"` // whose call made the server ask
	Call   string    `json:"call,omitempty"`   // the tool, prompt or URI of that call; "" where it may be one of several
}

// AskReason is why a question is put to a screen.
type AskReason string

// The reasons.
const (
	AskOwnCall   AskReason = "own"       // the screen's own call made the server ask
	AskNoCall    AskReason = "none"      // no call did
	AskAmbiguous AskReason = "ambiguous" // calls of several clients may have
	AskUnable    AskReason = "unable"    // a call did, whose client cannot answer
)
