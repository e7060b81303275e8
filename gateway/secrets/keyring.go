package secrets

import (
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/zalando/go-keyring"
)

// keyringLimit is how long a keyring may take: one that waits for a password that
// nobody types must not keep calls waiting.
const keyringLimit = 3 * time.Second

// Keyring is the part of the system's keyring that has a name, its service.
type Keyring string

// IsAvailable reports whether a keyring can be expected: asking D-Bus where there is no session
// starts one.
func (Keyring) IsAvailable() bool {
	switch {
	case os.Getenv("GOBLIN_NO_KEYRING") != "":
		return false
	case runtime.GOOS == "windows", runtime.GOOS == "darwin":
		return true
	}
	return os.Getenv("DBUS_SESSION_BUS_ADDRESS") != ""
}

// Get is the value of a name; the error for one that it does not have is [ErrNone].
func (k Keyring) Get(name string) (string, error) {
	value, err := patient(func() (string, error) { return keyring.Get(string(k), name) })
	if errors.Is(err, keyring.ErrNotFound) {
		err = ErrNone
	}
	return value, err
}

// Set keeps a value under a name.
func (k Keyring) Set(name, value string) error {
	_, err := patient(func() (string, error) { return "", keyring.Set(string(k), name, value) })
	return err
}

// Delete forgets a name; [ErrNone] says that there was none.
func (k Keyring) Delete(name string) error {
	_, err := patient(func() (string, error) { return "", keyring.Delete(string(k), name) })
	if errors.Is(err, keyring.ErrNotFound) {
		err = ErrNone
	}
	return err
}

func patient(ask func() (string, error)) (string, error) {
	type reply struct {
		text string
		err  error
	}
	done := make(chan reply, 1)
	go func() { // ends when the keyring does
		text, err := ask()
		done <- reply{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-time.After(keyringLimit):
		return "", errors.New("it does not answer")
	}
}
