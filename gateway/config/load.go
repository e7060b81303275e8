package config

import (
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

//go:embed demo.yaml
var demo []byte

// demoProgram is the variable in demo.yaml that stands for this executable.
const demoProgram = "GOBLIN_EXECUTABLE"

// Find says which file is meant: the one of the --config flag, else of
// $GOBLIN_CONFIG, else goblin/config.yaml in $XDG_CONFIG_HOME or ~/.config if
// there is one, else "" for the demo. The working directory is never searched:
// a cloned repository must not be able to run commands. A file that was named
// and cannot be read is an error, an *Errors.
func Find(flag string, getenv func(string) string) (string, error) {
	for _, named := range []struct{ path, by string }{{flag, "--config"}, {getenv("GOBLIN_CONFIG"), "$GOBLIN_CONFIG"}} {
		if named.path == "" {
			continue
		}
		if _, err := os.Stat(named.path); err != nil {
			return "", fileError(named.path, "is named by %s but cannot be read: %v", named.by, reason(err))
		}
		return named.path, nil
	}
	path := DefaultPath(getenv)
	// Lstat, so that a link that leads nowhere is told and not taken for none.
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return path, nil
}

// DefaultPath is the config of users who name none; "" without a home.
func DefaultPath(getenv func(string) string) string {
	dir := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) { // the XDG rules say to ignore it then
		home := homeOf(func(name string) (string, bool) { return getenv(name), true })
		if home == "" {
			return "" // the working directory holds no config
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "goblin", "config.yaml")
}

// homeOf returns the user's folder, or "" if it is unknown. On Windows, programs that no
// shell started have USERPROFILE only.
func homeOf(env func(string) (string, bool)) string {
	names := []string{"HOME"}
	if runtime.GOOS == "windows" {
		names = append(names, "USERPROFILE")
	}
	for _, name := range names {
		if dir, _ := env(name); filepath.IsAbs(dir) {
			return dir
		}
	}
	return ""
}

// StateFolder is where Goblin keeps what it remembers: goblin in $XDG_STATE_HOME, else in
// ~/.local/state; "" without a home.
func StateFolder(getenv func(string) string) string {
	dir := getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home := getenv("HOME")
		if !filepath.IsAbs(home) {
			home, _ = os.UserHomeDir() // what is missing is told by who needs it
		}
		if !filepath.IsAbs(home) {
			return "" // the working directory is nobody's home
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "goblin")
}

// reason is an error without the path that the message names already.
func reason(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// Load reads a configuration file, or the embedded demo if path is empty, with
// the process's own environment. The error is an *Errors.
func Load(path string) (*Config, error) {
	if path == "" {
		return loadDemo()
	}
	src, info, err := read(path)
	if err != nil {
		return nil, err
	}
	cfg, err := Parse(path, src, os.LookupEnv)
	if err == nil {
		cfg.File = info
	}
	return cfg, err
}

func loadDemo() (*Config, error) {
	const name = "the embedded demo config"
	program, err := os.Executable()
	if err != nil {
		return nil, fileError(name, "cannot find this program: %v", err)
	}
	cfg, err := Parse(name, demo, func(v string) (string, bool) { return program, v == demoProgram })
	if err != nil {
		return nil, err
	}
	cfg.Path, cfg.Demo = "", true
	return cfg, nil
}
