package rawjson

import (
	"bytes"
	"unicode/utf8"
)

// AppendString appends s as a JSON string. It escapes only where the grammar requires it
// (no HTML escaping). Invalid UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			switch {
			case plainByte[c]:
				dst = append(dst, c)
			case c == '"' || c == '\\':
				dst = append(dst, '\\', c)
			case c == '\n':
				dst = append(dst, '\\', 'n')
			case c == '\r':
				dst = append(dst, '\\', 'r')
			case c == '\t':
				dst = append(dst, '\\', 't')
			default:
				dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		dst = utf8.AppendRune(dst, r)
		i += n
	}
	return append(dst, '"')
}

// Quote returns s as a JSON string.
func Quote(s string) []byte { return AppendString(make([]byte, 0, len(s)+2), s) }

// Edit replaces the bytes from Start to End (exclusive) by Text.
type Edit struct {
	Start, End int
	Text       []byte
}

// ReplaceEdit returns the edit that replaces inner, a slice of outer (see [Offset]), by
// text.
func ReplaceEdit(outer, inner, text []byte) Edit {
	at := Offset(outer, inner)
	return Edit{at, at + len(inner), text}
}

// AppendEdited appends src with the edits applied. Edits must be sorted and must not
// overlap.
func AppendEdited(dst, src []byte, edits ...Edit) []byte {
	at := 0
	for _, e := range edits {
		dst = append(dst, src[at:e.Start]...)
		dst = append(dst, e.Text...)
		at = e.End
	}
	return append(dst, src[at:]...)
}

// SpliceParts returns src with the edits applied, as slices to be concatenated.
func SpliceParts(src []byte, edits ...Edit) [][]byte {
	parts := make([][]byte, 0, 2*len(edits)+1)
	at := 0
	for _, e := range edits {
		parts = append(parts, src[at:e.Start], e.Text)
		at = e.End
	}
	return append(parts, src[at:])
}

// Splice returns src with the edits applied. Without edits it returns src itself.
func Splice(src []byte, edits ...Edit) []byte {
	if len(edits) == 0 {
		return src
	}
	n := len(src)
	for _, e := range edits {
		n += len(e.Text) - (e.End - e.Start)
	}
	return AppendEdited(make([]byte, 0, n), src, edits...)
}

// SetMember returns the valid object obj with the member name set to the valid text
// value. It replaces the last member with that name or appends a new one.
func SetMember(obj []byte, name string, value []byte) []byte {
	if old := Get(obj, name); old != nil {
		return Splice(obj, ReplaceEdit(obj, old, value))
	}
	end := bytes.LastIndexByte(obj, '}')
	if end < 0 {
		return obj
	}
	text := make([]byte, 0, len(name)+len(value)+4)
	empty := true
	for range Members(obj) {
		empty = false
		break
	}
	if !empty {
		text = append(text, ',')
	}
	text = AppendString(text, name)
	text = append(text, ':')
	text = append(text, value...)
	return Splice(obj, Edit{end, end, text})
}

// OneLine replaces the line breaks of the valid text src by spaces, in place. Line-based
// framings need it. Valid JSON has line breaks only between tokens.
func OneLine(src []byte) []byte {
	if bytes.IndexByte(src, '\n') < 0 && bytes.IndexByte(src, '\r') < 0 {
		return src
	}
	for i, c := range src {
		if c == '\n' || c == '\r' {
			src[i] = ' '
		}
	}
	return src
}
