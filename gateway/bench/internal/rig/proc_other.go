//go:build !linux

package rig

import "time"

// CPU is 0 where it is not known.
func CPU(int) time.Duration { return 0 }

// Resident is 0 where it is not known.
func Resident(int) int { return 0 }
