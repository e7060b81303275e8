package bridge

import "time"

// Hasten shortens the time limits of a bridge.
func (o *Options) Hasten(drain, takeover time.Duration) {
	o.limits = &limits{start: defaultLimits.start, drain: drain, flush: drain, end: 3 * drain, takeover: takeover}
}

// Scan is the bridge's view of a frame.
func Scan(frame []byte) (id []byte, method string, answer, failed bool) {
	e := scan(frame)
	return e.id, e.method, e.answer, e.failed
}
