//go:build faults

package faults

// timed reports whether durations are tested; enough is the minimum number of measured
// calls.
const (
	timed  = true
	enough = 40
)
