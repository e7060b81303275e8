//go:build race

package registry

import (
	"flag"
	_ "pgregory.net/rapid" // its flags come first
)

// The race detector makes each draw ten times slower, and finds the same races in all of
// them.
func init() {
	if err := flag.Set("rapid.checks", "25"); err != nil {
		panic(err)
	}
}
