package watcher

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"goblin/registry/termtext"
)

// maxDifference is the size of a content from which on no difference is made, in bytes.
const maxDifference = 2 << 20

// decode returns the contents of a result of resources/read.
func decode(result json.RawMessage) (content []byte, binary bool, err error) {
	var read struct {
		Contents []struct {
			URI  string  `json:"uri"`
			Text *string `json:"text"`
			Blob *string `json:"blob"`
		} `json:"contents"`
	}
	if err := json.Unmarshal(result, &read); err != nil {
		return nil, false, fmt.Errorf("parse the result: %w", err)
	}
	for _, c := range read.Contents {
		switch {
		case c.Text != nil:
			content = append(content, *c.Text...)
		case c.Blob != nil:
			raw, err := decodeBlob(*c.Blob)
			if err != nil {
				return nil, false, fmt.Errorf("decode the blob of %s: %w", c.URI, err)
			}
			content, binary = append(content, raw...), true
		}
	}
	return content, binary || !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0, nil
}

func decodeBlob(blob string) ([]byte, error) {
	blob = strings.TrimRight(strings.NewReplacer("\n", "", "\r", "", " ", "").Replace(blob), "=")
	if strings.ContainsAny(blob, "-_") {
		return base64.RawURLEncoding.DecodeString(blob)
	}
	return base64.RawStdEncoding.DecodeString(blob)
}

// Difference returns the unified difference to the content before. Of binary and large
// contents it is one line with the sizes.
func (u *Update) Difference() string {
	switch {
	case u.Binary || !utf8.Valid(u.Previous):
		return fmt.Sprintf("binary content changed: %s to %s\n", termtext.Size(int64(len(u.Previous))), termtext.Size(int64(len(u.Content))))
	case max(len(u.Previous), len(u.Content)) > maxDifference:
		return fmt.Sprintf("content changed: %s to %s, too large to compare\n", termtext.Size(int64(len(u.Previous))), termtext.Size(int64(len(u.Content))))
	}
	name := termtext.Line(u.URI) // a line break could name another file for patch
	return udiff.Unified(name, name, string(u.Previous), string(u.Content))
}
