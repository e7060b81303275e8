package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"goblin/registry/termtext"
)

// maxSocketPath is the maximum length of a socket's path in bytes. The kernel's field has
// 104 (macOS) or 108 (Linux) with a NUL.
const maxSocketPath = 99

// Endpoint is the place of a daemon of one config and one version of Goblin.
type Endpoint struct {
	Dir     string // owned by this user, mode 0700
	Socket  string // listening socket, mode 0600
	Lock    string // locked while the daemon runs; never removed
	Log     string // standard error of a detached daemon
	Version string // daemons refuse other versions
	// Build identifies a development build in the handshake. It is "" for a release. See
	// [BuildError].
	Build  string
	Config string // path of the config, for [FindRunning]; "" is the demo
	// Variables are the config's variables that are set, with hashes of their values.
	Variables map[string]string
	// Profile is the profile of an MCP connection, or "".
	Profile string
}

// Find returns the endpoint for a config's hash and a version, and creates its directory.
// That is goblin in $XDG_RUNTIME_DIR or /run/user/<uid>, otherwise /tmp/goblin-<uid>. It
// refuses a symbolic link and a directory that belongs or is open to other users: they
// could listen there.
func Find(hash, version string, getenv func(string) string) (Endpoint, error) {
	sum := sha256.Sum256([]byte(hash + "\x00" + version))
	name := hex.EncodeToString(sum[:8])
	var tooLong error
	for _, dir := range folders(getenv) {
		p := Endpoint{
			Dir:     dir,
			Socket:  filepath.Join(dir, name+".sock"),
			Lock:    filepath.Join(dir, name+".lock"),
			Log:     filepath.Join(dir, name+".log"),
			Version: version,
		}
		if len(p.Socket) > maxSocketPath {
			tooLong = fmt.Errorf("socket path %s is longer than %d bytes; set XDG_RUNTIME_DIR to a shorter path", p.Socket, maxSocketPath)
			continue
		}
		if err := ensurePrivate(dir); err != nil {
			return Endpoint{}, err
		}
		return p, nil
	}
	return Endpoint{}, tooLong
}

// The parents of users' directories. Tests replace them.
var (
	runtimeBase   = "/run/user"
	temporaryBase = "/tmp"
)

// folders returns the candidate directories, best first. All processes of a user must get
// the same result, even with almost no environment. $TMPDIR therefore counts only without
// an alternative: on macOS, only terminals may have it.
func folders(getenv func(string) string) []string {
	uid := os.Getuid()
	var dirs []string
	// After su or in a container, the variable may name another user's or a missing
	// directory.
	run := getenv("XDG_RUNTIME_DIR")
	if usable(run) {
		dirs = append(dirs, filepath.Join(run, "goblin"))
	}
	if uid < 0 {
		tmp := getenv("TMPDIR")
		if !filepath.IsAbs(tmp) {
			tmp = os.TempDir()
		}
		return append(dirs, filepath.Join(tmp, "goblin"))
	}
	id := strconv.Itoa(uid)
	if usual := filepath.Join(runtimeBase, id); usable(usual) {
		dirs = append(dirs, filepath.Join(usual, "goblin"))
	}
	return append(dirs, filepath.Join(temporaryBase, "goblin-"+id))
}

func usable(dir string) bool {
	if !filepath.IsAbs(dir) {
		return false
	}
	fi, err := os.Stat(dir)
	return err == nil && fi.IsDir() && ownedByUser(fi)
}

func ensurePrivate(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("create the daemon's folder: %w", err)
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("check the daemon's folder: %w", err)
	}
	switch {
	case fi.Mode()&os.ModeSymlink != 0:
		return fmt.Errorf("the daemon's folder %s is a symbolic link; remove it", dir)
	case !fi.IsDir():
		return fmt.Errorf("the daemon's folder %s is not a folder; remove it", dir)
	case !ownedByUser(fi):
		return fmt.Errorf("the daemon's folder %s belongs to another user; remove it or set XDG_RUNTIME_DIR", dir)
	case os.Getuid() >= 0 && fi.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("the daemon's folder %s is open to other users (mode %04o); run: %s", dir, fi.Mode().Perm(), termtext.Command("chmod 700", []string{dir}))
	}
	return nil
}

// ownedByUser returns true on systems without user ids, where the temporary directory is
// private.
func ownedByUser(fi os.FileInfo) bool {
	uid, ok := ownerOf(fi)
	return !ok || uid == os.Getuid()
}

// ownerOf is a variable for tests.
var ownerOf = fileOwner
