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

const demoProgram = "GOBLIN_EXECUTABLE"

// Find returns the path of the config: the flag, then $GOBLIN_CONFIG, then an existing
// [DefaultPath], then "" for the demo. It never searches the working directory: a cloned
// repository must not be able to run commands. If a named file cannot be read, it returns
// an *Errors.
func Find(flag string, getenv func(string) string) (string, error) {
	for _, named := range []struct{ path, by string }{{flag, "--config"}, {getenv("GOBLIN_CONFIG"), "$GOBLIN_CONFIG"}} {
		if named.path == "" {
			continue
		}
		if _, err := os.Stat(named.path); err != nil {
			return "", fileError(named.path, "cannot read the file that %s names: %v", named.by, reason(err))
		}
		return named.path, nil
	}
	path := DefaultPath(getenv)
	// Unlike Stat, Lstat finds a broken link, which must not count as a missing file.
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return path, nil
}

// DefaultPath returns goblin/config.yaml in $XDG_CONFIG_HOME or ~/.config, or "" without
// a home directory.
func DefaultPath(getenv func(string) string) string {
	dir := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) { // the XDG specification says to ignore it then
		home := homeOf(func(name string) (string, bool) { return getenv(name), true })
		if home == "" {
			return "" // never the working directory
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "goblin", "config.yaml")
}

// homeOf uses USERPROFILE on Windows for programs that no shell started.
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

// StateFolder returns goblin in $XDG_STATE_HOME or ~/.local/state, or "" without a home
// directory.
func StateFolder(getenv func(string) string) string {
	dir := getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home := getenv("HOME")
		if !filepath.IsAbs(home) {
			home, _ = os.UserHomeDir() // the caller reports a missing home
		}
		if !filepath.IsAbs(home) {
			return "" // never the working directory
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "goblin")
}

// reason returns an error without its path, which the message already names.
func reason(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// Load reads a configuration file with the environment of this process, or the embedded
// demo if path is empty. The error is an *Errors.
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
		if runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0 {
			cfg.Warnings = append(cfg.Warnings, Problem{File: path, Text: "all users of this machine can change it and so run programs as you; run chmod o-w on it"})
		}
	}
	return cfg, err
}

// withProgram returns env with this program as demoProgram, unless env has one. A copy of
// the demo's config then works.
func withProgram(env func(string) (string, bool)) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := env(name)
		if program, err := os.Executable(); !ok && name == demoProgram && err == nil {
			return program, true
		}
		return value, ok
	}
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
