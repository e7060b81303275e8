package clientconfig

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"goblin/gateway/atomicfile"
	"goblin/gateway/config"
	"goblin/gateway/state"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"
)

const (
	maxFile  = 16 << 20 // bytes; some clients store history in the same file
	maxDepth = 100
)

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, atomicfile.StripPath(err)
	case !info.Mode().IsRegular(): // opening a pipe would block
		return nil, errors.New("not a regular file")
	case info.Size() > maxFile:
		return nil, fmt.Errorf("larger than %d MiB", maxFile>>20)
	case isForeign(info):
		return nil, errors.New("it belongs to another user")
	}
	text, err := state.Read(path, maxFile)
	if err != nil {
		return nil, err
	}
	return utf8Of(text)
}

// utf8Of also converts UTF-16, which Windows editors may write.
func utf8Of(text []byte) ([]byte, error) {
	for order, mark := range map[binary.ByteOrder]string{binary.LittleEndian: "\xff\xfe", binary.BigEndian: "\xfe\xff"} {
		if rest, ok := bytes.CutPrefix(text, []byte(mark)); ok {
			if len(rest)%2 != 0 {
				return nil, errors.New("incomplete UTF-16 character at the end")
			}
			units := make([]uint16, len(rest)/2)
			for i := range units {
				units[i] = order.Uint16(rest[2*i:])
			}
			return []byte(string(utf16.Decode(units))), nil
		}
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return nil, errors.New("not valid UTF-8")
	}
	return text, nil
}

// BrokenError is a mistake in the text of a file.
type BrokenError struct{ err error }

func (e *BrokenError) Error() string { return e.err.Error() }

func (e *BrokenError) Unwrap() error { return e.err }

// decodeNamed also accepts a fragment of JSON without its outer braces.
func decodeNamed(f format, text []byte) (map[string]any, error) {
	doc, err := decode(f, text)
	if err == nil || f != inJSON {
		return doc, err
	}
	if start := bytes.TrimSpace(text); start[0] == '[' { // a list of entries
		if whole, wrong := decode(f, slices.Concat([]byte(`{"mcpServers": `), text, []byte("\n}"))); wrong == nil {
			return whole, nil
		}
	}
	if whole, wrong := decode(f, slices.Concat([]byte("{"), text, []byte("\n}"))); wrong == nil {
		return whole, nil
	} else if start := bytes.TrimSpace(text); start[0] == '"' {
		return nil, wrong
	}
	return nil, err
}

// decode returns errors without any text of the file, which may be secret.
func decode(f format, text []byte) (doc map[string]any, err error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return map[string]any{}, nil
	}
	if isTooDeep(text) {
		return nil, errors.New("nested too deeply")
	}
	switch f {
	case inTOML:
		var wrong *toml.DecodeError
		if err = toml.Unmarshal(text, &doc); errors.As(err, &wrong) {
			line, _ := wrong.Position()
			err = fmt.Errorf("not valid TOML (line %d)", line)
		}
	case inYAML:
		if err = yaml.Unmarshal(text, &doc); err != nil {
			err = fmt.Errorf("not valid YAML%s", yamlLine(err))
		}
	default:
		doc, err = decodeJSON(text)
	}
	if err == nil && doc == nil {
		if f == inJSON {
			return nil, errors.New("the top level is not a mapping")
		}
		doc = map[string]any{} // comments only
	}
	return doc, err
}

// isTooDeep reports whether the nesting is too deep for recursive parsers.
func isTooDeep(text []byte) bool {
	depth := 0
	for _, c := range text {
		switch c {
		case '{', '[':
			if depth++; depth > 100*maxDepth {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

func yamlLine(err error) string {
	_, rest, ok := strings.Cut(err.Error(), "line ")
	if end := strings.IndexByte(rest, ':'); ok && end > 0 {
		return " (line " + rest[:end] + ")"
	}
	return ""
}

func decodeJSON(text []byte) (doc map[string]any, err error) {
	v, err := hujson.Parse(config.EndComment(text)) // comments are blanked below
	if err != nil {
		place := ""
		if _, rest, ok := strings.Cut(err.Error(), "line "); ok {
			if end := strings.IndexByte(rest, ','); end > 0 {
				place = " (line " + rest[:end] + ")"
			}
		}
		return nil, fmt.Errorf("not valid JSON%s", place)
	}
	if _, ok := v.Value.(*hujson.Object); !ok {
		return nil, errors.New("the top level is not a mapping")
	}
	if err := rejectDuplicates(text, &v, 0); err != nil {
		return nil, err
	}
	v.Standardize()
	dec := json.NewDecoder(bytes.NewReader(v.Pack()))
	dec.UseNumber()
	if dec.Decode(&doc) != nil {
		return nil, errors.New("not valid JSON")
	}
	return doc, nil
}

// rejectDuplicates returns an error for duplicate keys, since clients differ in which one
// they use.
func rejectDuplicates(text []byte, v *hujson.Value, depth int) error {
	if depth > maxDepth {
		return errors.New("nested too deeply")
	}
	switch v := v.Value.(type) {
	case *hujson.Object:
		seen := make(map[string]bool, len(v.Members))
		for i := range v.Members {
			m := &v.Members[i]
			name, _ := m.Name.Value.(hujson.Literal)
			if seen[name.String()] {
				shown := name.String()
				if secretName(shown) {
					shown = hiddenValue
				}
				return fmt.Errorf("duplicate entry %q (line %d)", short(shown), 1+bytes.Count(text[:m.Name.StartOffset], []byte("\n")))
			}
			seen[name.String()] = true
			if err := rejectDuplicates(text, &m.Value, depth+1); err != nil {
				return err
			}
		}
	case *hujson.Array:
		for i := range v.Elements {
			if err := rejectDuplicates(text, &v.Elements[i], depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func short(name string) string {
	if len(name) > 80 {
		name = strings.ToValidUTF8(name[:80], "") + "…"
	}
	return name
}
