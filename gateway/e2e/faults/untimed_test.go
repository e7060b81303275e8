//go:build e2e && !faults

package faults

const (
	timed  = false
	enough = 5
)
