package wire

import (
	"bytes"
	"net/http"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// SessionLoss is a verdict on the session of a request.
type SessionLoss int

// The verdicts.
const (
	SessionKept    SessionLoss = iota
	SessionSuspect             // maybe lost; the request may have been executed
	SessionLost                // lost; the request was not executed
)

// JudgeSession returns the verdict for an answer. probe is set for a ping, whose error can
// only concern the session. The protocol requires status 404 for a lost session. Servers
// also use 400, 401 or 410, or a JSON-RPC error with status 200.
func JudgeSession(status int, body []byte, probe bool) SessionLoss {
	var fault []byte
	m, err := jsonrpc.Parse(body)
	if err == nil && m.IsResponse() {
		fault = m.Error
	}
	code, _ := ErrorCode(rawjson.Get(fault, "code"))
	switch {
	case status == http.StatusGone:
		return SessionLost
	case status == http.StatusNotFound && code != jsonrpc.CodeMethodNotFound:
		return SessionLost
	case status == http.StatusBadRequest && fault == nil && bytes.Contains(bytes.ToLower(body), []byte("session")):
		return SessionLost
	case status < 300 && fault == nil, fault == nil && !saysLost(body), fault != nil && !saysLost(fault):
		return SessionKept
	case probe, status < 500 && (fault == nil || m.ID == nil):
		return SessionLost
	case status >= 500:
		return SessionSuspect
	case status == http.StatusNotFound, code == codeSessionNotFound, code == jsonrpc.CodeInvalidRequest, code == codeServerError && status >= 300:
		return SessionLost
	}
	return SessionSuspect // maybe about a tool's own sessions
}

// Error codes that servers use for a lost session.
const (
	codeServerError     = -32000
	codeSessionNotFound = -32001
)

const maxLossText = 64 << 10

// lossWords lists phrases in messages about lost sessions, without spaces and
// punctuation.
var lossWords = [][]byte{
	[]byte("notfound"), []byte("notexist"), []byte("nosuch"), []byte("nosession"), []byte("novalid"), []byte("noactive"),
	[]byte("nolonger"), []byte("notvalid"), []byte("notactive"), []byte("notinit"), []byte("notrecogni"), []byte("notknown"),
	[]byte("unknown"), []byte("unrecogni"), []byte("invalid"), []byte("inactive"), []byte("expired"), []byte("missing"),
	[]byte("required"), []byte("terminated"), []byte("closed"), []byte("hasended"), []byte("deleted"), []byte("isgone"),
	[]byte("sessionended"), []byte("sessionlost"), []byte("sessiongone"),
	[]byte("doesntexist"), []byte("cannotfind"), []byte("cantfind"), []byte("couldnotfind"),
}

func saysLost(text []byte) bool {
	letters := make([]byte, 0, min(len(text), maxLossText))
	for _, c := range text[:min(len(text), maxLossText)] {
		if c |= 0x20; 'a' <= c && c <= 'z' {
			letters = append(letters, c)
		}
	}
	if !bytes.Contains(letters, []byte("session")) {
		return bytes.Contains(letters, []byte("notinitialized")) // said by restarted servers
	}
	for _, word := range lossWords {
		if bytes.Contains(letters, word) {
			return true
		}
	}
	return false
}
