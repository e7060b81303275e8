//go:build e2e || bench

package main

import (
	"fmt"
	"os"
	"sync"
	"testing"
)

// TestMain makes the test binary a helper if its first argument asks for it, as main
// does.
func TestMain(m *testing.M) {
	if do := helper(); do != nil {
		if err := do(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	dir, err := os.MkdirTemp("", "gbench")
	if err != nil {
		panic(err)
	}
	programsDir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

var programsDir string

// builtPrograms builds the programs when the first test needs them.
var builtPrograms = sync.OnceValues(func() (programs, error) { return buildPrograms(programsDir) })
