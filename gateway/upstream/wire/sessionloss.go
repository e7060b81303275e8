package wire

import (
	"bytes"
	"net/http"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// SessionLoss is a verdict on the session that a request was sent in.
type SessionLoss int

// The verdicts.
const (
	SessionKept    SessionLoss = iota
	SessionSuspect             // may be lost; the request may have been carried out
	SessionLost                // is lost; the request was not carried out
)

// JudgeSession returns the verdict of an answer with a status and a body. probe reports
// whether the request was a ping, whose error can only be about the session.
//
// Servers forget sessions, mostly by a restart, and report it in many ways: by the status
// 404 that the protocol demands, by 400, 401 or 410, or by a JSON-RPC error with status 200.
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
	return SessionSuspect // of a tool that has sessions of its own, perhaps
}

// Codes by which servers say that a session is lost.
const (
	codeServerError     = -32000
	codeSessionNotFound = -32001
)

// maxLossText is the length of a text that is searched, in bytes.
const maxLossText = 64 << 10

// lossWords is a list of words in texts about lost sessions, without spaces and punctuation.
var lossWords = [][]byte{
	[]byte("notfound"), []byte("notexist"), []byte("nosuch"), []byte("nosession"), []byte("novalid"), []byte("noactive"),
	[]byte("nolonger"), []byte("notvalid"), []byte("notactive"), []byte("notinit"), []byte("notrecogni"), []byte("notknown"),
	[]byte("unknown"), []byte("unrecogni"), []byte("invalid"), []byte("inactive"), []byte("expired"), []byte("missing"),
	[]byte("required"), []byte("terminated"), []byte("closed"), []byte("hasended"), []byte("deleted"), []byte("isgone"),
	[]byte("sessionended"), []byte("sessionlost"), []byte("sessiongone"),
	[]byte("doesntexist"), []byte("cannotfind"), []byte("cantfind"), []byte("couldnotfind"),
}

// saysLost reports whether a text says, in any spelling, that a session is lost.
func saysLost(text []byte) bool {
	letters := make([]byte, 0, min(len(text), maxLossText))
	for _, c := range text[:min(len(text), maxLossText)] {
		if c |= 0x20; 'a' <= c && c <= 'z' {
			letters = append(letters, c)
		}
	}
	if !bytes.Contains(letters, []byte("session")) {
		return bytes.Contains(letters, []byte("notinitialized")) // as a server that has restarted is
	}
	for _, word := range lossWords {
		if bytes.Contains(letters, word) {
			return true
		}
	}
	return false
}
