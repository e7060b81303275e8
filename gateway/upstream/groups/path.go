package groups

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// LookPath finds a command in the PATH that the child will have.
func LookPath(command string, env []string) (string, error) {
	if filepath.Base(command) != command {
		return exec.LookPath(command)
	}
	for _, e := range env {
		list, ok := strings.CutPrefix(e, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			if !filepath.IsAbs(dir) {
				continue // the working directory must not decide what runs
			}
			if path, err := exec.LookPath(filepath.Join(dir, command)); err == nil {
				return path, nil
			}
		}
	}
	return "", exec.ErrNotFound
}

// Plain takes the path out of an error of os/exec, which repeats it.
func Plain(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
