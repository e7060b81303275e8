//go:build faults

package faults

// timed asks how long something takes, too, and enough is how many calls tell.
const (
	timed  = true
	enough = 40
)
