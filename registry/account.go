package registry

import (
	"cmp"
	"time"
)

// Account is a login at a remote server. It holds no tokens.
type Account struct {
	User       string    `json:"user,omitempty"`   // untrusted text; "" if unknown
	Until      time.Time `json:"until,omitzero"`   // when the login expires; zero if unknown
	AutoRenews bool      `json:"renews,omitempty"` // the login does not expire
}

// String describes the login and its expiry, or returns "" for a nil Account.
func (a *Account) String() string {
	switch {
	case a == nil:
		return ""
	case a.AutoRenews:
		return a.name() + ", renews automatically"
	case !a.Until.IsZero():
		return a.name() + ", until " + a.Until.Local().Format("2006-01-02 15:04")
	}
	return a.name()
}

func (a *Account) name() string { return cmp.Or(a.User, "logged in") }
