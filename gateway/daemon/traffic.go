package daemon

import "goblin/registry/recording"

// TrafficQuery asks for requests and notifications.
type TrafficQuery struct {
	From   uint64 `json:"from,omitempty"`   // number of the first record in the journal; 0: the oldest
	Bodies bool   `json:"bodies,omitempty"` // with params and answers
	Wait   bool   `json:"wait,omitempty"`   // wait for a record, for a limited time
	Head   bool   `json:"head,omitempty"`   // with the lines that begin a recording
}

// TrafficAnswer has the records of the traffic journal, oldest first.
type TrafficAnswer struct {
	Lines []TrafficLine `json:"lines"`
	// Head contains the header, servers with their lists, and sessions.
	Head []recording.Line `json:"head,omitempty"`
	// Running contains the requests in flight if From was 0.
	Running []TrafficLine `json:"running,omitempty"`
	Next    uint64        `json:"next"`             // From for the next query
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
