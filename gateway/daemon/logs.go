package daemon

import "time"

// MaxLogs is the maximum number of records in a [LogAnswer].
const MaxLogs = 10_000

// LogQuery asks for log records.
type LogQuery struct {
	Server string `json:"server,omitempty"` // "" for all; "goblin" for Goblin's own
	From   uint64 `json:"from,omitempty"`   // number of the first record; 0: only the last ones
	Last   int    `json:"last,omitempty"`   // number of last records, if From is 0
	Wait   bool   `json:"wait,omitempty"`   // wait for a record, for a limited time
}

// LogAnswer has log records, at most [MaxLogs].
type LogAnswer struct {
	Records []LogRecord `json:"records"`
	Next    uint64      `json:"next"`             // From for the next query
	Dropped uint64      `json:"missed,omitempty"` // lost records from From on
}

// LogRecord is a line of a server's stderr, of a server's log messages or of Goblin's log.
type LogRecord struct {
	Time    time.Time `json:"time"`
	Level   string    `json:"level"`
	Source  string    `json:"source"` // stderr, message, goblin or event
	Server  string    `json:"serverId,omitempty"`
	Session string    `json:"session,omitempty"`
	Text    string    `json:"text"`
}
