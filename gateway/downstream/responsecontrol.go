package downstream

import (
	"net/http"
	"time"
)

// responseControl restarts the timeouts of one request. One goroutine at a time may do so.
//
// Over HTTP/1.1, the timeout of a stalled write counts only during writes. HTTP/2 resets
// the stream when the time is over, even if nothing is written. So it must not run while
// an answer is awaited.
type responseControl struct {
	*http.ResponseController
	isHTTP2         bool
	readAt, writeAt time.Time // of the last restart
}

// restartPause limits how often a timeout restarts: each restart takes time, especially
// over HTTP/2.
const restartPause = time.Second

// extendWrite restarts the timeout of a stalled write before a write.
func (rc *responseControl) extendWrite() {
	if now := time.Now(); now.Sub(rc.writeAt) >= restartPause {
		rc.writeAt = now
		rc.SetWriteDeadline(now.Add(stallTimeout)) //nolint:errcheck // not every writer can
	}
}

// expectWrite is extendWrite long before a write.
func (rc *responseControl) expectWrite() {
	if !rc.isHTTP2 {
		rc.extendWrite()
	}
}

// suspendWrite stops the timeout until the next extendWrite.
func (rc *responseControl) suspendWrite() {
	if rc.isHTTP2 && !rc.writeAt.IsZero() {
		rc.writeAt = time.Time{}
		rc.SetWriteDeadline(time.Time{}) //nolint:errcheck // not every writer can
	}
}

// extendRead restarts the timeout of a stalled body.
func (rc *responseControl) extendRead() {
	if now := time.Now(); now.Sub(rc.readAt) >= restartPause {
		rc.readAt = now
		rc.SetReadDeadline(now.Add(bodyTimeout)) //nolint:errcheck // not every reader can
	}
}
