package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"goblin/gateway/atomicfile"
	"goblin/gateway/config"
	"goblin/gateway/secrets"
	"goblin/gateway/state"
)

const inKeyring = secrets.Keyring("goblin")

const lockPause = 10 * time.Millisecond

const maxRecord = 1 << 20

// loginStore stores one login in a file of mode 0600. If there is a keyring, it holds the
// secrets instead.
type loginStore struct {
	path string
	name string
}

// Folder returns the folder of logins in [config.StateFolder].
func Folder(getenv func(string) string) (string, error) {
	state := config.StateFolder(getenv)
	if state == "" {
		return "", errors.New("no folder for logins; set HOME or XDG_STATE_HOME")
	}
	return filepath.Join(state, "logins"), nil
}

// newLoginStore returns the store of a login. Its key is the config and server, or the
// shared account, and always the server's URL: another URL must not get the tokens.
func newLoginStore(folder string, o Options) *loginStore {
	key := []string{"server", o.Config, o.Server, o.URL}
	if o.Account != "" {
		key = []string{"account", o.Account, o.URL}
	}
	sum := sha256.Sum256([]byte(strings.Join(key, "\x00")))
	name := hex.EncodeToString(sum[:16])
	path := filepath.Join(folder, name+".json")
	return &loginStore{path: path, name: name}
}

// lock locks the login for all processes until release. It fails when ctx is done, as the
// holder may be stopped.
func (r *loginStore) lock(ctx context.Context) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(r.path), 0o700); err != nil {
		return nil, err
	}
	// A lock belongs to an open file, so each holder opens its own. O_RDWR, because
	// opening a pipe read-only would block.
	lock := flock.New(r.path+".lock", flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockPause); ctx.Err() != nil {
		return nil, timeoutError(fmt.Sprintf("another process, maybe a suspended one, has locked %s; stop it and try again", lock.Path()))
	} else if err != nil {
		return nil, err
	}
	return func() { _ = lock.Unlock() }, nil
}

type file struct {
	Login
	Keyring bool `json:"keyring,omitempty"` // secrets are in the keyring
}

func (r *loginStore) load() (*Login, error) {
	text, err := state.Read(r.path, maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotLoggedIn
	}
	var stored file
	if err == nil {
		err = json.Unmarshal(text, &stored)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the login in %s: %w; run \"goblin login\"", r.path, err)
	}
	if stored.Keyring {
		text, err := inKeyring.Get(r.name)
		if err != nil {
			return nil, fmt.Errorf("cannot read the login from the keyring: %w; unlock it or run \"goblin login\"", err)
		}
		if err := json.Unmarshal([]byte(text), &stored.tokens); err != nil {
			return nil, errors.New("the keyring's login is damaged; run \"goblin login\"")
		}
	}
	return &stored.Login, nil
}

// save stores a login. notice is the reason why its secrets are in a file, if the user
// should be notified.
func (r *loginStore) save(l *Login) (notice string, err error) {
	stored := file{Login: *l}
	text, err := json.Marshal(l.tokens)
	if err != nil {
		return "", err
	}
	if notice = inKeyring.TrySet(r.name, string(text)); notice == "" {
		stored.Keyring, stored.tokens = true, tokens{}
	}
	all, err := json.Marshal(stored)
	if err != nil {
		return "", err
	}
	if err := atomicfile.Write(r.path, all); err != nil {
		return "", err
	}
	return r.noticeOnce(notice), nil
}

// noticeOnce returns the notice, or "" if one was returned since a keyring last stored a
// login.
func (r *loginStore) noticeOnce(notice string) string {
	mark := filepath.Join(filepath.Dir(r.path), "told")
	if notice == "" {
		_ = os.Remove(mark)
		return ""
	}
	f, err := os.OpenFile(mark, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return ""
	}
	_ = f.Close()
	return notice
}

func (r *loginStore) remove() error {
	if inKeyring.IsAvailable() {
		_ = inKeyring.Delete(r.name)
	}
	return os.Remove(r.path)
}

func (r *loginStore) forget(why error) error {
	if err := r.remove(); err != nil {
		return errors.Join(why, err)
	}
	return fmt.Errorf("%w: %w", ErrNotRevoked, why)
}

// version returns a value that changes with the login, or the zero time without one.
func (r *loginStore) version() (version time.Time) {
	if info, err := os.Stat(r.path); err == nil {
		version = info.ModTime()
	}
	return version
}
