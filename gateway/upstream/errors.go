package upstream

import (
	"errors"
	"fmt"

	"goblin/gateway/upstream/wire"
	"goblin/registry/termtext"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// Codes of [Error], as clients see them in data.code.
const (
	ConnectionError = "CONNECTION_ERROR" // no connection, or it ended before the answer
	RequestTimeout  = "REQUEST_TIMEOUT"  // no answer in time
	BadReply        = "BAD_REPLY"        // an answer that is none
	LoginRequired   = "LOGIN_REQUIRED"   // the user has to log in first
)

// Error is every failure that is Goblin's or the connection's. Well-formed
// errors of a backend are no Error: they are a [jsonrpc.Reply].
type Error struct {
	Code   string // ConnectionError, RequestTimeout, BadReply or LoginRequired
	Server string // name of the server in the configuration
	Reason string // one line, no secrets
	Fix    string // what the user can do, in one line; "" if Reason says it or nothing is known
	Err    error  // the cause, or nil
	// Lines are lines of the process's stderr. Those that name an error come first.
	Lines []string
	// Fault holds the readable parts of a malformed error of the server. It is nil for
	// other failures. Its Data is nil if the server sent no data.
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

// Data returns the error's data for clients.
func (e *Error) Data() []byte {
	data := rawjson.Object("code", e.Code, "server", e.Server)
	if e.Code == LoginRequired {
		data = rawjson.SetMember(data, "command", rawjson.Quote(termtext.Goblin("login", e.Server)))
	}
	return data
}

// errorCode returns the code of requests that fail because there is no connection.
func errorCode(why error) string {
	if e, ok := errors.AsType[*Error](why); ok && e.Code == LoginRequired {
		return LoginRequired
	}
	return ConnectionError
}

// errLogin is the cause of an Error when a server answers 401: trying again
// soon is no use, a header has to be configured.
var errLogin = errors.New("needs login")

// ErrSessionLost is the cause of an Error if the server lost the session. The request was not carried out.
var ErrSessionLost = errors.New("the server has forgotten the session")

// errSessionClosed is the cause of a connection's end if the server lost its session. Requests in flight may
// have been carried out.
var errSessionClosed = errors.New("the session is over")

// unsentCause returns the cause of a request's Error if the request was not sent because its connection
// ended.
func unsentCause(why error) error {
	if errors.Is(why, errSessionClosed) {
		return ErrSessionLost
	}
	return why
}

// errStatus is the HTTP status that refused a message.
type errStatus int

// HTTPStatus returns the HTTP status that caused an error, 0 if none did.
func HTTPStatus(err error) int {
	var status errStatus
	errors.As(err, &status)
	return int(status)
}

func (e errStatus) Error() string { return fmt.Sprintf("HTTP status %d", int(e)) }

// errRPC is an error object of the backend where only its success would do.
type errRPC struct{ object *jsonrpc.Error }

func (e errRPC) Error() string {
	return fmt.Sprintf("%s (code %d)", wire.Truncate(e.object.Message, 500), e.object.Code)
}
