package rawjson

import (
	"bytes"
	"unicode/utf8"
)

// AppendString appends s as a JSON string. Unlike encoding/json it escapes
// only what the grammar demands (no HTML escaping); invalid UTF-8 becomes
// U+FFFD.
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

// Quote is [AppendString] into a new slice.
func Quote(s string) []byte { return AppendString(make([]byte, 0, len(s)+2), s) }

// Edit replaces the bytes from Start to End (exclusive) by Text.
type Edit struct {
	Start, End int
	Text       []byte
}

// ReplaceEdit is the edit that puts text in the place of inner, a part of outer
// (see [Offset]).
func ReplaceEdit(outer, inner, text []byte) Edit {
	at := Offset(outer, inner)
	return Edit{at, at + len(inner), text}
}

// AppendEdited appends src with the edits made. Edits are in the order of their
// places and do not overlap.
func AppendEdited(dst, src []byte, edits ...Edit) []byte {
	at := 0
	for _, e := range edits {
		dst = append(dst, src[at:e.Start]...)
		dst = append(dst, e.Text...)
		at = e.End
	}
	return append(dst, src[at:]...)
}

// SpliceParts is src with the edits made, as parts of src and the edits' texts to be
// put one behind the other.
func SpliceParts(src []byte, edits ...Edit) [][]byte {
	parts := make([][]byte, 0, 2*len(edits)+1)
	at := 0
	for _, e := range edits {
		parts = append(parts, src[at:e.Start], e.Text)
		at = e.End
	}
	return append(parts, src[at:])
}

// Splice is [AppendEdited] into a new slice of the right size. Without edits it
// returns src itself.
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

// SetMember returns obj, a valid object, with the member name set to the
// valid text value: the last of that name is replaced, a missing one added at
// the end.
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

// OneLine replaces the line breaks of the valid text src by spaces, in place:
// in valid JSON they stand only between tokens. Framings that end a message
// at a line break need it.
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
