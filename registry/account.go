package registry

import (
	"cmp"
	"time"
)

// Account is a login at a remote server, for display and JSON. It holds no token.
type Account struct {
	User       string    `json:"user,omitempty"`   // if it is known: foreign text
	Until      time.Time `json:"until,omitzero"`   // when the login ends, if that is known
	AutoRenews bool      `json:"renews,omitempty"` // the login renews itself, and has no end
}

// String says who is logged in and until when; "" for nobody.
func (a *Account) String() string {
	switch {
	case a == nil:
		return ""
	case a.AutoRenews:
		return a.name() + ", renews itself"
	case !a.Until.IsZero():
		return a.name() + ", until " + a.Until.Local().Format("2006-01-02 15:04")
	}
	return a.name()
}

func (a *Account) name() string { return cmp.Or(a.User, "logged in") }
