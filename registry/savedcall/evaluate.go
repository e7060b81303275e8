package savedcall

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"

	"goblin/registry/compare"
	"goblin/registry/definition"
	"goblin/registry/rawjson"
	"goblin/registry/recording"
	"goblin/registry/termtext"
)

const (
	maxDiff = 20  // lines of an outcome
	maxGot  = 200 // columns of a value in a text
)

// Document returns the answer as paths see it: the result, or {"error": …} for a JSON-RPC
// error. It is indented for diffs.
func (a Answer) Document() []byte {
	doc := a.Result
	if a.Error != nil {
		doc = rawjson.SetMember([]byte("{}"), "error", a.Error)
	}
	if rawjson.Valid(doc) != nil {
		return nil
	}
	return append(rawjson.AppendIndent(nil, doc), '\n')
}

// StoredDocument returns the document as it is stored beside a call: without secrets, since
// such files are kept in version control. All secrets become "[hidden]".
func (a Answer) StoredDocument() []byte {
	doc := a.Document()
	text := string(doc)
	if a.Redact != nil {
		text = a.Redact(text)
	}
	var out strings.Builder
	for {
		start, end := recording.Placeholder(text)
		if start < 0 {
			break
		}
		out.WriteString(text[:start] + recording.Hidden)
		text = text[end:]
	}
	out.WriteString(text)
	text = out.String()
	if doc != nil && rawjson.Valid([]byte(text)) != nil { // a number was hidden
		return append(rawjson.Quote(text), '\n')
	}
	return []byte(text)
}

// document decodes the answer. A tool result without isError gets it.
func (r *Request) document(a Answer) (*document, error) {
	return r.decode(a.Document())
}

func (r *Request) decode(text []byte) (*document, error) {
	if len(text) == 0 {
		return nil, errors.New("the answer is no JSON")
	}
	doc, err := decodeDocument(text)
	if err != nil {
		return nil, err
	}
	members, ok := doc.root.(map[string]any)
	if _, has := members["isError"]; ok && !has && r.Call.Kind == KindCall && !isErrorDocument(members) {
		members["isError"] = false
	}
	return doc, nil
}

// isErrorDocument reports whether a document holds a JSON-RPC error.
func isErrorDocument(members map[string]any) bool {
	e, ok := members["error"].(map[string]any)
	return ok && len(members) == 1 && e["code"] != nil
}

// Evaluate returns the outcome of each check, in order. An answer that is an error
// adds a failed CheckError, unless a check covers it. A path below $.error covers a
// JSON-RPC error, the path $.isError the error of a tool, and CheckSame both.
func (r *Request) Evaluate(a Answer) []Outcome {
	doc, err := r.document(a)
	if err != nil {
		return []Outcome{{Check: Check{Kind: CheckError, Line: r.Call.Line}, Text: "the answer is readable", Got: termtext.Line(err.Error())}}
	}
	var all []Outcome
	if e := r.uncheckedError(a, doc); e != "" {
		all = append(all, Outcome{Check: Check{Kind: CheckError, Line: r.Call.Line}, Text: "no error", Got: e})
	}
	for i, check := range r.checks {
		o := Outcome{Check: r.Call.Expect[i], Text: r.shown[i].String()}
		o.Got = r.failure(&o, check, a, doc)
		o.OK = o.Got == ""
		all = append(all, o)
	}
	return all
}

// uncheckedError returns a description of an error that no check covers, or "".
func (r *Request) uncheckedError(a Answer, doc *document) string {
	member := ""
	members, _ := doc.root.(map[string]any)
	switch {
	case a.Error != nil:
		member = "error"
	case r.Call.Kind == KindCall && members["isError"] == true:
		member = "isError"
	default:
		return ""
	}
	for _, c := range r.checks {
		ofError := c.Kind == CheckPath && isMember(c.Path, member, a.Error != nil)
		if c.Exists != nil && a.Error == nil {
			ofError = false // isError always exists
		}
		if ofError || c.Kind == CheckSame {
			return ""
		}
	}
	if a.Error != nil {
		code := string(rawjson.Get(a.Error, "code"))
		return short("error " + cmp.Or(code, "without code") + ": " + rawjson.GetString(a.Error, "message"))
	}
	for block := range rawjson.Elements(rawjson.Get(a.Result, "content")) {
		if text := rawjson.GetString(block, "text"); text != "" {
			return short("isError is true: " + text)
		}
	}
	return "isError is true"
}

// ExpectsError reports whether a check reads a JSON-RPC error.
func (r *Request) ExpectsError() bool {
	return slices.ContainsFunc(r.checks, func(c Check) bool { return c.Kind == CheckPath && isMember(c.Path, "error", true) })
}

// failure returns the reason why a check fails, or "".
func (r *Request) failure(o *Outcome, c Check, a Answer, doc *document) string {
	switch c.Kind {
	case CheckPath:
		return doc.check(c)
	case CheckTime:
		if a.Time > c.Time {
			return "it took " + termtext.Duration(a.Time)
		}
	case CheckSize:
		if size := int64(max(len(a.Result), len(a.Error))); size > c.Size {
			return "it has " + termtext.Size(size)
		}
	case CheckSchema:
		return r.checkSchema(a)
	case CheckDefinition:
		return checkDefinition(c, a)
	case CheckSame:
		return r.checkSame(o, c, a)
	}
	return ""
}

// check applies a check of a path.
func (d *document) check(c Check) string {
	if c.Exists != nil {
		all, err := d.nodes(c.Path)
		switch {
		case err != nil:
			return termtext.Line(err.Error())
		case *c.Exists && len(all) == 0:
			return errNothing.Error()
		case !*c.Exists && len(all) > 0:
			text, _ := encode(all[0])
			return "found " + short(string(text))
		}
		return ""
	}
	value, err := d.one(c.Path)
	if err != nil {
		return termtext.Line(err.Error())
	}
	if c.Equals == nil {
		text := textOf(value)
		wanted, err := compilePattern(c.Matches, text)
		switch {
		case errors.Is(err, errPattern):
			return err.Error()
		case err != nil: // its text may hold secrets
			return "the pattern is invalid with the values of its variables"
		case !wanted.MatchString(text):
			return "got " + short(string(value))
		}
		return ""
	}
	if same, err := compare.Values(c.Equals, value, compare.Options{}); err != nil {
		return termtext.Line(err.Error())
	} else if !same.IsEqual() {
		return "got " + short(string(value))
	}
	return ""
}

func checkDefinition(c Check, a Answer) string {
	if len(a.Definition) == 0 {
		return "the server does not list the tool"
	}
	if digest := Digest(a.Definition); digest != c.Definition {
		return "the definition changed to " + digest
	}
	return ""
}

// Digest returns the value of a definition check for a definition, as for pinned tools.
func Digest(text []byte) string { return "sha256:" + definition.Digest(text) }

func (r *Request) checkSame(o *Outcome, c Check, a Answer) string {
	if len(bytes.TrimSpace(a.Stored)) == 0 {
		return "no answer is stored; accept this one first"
	}
	stored, err := r.decode(a.Stored)
	if err != nil {
		return "stored answer: " + termtext.Line(err.Error())
	}
	was, err := stored.without(c.Ignore)
	if err != nil {
		return termtext.Line(err.Error())
	}
	current, err := r.decode(a.StoredDocument())
	if err != nil {
		return termtext.Line(err.Error())
	}
	now, err := current.without(c.Ignore)
	if err != nil {
		return termtext.Line(err.Error())
	}
	result, err := compare.Values(was, now, compare.Options{})
	switch {
	case err != nil:
		return termtext.Line(err.Error())
	case result.IsEqual():
		return ""
	}
	for _, d := range result.Differences[:min(len(result.Differences), maxDiff)] {
		o.Diff = append(o.Diff, diffLine(d))
	}
	return result.Summary(len(c.Ignore))
}

func diffLine(d compare.Difference) string {
	text := d.Op.Mark() + " " + d.Path.String() + " "
	switch d.Op {
	case compare.Added:
		text += string(d.B)
	case compare.Removed:
		text += string(d.A)
	default:
		text += string(d.A) + " → " + string(d.B)
	}
	return short(text)
}

func short(s string) string { return termtext.Cut(termtext.Line(s), maxGot) }

// String describes a check as the file spells it.
func (c Check) String() string {
	text := string(c.Kind)
	switch {
	case c.Kind == CheckTime:
		text += " ≤ " + c.Time.String()
	case c.Kind == CheckSize:
		text += " ≤ " + termtext.ExactSize(c.Size)
	case c.Kind != CheckPath:
		if len(c.Ignore) > 0 {
			text += ", ignoring " + strings.Join(c.Ignore, ", ")
		}
	case c.Exists != nil && *c.Exists:
		text = c.Path + " exists"
	case c.Exists != nil:
		text = c.Path + " does not exist"
	case c.Equals != nil:
		text = c.Path + " equals " + string(c.Equals)
	default:
		text = c.Path + " matches " + c.Matches
	}
	return short(text)
}
