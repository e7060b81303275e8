package childproc

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// LookPath finds a command in the PATH that the child will have.
func LookPath(command string, env []string) (string, error) {
	if filepath.Base(command) != command {
		return exec.LookPath(command)
	}
	for _, dir := range filepath.SplitList(LookupEnv(env, "PATH", runtime.GOOS == "windows")) {
		if !filepath.IsAbs(dir) {
			continue // the working directory must not decide what runs
		}
		if path, err := exec.LookPath(filepath.Join(dir, command)); err == nil {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

// LookupEnv returns a variable of an environment, the last one with that name; "" for none. With fold, the
// case of the name does not matter, as on Windows.
func LookupEnv(env []string, name string, fold bool) (value string) {
	for _, e := range env {
		n, v, ok := strings.Cut(e, "=")
		if ok && (n == name || fold && strings.EqualFold(n, name)) {
			value = v
		}
	}
	return value
}

// StripProgram takes the path out of an error of os/exec, which repeats it.
func StripProgram(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}
