package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parseJSON is a JSON text as YAML nodes. A YAML parser reads most JSON, but
// neither all escapes nor errors in words that a writer of JSON understands.
func parseJSON(name string, src []byte) (*yaml.Node, *Errors) {
	var raw json.RawMessage
	if err := json.Unmarshal(src, &raw); err != nil {
		line := 1 + bytes.Count(bytes.TrimSpace(src), []byte("\n"))
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) && int(syntax.Offset) < len(src) {
			before := src[:max(0, syntax.Offset-1)]
			line = 1 + bytes.Count(before, []byte("\n"))
			bracket := string(src[len(before)])
			if list := bytes.TrimSpace(before); bytes.HasSuffix(list, []byte(",")) && strings.Contains("}]", bracket) {
				line = 1 + bytes.Count(list, []byte("\n"))
				err = errors.New("a comma before " + bracket + " is not allowed")
			}
		}
		return nil, lineError(name, line, "not valid JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
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
	at   int64 // up to where lines are counted
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
