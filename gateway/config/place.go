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

// variableNames finds the variables of a text: the name after each "${", those in
// defaults included. A "$${" is a literal.
var variableNames = pattern(`\$?\$\{([A-Za-z_][A-Za-z0-9_]*)`)

// FileID is the identity of a configuration file as a hexadecimal SHA-256: its
// path (see [Canonical]) and the variables of the environment, or of its env_file,
// that it names, as far as they are set. "" stands for the demo, which depends on
// neither. The variables that are set come with a hash of their values, which
// another file's do not share.
//
// Everybody who starts or looks for the daemon of a file must come to the same
// answer, whatever happened to the text since: only the names of variables are
// looked for in it, so settings and even mistakes do not count. Values enter
// the hash, which tells nothing about them but equality. env is usually
// os.LookupEnv. The error is an *Errors: the file cannot be read.
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
		// One that is not set counts for nothing, so that to name it does not
		// part the file from its daemon.
		if value, ok := env(name); ok {
			key = fmt.Appendf(key, " %s=%q", name, value)
			variables[name] = digest(fmt.Appendf(nil, "file %q %s=%q", full, name, value))
		}
	}
	return digest(key), variables, nil
}

// Canonical is the absolute path of a file, with the symbolic links of its folder
// resolved. One in the place of the file itself is not: deployments and dotfile
// managers point it elsewhere to change what stands there.
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

// read reads a file, or one byte more than a configuration may have.
func read(path string) ([]byte, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0 {
		// To open one would wait for a writer, and who follows the file reads it again and again.
		return nil, nil, fileError(path, "is a pipe or a socket; the config has to be a file")
	}
	switch {
	case err != nil:
		return nil, nil, fileError(path, "cannot be read: %v", reason(err))
	case info.IsDir():
		return nil, nil, fileError(path, "cannot be read: is a directory")
	case isNullDevice(info):
		return nil, info, nil
	}
	f, info, err := state.Open(path) // info first, so that what is written meanwhile differs
	if err != nil {
		return nil, nil, fileError(path, "cannot be read: %v", reason(err))
	}
	defer func() { _ = f.Close() }() // only read
	src, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, nil, fileError(path, "cannot be read: %v", reason(err))
	}
	return src, info, nil
}

// isNullDevice reports whether a file is the null device, which is an empty config.
func isNullDevice(info fs.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(info, null)
}
