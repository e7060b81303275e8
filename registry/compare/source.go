package compare

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"goblin/registry/rawjson"
	"goblin/registry/recording"
)

// maxFile is the largest JSON file of [ReadSource], in bytes.
const maxFile = 128 << 20

// Kinds of a [Source]. Others are the lists "servers", "tools", "prompts", "resources" and
// "templates".
const (
	KindValue     = "JSON"
	KindCall      = "call"
	KindRecording = "recording"
	kindEmpty     = "empty list"
	kindServers   = "servers"
)

// Source is one side of a comparison.
type Source struct {
	Name string // as the user wrote it
	Kind string
	// One of these is set, depending on Kind. Lists set Entries.
	Value   []byte
	Call    *RecordedCall
	Entries []Entry
	Open    OpenRecording
}

// ReadSource reads a side: a recording (file or folder), one of its requests
// (FILE#NUMBER), or JSON such as that of "goblin list --json". "-" is stdin.
func ReadSource(name string, stdin io.Reader) (*Source, error) {
	s := &Source{Name: name}
	if name == "-" {
		s.Name = "stdin"
		text, err := readAll(stdin)
		if err != nil {
			return nil, fmt.Errorf("read stdin: %w", err)
		}
		if isHeader(text) {
			return nil, errors.New("stdin: a recording must be a file; name the file instead of -")
		}
		return s, s.setJSON(text)
	}
	at, err := recording.ParseArgument(name)
	if err != nil {
		return nil, err
	}
	s.Open = func() (*recording.Reader, error) { return recording.Open(at.Path) }
	if at.Number != 0 {
		s.Kind = KindCall
		if s.Call, err = FindCall(s.Open, at.Number); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if !s.Call.Bodies {
			return nil, fmt.Errorf("%s: the recording has no params and answers; record with \"bodies: true\"", name)
		}
		return s, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.IsDir() {
		s.Kind = KindRecording
		return s, err
	}
	start := bufio.NewReaderSize(f, 4<<10)
	head, _ := start.Peek(4 << 10)
	if bytes.HasPrefix(head, []byte{0x1f, 0x8b}) || isHeader(head) {
		s.Kind = KindRecording
		return s, nil
	}
	text, err := readAll(start)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return s, s.setJSON(text)
}

func readAll(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("larger than %d MiB", maxFile>>20)
	}
	return text, err
}

// isHeader reports whether a text begins like a recording.
func isHeader(text []byte) bool {
	line, _, _ := bytes.Cut(bytes.TrimLeft(text, " \t\r\n"), []byte("\n"))
	var c rawjson.Checker
	return len(line) > 0 && line[0] == '{' && c.End(line) == nil && rawjson.GetString(line, "type") == string(recording.TypeRecording) && rawjson.Get(line, "version") != nil
}

// setJSON sets the content of a JSON text.
func (s *Source) setJSON(text []byte) error {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if err := rawjson.Valid(text); err != nil {
		if invalid, ok := errors.AsType[*rawjson.SyntaxError](err); ok {
			return fmt.Errorf("%s: neither a recording nor JSON: %s", s.Name, invalid.Explain(text))
		}
		return fmt.Errorf("%s: neither a recording nor JSON: %w", s.Name, err)
	}
	s.Kind, s.Value = KindValue, text
	if !rawjson.IsArray(text) {
		return nil
	}
	kind := kindEmpty
	for item := range rawjson.Elements(text) {
		e, of := listEntry(item)
		if kind != kindEmpty && of != kind || of == "" {
			s.Entries = nil
			return nil
		}
		kind, s.Entries = of, append(s.Entries, e)
	}
	s.Kind = kind
	return nil
}

// volatile are members of a listed server that differ between two moments.
var volatile = []string{"pid", "latencyMs", "keptRunningBy", "remembered"}

// listEntry returns an element of the output of "goblin list --json", and the list, or "".
func listEntry(item []byte) (e Entry, list string) {
	if !rawjson.IsObject(item) {
		return e, ""
	}
	definition := rawjson.Get(item, "definition")
	name := rawjson.GetString(item, "name")
	server := rawjson.GetString(item, "serverId")
	if definition == nil || server == "" {
		if name == "" || rawjson.Get(item, "state") == nil || rawjson.Get(item, "transport") == nil {
			return e, ""
		}
		for _, member := range volatile {
			item = rawjson.RemoveMember(item, member)
		}
		return Entry{Server: name, Kind: "server", Definition: item}, kindServers
	}
	e = Entry{Server: server, Definition: definition, State: rawjson.GetString(item, "state")}
	switch uri, template := rawjson.GetString(item, "uri"), rawjson.GetString(item, "uriTemplate"); {
	case uri != "":
		e.Kind, e.Name = "resource", cmp.Or(rawjson.GetString(item, "originalUri"), uri)
	case template != "":
		e.Kind, e.Name = "template", cmp.Or(rawjson.GetString(item, "originalUri"), template)
	case rawjson.IsObject(definition) && rawjson.Get(definition, "inputSchema") != nil:
		e.Kind, e.Name = "tool", cmp.Or(rawjson.GetString(item, "originalName"), name)
	default:
		e.Kind, e.Name = "prompt", cmp.Or(rawjson.GetString(item, "originalName"), name)
	}
	return e, e.Kind + "s"
}

// Report is the outcome of a comparison of two sources. Depending on Kind, one of Result,
// Entries and Recordings counts.
type Report struct {
	Kind       string
	Ignored    []string
	A, B       *Source
	Result     *Result
	Entries    []EntryChange
	Same       int // equal entries
	Recordings *Recordings
}

// Sources compares two sources. It fails if their kinds differ.
func Sources(a, b *Source, o Options) (r *Report, err error) {
	r = &Report{Kind: a.Kind, Ignored: o.Ignore.Texts(), A: a, B: b}
	if a.Kind == kindEmpty {
		r.Kind = b.Kind
	}
	isList := func(s *Source) bool { return s.Entries != nil || s.Kind == kindEmpty }
	if a.Kind != b.Kind && !(isList(a) && isList(b) && (a.Kind == kindEmpty || b.Kind == kindEmpty)) {
		return nil, fmt.Errorf("cannot compare %s with %s: %s is %s, %s is %s", article(a.Kind), article(b.Kind), a.Name, article(a.Kind), b.Name, article(b.Kind))
	}
	switch r.Kind {
	case KindRecording:
		r.Recordings, err = CompareRecordings(a.Open, b.Open, o)
	case KindCall:
		r.Result, err = Calls(&a.Call.Call, &b.Call.Call, o)
	case KindValue:
		r.Result, err = Values(a.Value, b.Value, o)
	default:
		r.Entries, r.Same, err = Catalogs(a.Entries, b.Entries, o)
	}
	return r, err
}

func article(kind string) string {
	switch {
	case kind == KindValue:
		return "a JSON file"
	case kind == kindEmpty:
		return "an empty list"
	case strings.HasSuffix(kind, "s"):
		return "a list of " + kind
	}
	return "a " + kind
}

// IsEqual reports whether there are no differences.
func (r *Report) IsEqual() bool {
	switch {
	case r.Recordings != nil:
		return r.Recordings.IsEqual()
	case r.Result != nil:
		return r.Result.IsEqual()
	}
	return len(r.Entries) == 0
}
