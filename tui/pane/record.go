// Record tells what a record of traffic is: in a word, at length, and as the
// JSON-RPC that went over the wire. It keeps nothing and knows no screen: which records
// there are, and where they are shown, is up to others.

package pane

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"goblin/registry"
	"goblin/registry/termtext"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

const statusNotification = "notification"

// Notified reports a notification: it has no answer.
func Notified(r *registry.TrafficRecord) bool { return r.Status == statusNotification }

// NotOffered is a client's answer to a server that asks for roots which the client
// never said it had: no error, but the way to find out.
func NotOffered(r *registry.TrafficRecord) bool {
	return r.Direction == registry.ToClient && r.Method == "roots/list" && r.Code == -32601
}

// Failed reports whether a request failed.
func Failed(r *registry.TrafficRecord) bool {
	return !NotOffered(r) && (r.Code != 0 || r.Status == "failure" || r.Status == registry.StatusToolError)
}

// Refused reports that what came back is an error object. Of a request that was cancelled
// the code of it does not count, but it is none the less.
func Refused(r *registry.TrafficRecord) bool {
	if r.Status != registry.StatusCancelled {
		return r.Code != 0
	}
	var e struct{ Code *int }
	return json.Unmarshal(r.Response, &e) == nil && e.Code != nil
}

// Status is how it ended, in a word.
func Status(r *registry.TrafficRecord) string {
	switch {
	case NotOffered(r):
		return "none"
	case r.Code != 0:
		return strconv.Itoa(r.Code)
	case r.Status == "success":
		return "ok"
	case r.Status == "failure":
		return "failed"
	}
	return r.Status
}

// MarkedStatus is how a record ended, with a mark if that is bad.
func MarkedStatus(r *registry.TrafficRecord) string {
	switch {
	case r.Status == registry.StatusUnderWay:
		return "~ " + r.Status // what turns is as wide
	case Failed(r):
		return "!" + Status(r)
	}
	return Status(r)
}

// OwnName names the subject of a record, without the part that its server's column has.
func OwnName(r *registry.TrafficRecord) string {
	if own, ok := strings.CutPrefix(r.Name, "mcp://"+r.Server+"/"); ok && r.Server != "" {
		return own
	}
	return r.Name
}

// Size is the size of the answer; of a notification, which has none,
// that of its params.
func Size(r *registry.TrafficRecord) int64 {
	if Notified(r) {
		return int64(r.RequestSize)
	}
	return r.Size
}

// codeNames are the errors that JSON-RPC 2.0 (5.1) and MCP name.
var codeNames = map[int]string{
	-32700: "parse error", -32600: "invalid request", -32601: "method not found",
	-32602: "invalid params", -32603: "internal error", -32002: "resource not found",
	-32042: "URL elicitation required",
}

// Failure says how a request failed.
func Failure(r *registry.TrafficRecord) string {
	switch {
	case r.Status == registry.StatusToolError:
		return "the tool reports an error"
	case r.Code == 0:
		return "failed"
	}
	text := fmt.Sprintf("error %d", r.Code)
	if name := codeNames[r.Code]; name != "" {
		text += ", " + name
	}
	return text
}

// Outcome tells how a request was answered.
func Outcome(r *registry.TrafficRecord) []viewer.Field {
	if Notified(r) {
		return []viewer.Field{{Label: "status", Value: r.Status}}
	}
	status := viewer.Field{Label: "status", Value: Status(r)}
	switch {
	case Failed(r):
		status.Value = "! " + Failure(r)
	case NotOffered(r):
		status.Value += ": the client has no roots"
	}
	return []viewer.Field{
		status,
		{Label: "duration", Value: fmt.Sprintf("%.3f ms", float64(r.Duration-r.Waited)/1e6)},
		{Label: "waited", Value: waited(r)},
		{Label: "response", Value: uicontext.Size(r.Size)},
	}
}

// FormatDuration returns the duration without waits for the user, and the waits apart.
func FormatDuration(r *registry.TrafficRecord) string {
	text := uicontext.Millis(r.Duration - r.Waited)
	if r.Waited > 0 {
		text += " and " + uicontext.Millis(r.Waited) + " waiting for the user"
	}
	return text
}

// waited returns how long a request waited for the user, or "" if it did not wait.
func waited(r *registry.TrafficRecord) string {
	if r.Waited == 0 {
		return ""
	}
	return uicontext.Millis(r.Waited) + " for the user"
}

// ResponseTitle heads what came back.
func ResponseTitle(r *registry.TrafficRecord) string {
	if Refused(r) {
		return "Error"
	}
	return "Response" // also if a tool reports an error in it
}

// Body shows params, a result or an error, and says what of it is not there:
// the journal keeps the beginning only, and not for ever.
func Body(title string, data []byte, whole int) []viewer.Section {
	switch {
	case whole == 0 && len(data) == 0:
		return []viewer.Section{{Title: title, Kind: viewer.Note, Text: "nothing"}}
	case len(data) == 0:
		return []viewer.Section{{Title: title, Kind: viewer.Note, Text: uicontext.Size(int64(whole)) + " that had to make room for newer traffic"}}
	case json.Valid(data):
		return []viewer.Section{{Title: title, Kind: viewer.JSON, Data: data}}
	}
	note := fmt.Sprintf("the journal keeps the first %s of %s", uicontext.Size(int64(len(data))), uicontext.Size(int64(whole)))
	return []viewer.Section{{Title: title, Kind: viewer.Note, Text: note}, {Kind: viewer.Text, Text: string(data)}}
}

// JSONRPC writes the exchange as JSON-RPC: a request and, if there was one, its
// response. Where the id was not kept the record's number stands for it.
// lost says what of it is missing.
func JSONRPC(r *registry.TrafficRecord, indent string) (request, response []byte, lost string) {
	id := id(r)
	if id == nil {
		id = json.RawMessage(strconv.FormatUint(r.Seq, 10))
	}
	req := struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id,omitempty"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params,omitempty"`
	}{Version: "2.0", Method: r.Method}
	resp := struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  json.RawMessage `json:"result,omitempty"`
		Error   json.RawMessage `json:"error,omitempty"`
	}{Version: "2.0", ID: id}
	if !Notified(r) {
		req.ID = id
	}
	if json.Valid(r.Request) {
		req.Params = r.Request
	} else if r.RequestSize > 0 {
		lost = "the params"
	}
	request = encoded(req, indent)
	if Notified(r) {
		return request, nil, lost
	}
	switch {
	case !json.Valid(r.Response):
		if lost != "" {
			lost += " and "
		}
		return request, nil, lost + "the response"
	case Refused(r):
		resp.Error = r.Response
	default:
		resp.Result = r.Response
	}
	return request, encoded(resp, indent), lost
}

// encoded is v as JSON; all its parts are valid.
func encoded(v any, indent string) []byte {
	text, _ := termtext.Encoded(v, indent)
	return []byte(text)
}

// Answer lays out what a result holds: the content of tools, resources and prompts, with
// JSON and Markdown in its texts shown as such. It is nil for other methods, for errors,
// and for what the journal has not kept whole.
func Answer(r *registry.TrafficRecord) []viewer.Section {
	if Refused(r) || !json.Valid(r.Response) {
		return nil
	}
	switch r.Method {
	case "tools/call":
		return viewer.FromTool(r.Response)
	case "resources/read":
		return viewer.FromResource(r.Response)
	case "prompts/get":
		return viewer.FromPrompt(r.Response)
	}
	return nil
}

// Arguments are those of a recorded call of a tool or prompt; false if the journal has
// not kept them whole.
func Arguments(r *registry.TrafficRecord) (args json.RawMessage, ok bool) {
	var p struct {
		Arguments json.RawMessage `json:"arguments"`
	}
	if len(r.Request) == 0 || json.Unmarshal(r.Request, &p) != nil {
		return nil, false
	}
	return p.Arguments, true
}

// Tail shows the last lines that a server wrote.
func Tail(tail []registry.LogRecord) []viewer.Section {
	if len(tail) == 0 {
		return nil
	}
	var b strings.Builder
	for i, r := range tail {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(r.Time.Format("15:04:05") + " ")
		if r.Source == registry.SourceMessage {
			b.WriteString(strings.ToLower(r.Level.String()) + " ")
		}
		b.WriteString(uicontext.CutText(strings.TrimRight(uicontext.Clean(r.Text), " "), 2000))
	}
	return []viewer.Section{{Title: "Last lines of its stderr and messages", Kind: viewer.Text, Text: b.String()}}
}
