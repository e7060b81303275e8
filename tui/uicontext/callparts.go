package uicontext

import (
	"bytes"
	"encoding/json"
	"strings"

	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/registry/recording"
	"goblin/registry/termtext"
)

// maxArgument is the part of each argument in a row, in bytes. maxArguments limits all of
// them, maxFailure an error. Secrets are searched in the first maxSearched bytes.
const (
	maxArgument  = 60
	maxArguments = 200
	maxFailure   = 200
	maxSearched  = 4096
)

func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return termtext.Truncate(s, most) + "…"
}

// ArgumentsText returns arguments in one line as name=value, safe for the terminal. It
// hides the config's secrets. It returns "" for invalid JSON.
func (a *Context) ArgumentsText(arguments json.RawMessage) string {
	if rawjson.Valid(arguments) != nil {
		return ""
	}
	var b strings.Builder
	for name, value := range rawjson.Members(arguments) {
		if b.Len() > maxArguments {
			break
		}
		text, isText := rawjson.String(value)
		if !isText {
			text = compact(value)
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(string(name.Name()) + "=" + shorten(a.redacted(text), maxArgument))
	}
	return SanitizeLine(shorten(b.String(), maxArguments))
}

// compact returns the start of a JSON value without spaces.
func compact(value []byte) string {
	if len(value) > maxSearched {
		return string(value[:maxSearched])
	}
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return ""
	}
	return b.String()
}

// redacted hides secrets and joins lines.
func (a *Context) redacted(text string) string {
	return strings.Join(strings.Fields(a.Backend.Redact(termtext.Truncate(text, maxSearched))), " ")
}

// failureText returns the message of a failed request in one line, safe for the terminal,
// or "". It hides the config's secrets.
func (a *Context) failureText(r *registry.TrafficRecord) string {
	if !recording.IsFailure(r) {
		return ""
	}
	text := recording.ErrorText(r, r.Response)
	if text == "" {
		text = "failed"
	}
	return SanitizeLine(shorten(a.redacted(text), maxFailure))
}

// PastFailure returns the error of a past call of this UI as failureText does.
func (a *Context) PastFailure(inv *registry.Invocation) string {
	switch {
	case inv.Success || inv.Cancelled:
		return ""
	case inv.Error != "":
		return SanitizeLine(shorten(a.redacted(inv.Error), maxFailure))
	}
	return a.failureText(&registry.TrafficRecord{Status: registry.StatusToolError, Response: inv.Result})
}

// CallTexts returns the arguments and the error of a recorded or running call. The last step
// of rules precedes the arguments. Arguments and error are "" for evicted bodies.
func (a *Context) CallTexts(r *registry.TrafficRecord) (arguments, failure string) {
	rec := *r
	if full, ok := a.Reg.Traffic().Record(r.Seq); ok && r.Seq > 0 {
		rec = full
	}
	if rawjson.Valid(rec.Request) == nil {
		arguments = a.ArgumentsText(rawjson.Get(rec.Request, "arguments"))
	}
	if n := len(rec.Events); n > 0 {
		step := registry.RuleSummary(rec.Events[n-1:])
		arguments = strings.TrimSpace("[" + SanitizeLine(shorten(step, maxFailure)) + "] " + arguments)
	}
	return arguments, a.failureText(&rec)
}
