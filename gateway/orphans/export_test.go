//go:build linux || darwin

package orphans

import "time"

func init() { grace = 300 * time.Millisecond }
