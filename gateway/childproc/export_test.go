//go:build linux || darwin

package childproc

import "time"

func init() { grace = 300 * time.Millisecond }
