package upstream

import (
	"errors"
	"fmt"

	"goblin/gateway/upstream/wire"
	"goblin/registry/termtext"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// Codes of an [Error]. Clients get them in data.code.
const (
	ConnectionError = "CONNECTION_ERROR" // no connection, or closed before the answer
	RequestTimeout  = "REQUEST_TIMEOUT"  // no answer in time
	BadReply        = "BAD_REPLY"        // malformed answer
	LoginRequired   = "LOGIN_REQUIRED"   // the user must log in first
)

// Error is a failure of Goblin or the connection. Well-formed errors of a server are not
// Errors but a [jsonrpc.Reply].
type Error struct {
	Code   string // one of the codes above
	Server string
	Reason string // one line without secrets
	Fix    string // what the user can do, in one line, or ""
	Err    error  // cause or nil
	// Lines are stderr lines of the process, errors first.
	Lines []string
	// Fault holds the readable parts of a malformed error from the server, otherwise nil.
	// Fault.Data is nil if the server sent none.
	Fault *jsonrpc.Error
}

func (e *Error) Error() string { return fmt.Sprintf("server %q: %s", e.Server, e.Text()) }

// Text returns the reason and the fix.
func (e *Error) Text() string {
	if e.Fix == "" {
		return e.Reason
	}
	return e.Reason + "; " + e.Fix
}

func (e *Error) Unwrap() error { return e.Err }

// Data returns the error data for clients.
func (e *Error) Data() []byte {
	data := rawjson.Object("code", e.Code, "server", e.Server)
	if e.Code == LoginRequired {
		data = rawjson.SetMember(data, "command", rawjson.Quote(termtext.Goblin("login", e.Server)))
	}
	return data
}

func errorCode(why error) string {
	if e, ok := errors.AsType[*Error](why); ok && e.Code == LoginRequired {
		return LoginRequired
	}
	return ConnectionError
}

// errLogin is the cause of an Error when a server answers 401. Retrying doesn't help
// until the user logs in or configures a header.
var errLogin = errors.New("needs login")

// ErrSessionLost is the cause of an Error if the server lost the session. The request was
// not executed.
var ErrSessionLost = errors.New("the server lost the session")

// errSessionClosed is the error of a connection whose server lost the session. Requests
// in flight may have been executed.
var errSessionClosed = errors.New("the session was lost")

// unsentCause returns the cause of an Error for a request that was not sent because its
// connection closed.
func unsentCause(why error) error {
	if errors.Is(why, errSessionClosed) {
		return ErrSessionLost
	}
	return why
}

type errStatus int

// HTTPStatus returns the HTTP status that caused an error, or 0.
func HTTPStatus(err error) int {
	var status errStatus
	errors.As(err, &status)
	return int(status)
}

func (e errStatus) Error() string { return fmt.Sprintf("HTTP status %d", int(e)) }

// errRPC is the server's error for a request that must succeed.
type errRPC struct{ object *jsonrpc.Error }

func (e errRPC) Error() string {
	return fmt.Sprintf("%s (code %d)", wire.Truncate(e.object.Message, 500), e.object.Code)
}
