package pane

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/gateway/display"
	"goblin/registry"
	"goblin/tui/content"
	"goblin/tui/dialog"
	"goblin/tui/look"
	"goblin/tui/shell"
)

// trafficSubject is the selected record at length.
func (p *Logs) trafficSubject() subject {
	r, ok := p.Traffic.Table.Selected()
	if !ok {
		return subject{}
	}
	reg, rec := p.app.Reg, r.TrafficRecord
	if r.open != "" {
		return subject{
			key: "traffic " + r.key, version: r.open, title: rec.Method + " " + clock(rec.Time, 12),
			Blocks: func(context.Context) []content.Block {
				facts := append(requestFacts(reg, &rec), content.Fact{Label: "status", Value: rec.Status + "; X cancels it"})
				return append([]content.Block{{Kind: content.Facts, Facts: facts}}, body("Request", rec.Request, rec.RequestSize)...)
			},
		}
	}
	return subject{
		key: "traffic " + r.key, title: rec.Method + " " + clock(rec.Time, 12),
		Blocks: func(context.Context) []content.Block {
			if full, ok := reg.Traffic().Record(rec.Seq); ok {
				rec = full
			}
			blocks := []content.Block{{Kind: content.Facts, Facts: append(requestFacts(reg, &rec), responseFacts(&rec)...)}}
			blocks = append(blocks, body("Request", rec.Request, rec.RequestSize)...)
			if notified(&rec) {
				return blocks
			}
			return append(blocks, body(responseTitle(&rec), rec.Response, rec.ResponseSize)...)
		},
	}
}

func responseTitle(r *registry.TrafficRecord) string {
	if r.Code != 0 {
		return "Error"
	}
	return "Response" // also if a tool reports an error in it
}

func requestFacts(reg *registry.Registry, r *registry.TrafficRecord) []content.Fact {
	direction := "from the client to the server"
	if r.Direction == registry.ToClient {
		direction = "from the server to the client"
	}
	f := []content.Fact{
		{Label: "began", Value: moment(r.Time)},
		{Label: "ended", Value: endOf(r)},
		{Label: "client", Value: r.Client},
		{Label: "session", Value: sessionText(reg, r.Session)},
		{Label: "direction", Value: direction},
		{Label: "server", Value: r.Server},
		{Label: "method", Value: r.Method},
		{Label: "name", Value: r.Name},
	}
	if r.Receivers > 0 {
		f = append(f, content.Fact{Label: "receivers", Value: display.Count(r.Receivers, "client")})
	}
	if r.RequestSize > 0 {
		f = append(f, content.Fact{Label: "request", Value: dialog.Size(int64(r.RequestSize))})
	}
	return f
}

// endOf is when a request was answered; "" for what has no answer.
func endOf(r *registry.TrafficRecord) string {
	if notified(r) || r.Status == registry.StatusUnderWay || r.Time.IsZero() {
		return ""
	}
	return moment(r.Time.Add(r.Duration))
}

func responseFacts(r *registry.TrafficRecord) []content.Fact {
	if notified(r) {
		return []content.Fact{{Label: "status", Value: r.Status}}
	}
	status := content.Fact{Label: "status", Value: "ok"}
	switch {
	case TrafficFailed(r):
		status.Value = "! " + failure(r)
	case r.Status != "success" && r.Status != "ok":
		status.Value = r.Status
	}
	return []content.Fact{
		status,
		{Label: "duration", Value: fmt.Sprintf("%.3f ms", float64(r.Duration)/1e6)},
		{Label: "response", Value: dialog.Size(r.Size)},
	}
}

// codeNames are the errors that JSON-RPC 2.0 (5.1) and MCP name.
var codeNames = map[int]string{
	-32700: "parse error", -32600: "invalid request", -32601: "method not found",
	-32602: "invalid params", -32603: "internal error", -32002: "resource not found",
	-32042: "URL elicitation required",
}

// requestSide shows the request of an exchange: in a line who asked
// whom, as the record's detail has all of it, and the params.
func requestSide(r *registry.TrafficRecord, lk *look.Look) []content.Block {
	parts := []string{clock(r.Time, 12)}
	ends := []string{strings.TrimSpace(r.Client + " " + r.Session), r.Server}
	for i, end := range ends {
		if end == "" {
			continue
		}
		if i == 1 {
			parts = append(parts, arrow(lk, r.Direction))
		}
		parts = append(parts, dialog.Clean(end))
	}
	if r.RequestSize > 0 {
		parts = append(parts, dialog.Size(int64(r.RequestSize)))
	}
	return append([]content.Block{{Kind: content.Note, Text: strings.Join(parts, "  ")}}, body("", r.Request, r.RequestSize)...)
}

// responseSide shows the response of an exchange.
func responseSide(r *registry.TrafficRecord) []content.Block {
	head := content.Block{Kind: content.Note, Text: fmt.Sprintf("%s  %s  %s", trafficStatus(r), dialog.Millis(r.Duration), dialog.Size(r.Size))}
	if TrafficFailed(r) {
		head.Kind, head.Text = content.Error, fmt.Sprintf("%s  %s  %s", failure(r), dialog.Millis(r.Duration), dialog.Size(r.Size))
	}
	return append([]content.Block{head}, body("", r.Response, r.ResponseSize)...)
}

// failure says how a request failed.
func failure(r *registry.TrafficRecord) string {
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

// body shows params, a result or an error, and says what of it is not there:
// the journal keeps the beginning only, and not for ever.
func body(title string, data []byte, whole int) []content.Block {
	switch {
	case whole == 0 && len(data) == 0:
		return []content.Block{{Title: title, Kind: content.Note, Text: "nothing"}}
	case len(data) == 0:
		return []content.Block{{Title: title, Kind: content.Note, Text: dialog.Size(int64(whole)) + " that had to make room for newer traffic"}}
	case json.Valid(data):
		return []content.Block{{Title: title, Kind: content.JSON, Data: data}}
	}
	note := fmt.Sprintf("the journal keeps the first %s of %s", dialog.Size(int64(len(data))), dialog.Size(int64(whole)))
	return []content.Block{{Title: title, Kind: content.Note, Text: note}, {Kind: content.Text, Text: string(data)}}
}

// rpc writes the exchange as JSON-RPC: a request and, if there was one, its
// response. The journal knows no ids, so the record's number stands for them.
// lost says what of it is missing.
func rpc(r *registry.TrafficRecord, indent string) (request, response []byte, lost string) {
	id := json.RawMessage(strconv.FormatUint(r.Seq, 10))
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
	if !notified(r) {
		req.ID = id
	}
	if json.Valid(r.Request) {
		req.Params = r.Request
	} else if r.RequestSize > 0 {
		lost = "the params"
	}
	request = encoded(req, indent)
	if notified(r) {
		return request, nil, lost
	}
	switch {
	case !json.Valid(r.Response):
		if lost != "" {
			lost += " and "
		}
		return request, nil, lost + "the response"
	case TrafficFailed(r):
		resp.Error = r.Response
	default:
		resp.Result = r.Response
	}
	return request, encoded(resp, indent), lost
}

// encoded is v as JSON; all its parts are valid.
func encoded(v any, indent string) []byte {
	text, _ := display.Encoded(v, indent)
	return []byte(text)
}

// exchangeText is the exchange for the clipboard or a file.
func (a *Desk) exchangeText(seq uint64, indent string) (text, lost string, ok bool) {
	rec, ok := a.Reg.Traffic().Record(seq)
	if !ok {
		return "", "", false
	}
	request, response, lost := rpc(&rec, indent)
	text = string(request) + "\n"
	if response != nil {
		text += string(response) + "\n"
	}
	return text, lost, true
}

// missing says why there is no exchange to take.
func missing(seq uint64) string {
	if seq == 0 {
		return "the request is under way: there is no answer yet"
	}
	return goneRecord
}

const goneRecord = "this record had to make room for newer traffic"

func (a *Desk) copyExchange(seq uint64) tea.Cmd {
	text, lost, ok := a.exchangeText(seq, "")
	if !ok {
		return a.Complain("%s", missing(seq))
	}
	what := "the JSON-RPC"
	if lost != "" {
		what += ", without " + lost + ", which the journal does not have whole,"
	}
	return a.Copy(text, what)
}

// copyCommand copies what does the same in a shell.
func (a *Desk) copyCommand(seq uint64) tea.Cmd {
	rec, ok := a.Reg.Traffic().Record(seq)
	if !ok {
		return a.Complain("%s", missing(seq))
	}
	command, why := shell.Command(&rec)
	if command != "" {
		return a.Copy(command, "the command")
	}
	cmd := a.copyExchange(seq)
	if !a.Flash.Bad {
		a.Say("No command: %s. %s instead", why, a.Flash.Text)
	}
	return cmd
}

// shownTraffic is the exchange of the dialog in front, or of the selected
// record, for pagers, editors and files.
func (p *Logs) shownTraffic() dialog.Shown {
	var seq uint64
	if d := p.app.FrontExchange(); d != nil {
		seq = d.rec.Seq
	} else if r, ok := p.Traffic.Table.Selected(); ok {
		seq = r.Seq
	}
	text, _, ok := p.app.exchangeText(seq, "  ")
	if !ok {
		return dialog.Shown{}
	}
	return dialog.Shown{Name: fmt.Sprintf("traffic-%d.json", seq), Data: []byte(text)}
}
