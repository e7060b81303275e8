//go:build !faults

package faults

const (
	timed  = false
	enough = 5
)
