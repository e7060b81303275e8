package secrets

import (
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/zalando/go-keyring"
)

// keyringTimeout prevents that a keyring that waits for a password blocks calls.
const keyringTimeout = 3 * time.Second

// Keyring is a service in the system's keyring.
type Keyring string

// IsAvailable reports whether a keyring is likely. It avoids D-Bus without a session,
// which would start one.
func (Keyring) IsAvailable() bool {
	switch {
	case os.Getenv("GOBLIN_NO_KEYRING") != "":
		return false
	case runtime.GOOS == "windows", runtime.GOOS == "darwin":
		return true
	}
	return os.Getenv("DBUS_SESSION_BUS_ADDRESS") != ""
}

// Get returns a value, or [ErrNotFound].
func (k Keyring) Get(name string) (string, error) {
	value, err := withTimeout(func() (string, error) { return keyring.Get(string(k), name) })
	if errors.Is(err, keyring.ErrNotFound) {
		err = ErrNotFound
	}
	return value, err
}

// Set stores a value.
func (k Keyring) Set(name, value string) error {
	_, err := withTimeout(func() (string, error) { return "", keyring.Set(string(k), name, value) })
	return err
}

// TrySet stores a value if the keyring is available. Otherwise it returns the reason, for
// users.
func (k Keyring) TrySet(name, value string) (reason string) {
	if !k.IsAvailable() {
		return "no keyring available"
	}
	if err := k.Set(name, value); err != nil {
		return "the keyring refused it: " + truncate(err.Error())
	}
	return ""
}

// Delete removes a value, or returns [ErrNotFound].
func (k Keyring) Delete(name string) error {
	_, err := withTimeout(func() (string, error) { return "", keyring.Delete(string(k), name) })
	if errors.Is(err, keyring.ErrNotFound) {
		err = ErrNotFound
	}
	return err
}

func withTimeout(ask func() (string, error)) (string, error) {
	type reply struct {
		text string
		err  error
	}
	done := make(chan reply, 1)
	go func() { // may outlive the call
		text, err := ask()
		done <- reply{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-time.After(keyringTimeout):
		return "", errors.New("no answer")
	}
}
