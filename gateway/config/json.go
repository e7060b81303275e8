package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"
)

var jsonLine = pattern(`(?s)^line (\d+), column (\d+): (.*)$`)

// EndComment returns a copy of a JSON text. If its last line is a comment, the copy has a line
// break after it, as hujson requires.
func EndComment(text []byte) []byte {
	last := text[bytes.LastIndexByte(text, '\n')+1:]
	text = bytes.Clone(text)
	if bytes.Contains(last, []byte("//")) {
		text = append(text, '\n')
	}
	return text
}

// parseJSON parses a JSON text into YAML nodes. A YAML parser lacks some JSON escapes,
// and its errors do not suit JSON.
func parseJSON(name string, src []byte) (*yaml.Node, *Errors) {
	plain, err := hujson.Standardize(EndComment(src)) // comments and trailing commas become spaces
	if err != nil {
		line, text := 1+bytes.Count(bytes.TrimSpace(src), []byte("\n")), strings.TrimPrefix(err.Error(), "hujson: ")
		if m := jsonLine().FindStringSubmatch(text); m != nil {
			line, _ = strconv.Atoi(m[1])
			text = m[3]
			if strings.HasPrefix(text, "invalid literal: ") { // the remaining text may be secret
				text = "invalid literal in column " + m[2] + "; check its quotes and escapes"
			}
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			line, text = 1+bytes.Count(bytes.TrimSpace(src), []byte("\n")), "unexpected end of file"
		}
		return nil, lineError(name, line, "not valid JSON: %s", text)
	}
	src = plain
	p := jsonParser{src: src, dec: json.NewDecoder(bytes.NewReader(src)), line: 1}
	p.dec.UseNumber()
	n, err := p.value(0)
	if err != nil {
		return nil, lineError(name, p.line, "not valid JSON: %s", err)
	}
	return n, nil
}

type jsonParser struct {
	src  []byte
	dec  *json.Decoder
	at   int64 // lines are counted up to this offset
	line int
}

func (p *jsonParser) token() (json.Token, error) {
	t, err := p.dec.Token()
	end := p.dec.InputOffset()
	p.line += bytes.Count(p.src[p.at:end], []byte("\n"))
	p.at = end
	return t, err
}

func (p *jsonParser) value(depth int) (*yaml.Node, error) {
	t, err := p.token()
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, errors.New("nested too deeply")
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: p.line}
	switch t := t.(type) {
	case json.Delim:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		if t == '{' {
			n.Kind, n.Tag = yaml.MappingNode, "!!map"
		}
		for p.dec.More() {
			c, err := p.value(depth + 1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, c)
		}
		_, err = p.token()
		return n, err
	case string:
		n.Tag, n.Value = "!!str", t
	case json.Number:
		n.Tag, n.Value = "!!int", t.String()
		if strings.ContainsAny(n.Value, ".eE") {
			n.Tag = "!!float"
		}
	case bool:
		n.Tag, n.Value = "!!bool", map[bool]string{true: "true", false: "false"}[t]
	default:
		n.Tag, n.Value = "!!null", "null"
	}
	return n, nil
}
