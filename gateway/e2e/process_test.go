//go:build e2e

package e2e_test

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"goblin/gateway/e2e"
)

func TestAProgramThatWasWrittenRunsWhateverStartsMeanwhile(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for n := range 100 {
				path := filepath.Join(dir, strconv.Itoa(i)+"-"+strconv.Itoa(n))
				e2e.WriteProgram(t, path, "#!/bin/sh\n")
				assert.NoError(t, exec.Command(path).Run())
			}
		})
	}
	all.Wait()
}
