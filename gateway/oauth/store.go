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

// inKeyring has the secrets of logins.
const inKeyring = secrets.Keyring("goblin")

// lockPause is how long to wait before a look at a login that another process holds.
const lockPause = 10 * time.Millisecond

// maxRecord bounds the file of a login, in bytes.
const maxRecord = 1 << 20

// loginStore is where one login is stored: a file of mode 0600 with all of it, or without the secrets if a
// keyring has those.
type loginStore struct {
	path string
	name string // in the keyring
}

// Folder is where logins are kept: logins in [config.StateFolder].
func Folder(getenv func(string) string) (string, error) {
	state := config.StateFolder(getenv)
	if state == "" {
		return "", errors.New("there is no folder for logins: set HOME or XDG_STATE_HOME")
	}
	return filepath.Join(state, "logins"), nil
}

// newLoginStore returns the store of a login. The config and the server decide where it is, or the account
// that several servers share. The server's URL decides too: a server at another URL must not get the tokens.
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

// lock locks the login for all processes until release. One that was stopped while it
// held it must not keep others waiting for ever.
func (r *loginStore) lock(ctx context.Context) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(r.path), 0o700); err != nil {
		return nil, err
	}
	// A lock is of a file that was opened: one of its own serves each holder.
	// To open a pipe for reading alone would wait for a writer.
	lock := flock.New(r.path+".lock", flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockPause); ctx.Err() != nil {
		return nil, timeoutError(fmt.Sprintf("another process holds the login by the lock on %s, maybe one that was stopped: end it, and try again", lock.Path()))
	} else if err != nil {
		return nil, err
	}
	return func() { _ = lock.Unlock() }, nil
}

// file is the content of the file.
type file struct {
	Login
	Keyring bool `json:"keyring,omitempty"` // the secrets are there
}

func (r *loginStore) load() (*Login, error) {
	text, err := state.Read(r.path, maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotLoggedIn
	}
	var kept file
	if err == nil {
		err = json.Unmarshal(text, &kept)
	}
	if err != nil {
		return nil, fmt.Errorf("the login in %s cannot be read (goblin login makes a new one): %w", r.path, err)
	}
	if kept.Keyring {
		text, err := inKeyring.Get(r.name)
		if err != nil {
			return nil, fmt.Errorf("the keyring does not give the login (unlock it, or log in again by goblin login): %w", err)
		}
		if err := json.Unmarshal([]byte(text), &kept.tokens); err != nil {
			return nil, errors.New("the keyring holds something else than the login (goblin login makes a new one)")
		}
	}
	return &kept.Login, nil
}

// save keeps a login. The notice says why its secrets are in a file, if it is time that
// the user hears so.
func (r *loginStore) save(l *Login) (notice string, err error) {
	kept := file{Login: *l}
	text, err := json.Marshal(l.tokens)
	if err != nil {
		return "", err
	}
	notice = "there is no keyring"
	if inKeyring.IsAvailable() {
		if err = inKeyring.Set(r.name, string(text)); err == nil {
			kept.Keyring, kept.tokens, notice = true, tokens{}, ""
		} else {
			notice = "the keyring does not take it: " + truncate(err.Error())
		}
	}
	all, err := json.Marshal(kept)
	if err != nil {
		return "", err
	}
	if err := atomicfile.Write(r.path, all); err != nil {
		return "", err
	}
	return r.noticeOnce(notice), nil
}

// noticeOnce returns the notice, or "" if one was given since a keyring last took a login.
func (r *loginStore) noticeOnce(notice string) string {
	mark := filepath.Join(filepath.Dir(r.path), "told")
	if notice == "" {
		_ = os.Remove(mark) // it may not be there
		return ""
	}
	f, err := os.OpenFile(mark, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return ""
	}
	_ = f.Close() // it is empty
	return notice
}

// remove forgets all of a login.
func (r *loginStore) remove() error {
	if inKeyring.IsAvailable() {
		_ = inKeyring.Delete(r.name) // it may have none
	}
	return os.Remove(r.path)
}

// forget removes a login whose tokens cannot be taken back, or not be left out of what is
// kept.
func (r *loginStore) forget(why error) error {
	if err := r.remove(); err != nil {
		return errors.Join(why, err)
	}
	return fmt.Errorf("%w: %w", ErrNotRevoked, why)
}

// version returns a value that changes with the login.
func (r *loginStore) version() (version time.Time) {
	if info, err := os.Stat(r.path); err == nil {
		version = info.ModTime()
	}
	return version
}
