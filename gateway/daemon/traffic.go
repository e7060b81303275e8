package daemon

import "goblin/registry/recording"

// Limits of a [TrafficAnswer]. The last record may exceed the limit of bodies.
const (
	MaxTraffic       = 1_000   // records
	MaxTrafficBodies = 1 << 20 // bytes of their bodies
)

// TrafficQuery asks for requests and notifications.
type TrafficQuery struct {
	From   uint64 `json:"from,omitempty"`   // number of the first record in the journal; 0: the oldest
	Bodies bool   `json:"bodies,omitempty"` // with params and answers
	Wait   bool   `json:"wait,omitempty"`   // wait for a record, for a limited time
	Head   bool   `json:"head,omitempty"`   // with the lines that begin a recording
	// Running adds the requests in flight to an answer without More.
	Running bool `json:"running,omitempty"`
}

// TrafficAnswer has records of the traffic journal, oldest first, at most [MaxTraffic]
// with [MaxTrafficBodies].
type TrafficAnswer struct {
	Lines []TrafficLine `json:"lines"`
	// Head contains the header, servers with their lists, and sessions.
	Head []recording.Line `json:"head,omitempty"`
	// Running contains the requests in flight if the query wants them.
	Running []TrafficLine `json:"running,omitempty"`
	Next    uint64        `json:"next"`             // From for the next query
	More    bool          `json:"more,omitempty"`   // the journal has records from Next on
	Dropped uint64        `json:"missed,omitempty"` // lower bound of the lost records from From on
}

// TrafficLine is a line as in recordings. Error is the error message of a failed request.
type TrafficLine struct {
	recording.Line
	// CutParams and CutAnswer are the beginnings of bodies that are not recorded
	// completely. They are only set if the complete ones are missing.
	CutParams []byte `json:"cutParams,omitempty"`
	CutAnswer []byte `json:"cutAnswer,omitempty"`
}
