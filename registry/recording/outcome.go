package recording

import (
	"strconv"
	"strings"

	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/registry/termtext"
)

// RunningText is the status of a request in flight.
const RunningText = "running"

// maxErrorText is the longest error text, in bytes.
const maxErrorText = 1000

// IsNotification reports whether a record is of notifications.
func IsNotification(r *registry.TrafficRecord) bool {
	return r.Status == registry.StatusNotification
}

// IsRootsRefusal reports whether a client without roots refused roots/list. That is not a
// failure: servers probe for roots this way.
func IsRootsRefusal(r *registry.TrafficRecord) bool {
	return r.Direction == registry.ToClient && r.Method == "roots/list" && r.Code == -32601
}

// IsFailure reports whether a request failed.
func IsFailure(r *registry.TrafficRecord) bool {
	return !IsRootsRefusal(r) && (r.Code != 0 || r.Status == "failure" || r.Status == registry.StatusToolError)
}

// StatusText returns the outcome as UI and commands show it: "ok", an error code, or the
// record's status.
func StatusText(r *registry.TrafficRecord) string {
	switch {
	case IsRootsRefusal(r):
		return "not offered"
	case r.Code != 0:
		return strconv.Itoa(r.Code)
	case r.Status == "success":
		return "ok"
	case r.Status == "failure":
		return "failed"
	case r.Status == registry.StatusInFlight:
		return RunningText
	}
	return r.Status
}

// Size returns the size of the response, or of the params of a notification, in bytes.
func Size(r *registry.TrafficRecord) int64 {
	if IsNotification(r) {
		return int64(r.RequestSize)
	}
	return r.Size
}

// ErrorText returns the error message of a failed request: of the error object, or the
// text of a tool's result. It is untrusted and has at most 1000 bytes. response may be
// cut; a cut one has no message.
func ErrorText(r *registry.TrafficRecord, response []byte) string {
	if !IsFailure(r) || rawjson.Valid(response) != nil {
		return ""
	}
	var text string
	if r.Status != registry.StatusToolError {
		text = rawjson.GetString(response, "message")
	} else {
		var all []string
		for part := range rawjson.Elements(rawjson.Get(response, "content")) {
			if s := rawjson.GetString(part, "text"); s != "" && len(all) < 10 {
				all = append(all, s)
			}
		}
		text = strings.Join(all, "\n")
	}
	return strings.TrimSpace(termtext.Truncate(text, maxErrorText))
}
