package report

import "time"

// Recording describes a running recording, or one that an error stopped.
type Recording struct {
	Folder  string    `json:"folder"`
	File    string    `json:"file,omitempty"` // the current one
	Bytes   int64     `json:"bytes"`          // of the folder
	Dropped int       `json:"dropped"`        // records that were not written
	Since   time.Time `json:"since"`
	Error   string    `json:"error,omitempty"` // why it stopped
}
