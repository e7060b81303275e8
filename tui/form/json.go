package form

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"goblin/registry/rawjson"
	"goblin/registry/termtext"
)

type member struct {
	name  string
	value json.RawMessage
}

// readMembers returns at most limit members of an object in order, or false for other
// JSON. The last of duplicate members counts.
func readMembers(raw json.RawMessage, limit int) ([]member, bool) {
	if !rawjson.IsObject(raw) || !json.Valid(raw) {
		return nil, false
	}
	var out []member
	at := make(map[string]int)
	for key, value := range rawjson.Members(raw) {
		name, _ := rawjson.String(key)
		switch i, known := at[name]; {
		case known:
			out[i].value = value
		case len(out) < limit:
			at[name] = len(out)
			out = append(out, member{name, value})
		}
	}
	return out, true
}

// writeObject encodes the members that have a value.
func writeObject(members []member) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, m := range members {
		if len(m.value) == 0 {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(rawjson.Quote(m.name))
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

func stringOf(raw json.RawMessage) string {
	s, _ := rawjson.String(raw)
	return s
}

func isNull(raw []byte) bool { return string(bytes.TrimSpace(raw)) == "null" }

// compact returns JSON without spaces, or nil if it is invalid.
func compact(raw []byte) json.RawMessage {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return nil
	}
	return b.Bytes()
}

func sameJSON(a, b []byte) bool { return bytes.Equal(compact(a), compact(b)) }

// indent formats JSON for editing and escapes invisible characters.
func indent(raw []byte) string {
	if !json.Valid(raw) {
		return ""
	}
	text := rawjson.AppendIndent(nil, raw)
	return strings.ReplaceAll(termtext.JSON(string(text)), "\ufffd", `\ufffd`)
}

// checkSyntax returns an error with the position of invalid JSON.
func checkSyntax(text string) error {
	err := rawjson.Valid([]byte(text))
	var fault *rawjson.SyntaxError
	if errors.As(err, &fault) {
		return errors.New(fault.Explain([]byte(text)))
	}
	return err
}

func checkObject(s string) error {
	if err := checkSyntax(s); err != nil {
		return err
	}
	if !rawjson.IsObject([]byte(s)) {
		return errors.New("must be an object, in { }")
	}
	return nil
}
