package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Program returns the path of this program as it was called. A package manager's link
// outlives the file that it points to.
func Program() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	called, err := exec.LookPath(os.Args[0])
	if err == nil {
		called, err = filepath.Abs(called)
	}
	if err != nil || !sameFile(called, exe) {
		return exe, nil
	}
	return called, nil
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
