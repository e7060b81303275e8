package childproc

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// LookPath finds a command in the child's PATH.
func LookPath(command string, env []string) (string, error) {
	if filepath.Base(command) != command {
		return exec.LookPath(command)
	}
	for _, dir := range filepath.SplitList(LookupEnv(env, "PATH", runtime.GOOS == "windows")) {
		if !filepath.IsAbs(dir) {
			continue // the working directory must not choose programs
		}
		if path, err := exec.LookPath(filepath.Join(dir, command)); err == nil {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

// LookupEnv returns the last variable with a name in an environment, or "". fold ignores
// case, as Windows does.
func LookupEnv(env []string, name string, fold bool) (value string) {
	for _, e := range env {
		n, v, ok := strings.Cut(e, "=")
		if ok && (n == name || fold && strings.EqualFold(n, name)) {
			value = v
		}
	}
	return value
}

// StripProgram removes the path from an error of os/exec, for messages that already name
// it.
func StripProgram(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}
