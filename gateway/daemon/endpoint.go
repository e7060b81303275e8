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

// maxSocketPath is how long a socket's path may be, in bytes: the kernel's
// field has 104 (macOS) or 108 (Linux), with a NUL.
const maxSocketPath = 99

// Endpoint is where a daemon of one config and one version of Goblin is found.
type Endpoint struct {
	Dir     string // 0700, ours
	Socket  string // listened on, 0600
	Lock    string // locked by the daemon for its whole life; never removed
	Log     string // standard error of a detached daemon
	Version string // told in the handshake; a daemon refuses other versions
	// Build identifies this build of a development version, for the handshake; "" for a
	// release, which its version identifies. See [BuildError].
	Build  string
	Config string // the file that is served, for [FindRunning]; "" for the demo
	// Variables are those that the file names and that are set here, with a hash of
	// their values.
	Variables map[string]string
	// Profile is the one that is asked of the daemon for an MCP connection; "" for none.
	Profile string
}

// Find finds the place of the daemon for a config, whose hash is given, and
// a version, and makes its folder: goblin in $XDG_RUNTIME_DIR or else in
// /run/user/<uid>, or /tmp/goblin-<uid> where there is no usable runtime
// folder. A folder that is a symbolic link, belongs to somebody else or is open
// to others is refused, since they could listen there in our stead.
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

// The folders that hold those of users, on systems with user ids. They are
// variables so that tests can have their own.
var (
	runtimeBase   = "/run/user"
	temporaryBase = "/tmp"
)

// folders lists where a daemon may live, the best first. All processes of a user
// must come to the same answer, also those that an editor starts with hardly
// any environment. So $TMPDIR counts nothing where there is a choice: on macOS
// a terminal has it and other programs may not.
func folders(getenv func(string) string) []string {
	uid := os.Getuid()
	var dirs []string
	// After su or in a container the variable often names another user's
	// folder, or none.
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

// usable reports whether a runtime folder is there and ours.
func usable(dir string) bool {
	if !filepath.IsAbs(dir) {
		return false
	}
	fi, err := os.Stat(dir)
	return err == nil && fi.IsDir() && ownedByUser(fi)
}

// ensurePrivate makes dir, if need be, and checks that nobody else can act in it.
func ensurePrivate(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make the daemon's folder: %w", err)
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

// ownedByUser reports whether this user owns a file. Systems without user ids say
// yes: there the folder for temporary files is the user's own.
func ownedByUser(fi os.FileInfo) bool {
	uid, ok := ownerOf(fi)
	return !ok || uid == os.Getuid()
}

// ownerOf is a variable so that tests can act as if a file were another
// user's.
var ownerOf = fileOwner
