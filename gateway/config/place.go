package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"goblin/gateway/state"
)

// variableNames matches the name after each "${", including names in defaults. A "$${" is
// a literal.
var variableNames = pattern(`\$?\$\{([A-Za-z_][A-Za-z0-9_]*)`)

// FileID returns the identity of a configuration file as a hexadecimal SHA-256. It covers
// the path (see [Canonical]) and the values of set variables in the file, from the
// environment or env_file. The demo, path "", depends on neither. variables maps each set
// variable to a hash of its value that is specific to this file.
//
// All processes that start or look for the daemon of a file must get the same result.
// Therefore only variable names in the text count; edits of settings and mistakes don't.
// The hashes reveal nothing about values except equality. env is usually os.LookupEnv.
// The error is an *Errors: the file cannot be read.
func FileID(path string, env func(string) (string, bool)) (hash string, variables map[string]string, err error) {
	if path == "" {
		return digest([]byte("demo")), nil, nil
	}
	full, err := Canonical(path)
	if err != nil {
		return "", nil, err
	}
	src, _, err := read(path)
	if err != nil {
		return "", nil, err
	}
	env = withEnvFile(path, src, env)
	variables = make(map[string]string)
	var names []string
	for _, m := range variableNames().FindAllSubmatch(src, -1) {
		if m[0][1] == '{' {
			names = append(names, string(m[1]))
		}
	}
	slices.Sort(names)
	key := fmt.Appendf(nil, "file %q", full)
	for _, name := range slices.Compact(names) {
		// Unset variables don't count. Mentioning one must not separate the file from its
		// daemon.
		if value, ok := env(name); ok {
			key = fmt.Appendf(key, " %s=%q", name, value)
			variables[name] = digest(fmt.Appendf(nil, "file %q %s=%q", full, name, value))
		}
	}
	return digest(key), variables, nil
}

// Canonical returns the absolute path of a file with the symbolic links of its directory
// resolved. A link at the file itself stays: deployments and dotfile managers change its
// target to switch versions.
func Canonical(path string) (string, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return "", fileError(path, "has no absolute path: %v", err)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(full))
	if err != nil {
		return "", fileError(path, "cannot be read: %v", reason(err))
	}
	return filepath.Join(dir, filepath.Base(full)), nil
}

func digest(key []byte) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:])
}

// read returns up to one byte more than a configuration may have.
func read(path string) ([]byte, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0 {
		// Opening a pipe blocks until a writer opens it, and a file watcher reads the
		// file repeatedly.
		return nil, nil, fileError(path, "is a pipe or a socket; the config must be a regular file")
	}
	switch {
	case err != nil:
		return nil, nil, fileError(path, "cannot be read: %v", reason(err))
	case info.IsDir():
		return nil, nil, fileError(path, "cannot be read: is a directory")
	case isNullDevice(info):
		return nil, info, nil
	}
	f, info, err := state.Open(path) // info first, so that later writes are noticed
	if err != nil {
		return nil, nil, fileError(path, "cannot be read: %v", reason(err))
	}
	defer func() { _ = f.Close() }() // read only
	src, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, nil, fileError(path, "cannot be read: %v", reason(err))
	}
	return src, info, nil
}

// isNullDevice reports whether a file is the null device, which counts as an empty
// config.
func isNullDevice(info fs.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(info, null)
}
