//go:build !linux

package bench

import "time"

func cpu(int) time.Duration { return 0 }
func resident(int) int      { return 0 }
