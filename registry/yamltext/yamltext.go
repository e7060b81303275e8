// Package yamltext parses YAML texts and finds the lines of their mistakes.
//
// It does not limit sizes. All functions are pure and safe for concurrent use.
package yamltext

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// Mistake is a syntax error.
type Mistake struct {
	Line int    // from 1
	Text string // without secrets of the text, may end with a fix
}

// Parse returns the root of the first document, or nil without one. second is the line of
// a second document, or 0.
func Parse(src []byte) (root *yaml.Node, second int, m *Mistake) {
	d := yaml.NewDecoder(bytes.NewReader(src))
	doc, err := decode(d)
	if err == nil {
		var next *yaml.Node
		if next, err = decode(d); err == nil {
			second = next.Line
		}
	}
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, 0, explain(src, err)
	case doc == nil || len(doc.Content) == 0:
		return nil, second, nil
	}
	return doc.Content[0], second, nil
}

// decode recovers from panics of the library on rare broken input.
func decode(d *yaml.Decoder) (doc *yaml.Node, err error) {
	defer func() {
		if recover() != nil {
			doc, err = nil, errors.New("malformed text")
		}
	}()
	doc = new(yaml.Node)
	if err := d.Decode(doc); err != nil {
		return nil, err
	}
	return doc, nil
}

var (
	unknownAnchor = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^unknown anchor '.*' referenced$`) })
	lineOfError   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^line (\d+): `) })
)

// explain adds the line and the fix to an error of the library.
func explain(src []byte, err error) *Mistake {
	m := &Mistake{Text: strings.TrimPrefix(err.Error(), "yaml: ")}
	if at := lineOfError().FindStringSubmatch(m.Text); at != nil {
		m.Line, _ = strconv.Atoi(at[1])
		m.Text = m.Text[len(at[0]):]
	}
	if m.Line == 0 || strings.HasPrefix(m.Text, "did not find expected") {
		m.Line = failingLine(src)
	}
	line := lineOf(src, m.Line)
	switch {
	case unknownAnchor().MatchString(m.Text): // the name may be a secret
		m.Text = `unknown anchor; quote a text that begins with "*"`
	case strings.Contains(m.Text, "cannot start any token") && strings.HasPrefix(strings.TrimLeft(line, " "), "\t"):
		m.Text = "a tab in the indentation; use spaces"
	case strings.Contains(m.Text, "cannot start any token"):
		m.Text += "; quote a text that begins with @, % or `"
	case strings.HasPrefix(m.Text, "did not find expected key"):
		m.Text += "; check the indentation"
	case strings.HasPrefix(m.Text, "did not find expected ','") && strings.Contains(line, "${"):
		m.Text += `; inside [ ] and { }, quote a text with "${"`
	case strings.HasPrefix(m.Text, "did not find expected ','") && strings.Contains(line, "$["):
		m.Text += `; inside [ ] and { }, quote a text with "$["`
	}
	return m
}

// failingLine returns the line at which the parser fails. The parser's errors name the
// first line of the enclosing block, or no line. It gets one byte at a time, so it fails
// at the last byte it read.
func failingLine(src []byte) int {
	feed := byteReader{bytes.NewReader(src)}
	for d := yaml.NewDecoder(feed); ; {
		if _, err := decode(d); err != nil {
			break
		}
	}
	read := bytes.TrimRight(src[:len(src)-feed.Len()], " \t\r\n")
	return 1 + bytes.Count(read, []byte("\n"))
}

type byteReader struct{ *bytes.Reader }

func (b byteReader) Read(p []byte) (int, error) { return b.Reader.Read(p[:min(1, len(p))]) }

func lineOf(src []byte, line int) string {
	for ; line > 1; line-- {
		_, src, _ = bytes.Cut(src, []byte("\n"))
	}
	first, _, _ := bytes.Cut(src, []byte("\n"))
	return string(first)
}
