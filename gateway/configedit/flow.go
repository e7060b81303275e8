package configedit

import (
	"bytes"
	"errors"
	"strings"
)

type span struct{ from, to int }

type item struct {
	key        string
	at, value  span
	separating int // of the comma after it, or -1
}

// braces is a mapping in JSON with comments or YAML.
type braces struct {
	items       []item
	open, close int // offsets
}

var errFlow = errors.New("malformed braces")

// flow is a tokenizer. It only finds where plain YAML texts end.
type flow struct {
	text []byte
	at   int
}

func (f *flow) blanks() {
	for f.at < len(f.text) {
		rest := f.text[f.at:]
		switch {
		case strings.IndexByte(" \t\n\r", rest[0]) >= 0:
			f.at++
		case rest[0] == '#', bytes.HasPrefix(rest, []byte("//")):
			if end := bytes.IndexByte(rest, '\n'); end >= 0 {
				f.at += end
			} else {
				f.at = len(f.text)
			}
		case bytes.HasPrefix(rest, []byte("/*")):
			end := bytes.Index(rest, []byte("*/"))
			if end < 0 {
				f.at = len(f.text)
				return
			}
			f.at += end + 2
		default:
			return
		}
	}
}

func (f *flow) value() (span, error) {
	from := f.at
	if f.at >= len(f.text) {
		return span{}, errFlow
	}
	switch c := f.text[f.at]; c {
	case '{', '[':
		depth := 0
		for f.at < len(f.text) {
			f.blanks()
			if f.at >= len(f.text) {
				break
			}
			switch f.text[f.at] {
			case '{', '[':
				depth++
				f.at++
			case '}', ']':
				depth--
				f.at++
				if depth == 0 {
					return span{from, f.at}, nil
				}
			case '"', '\'':
				if err := f.quoted(); err != nil {
					return span{}, err
				}
			case ',', ':':
				f.at++
			default:
				f.plain()
			}
		}
		return span{}, errFlow
	case '"', '\'':
		if err := f.quoted(); err != nil {
			return span{}, err
		}
		return span{from, f.at}, nil
	case ',', '}', ']', ':':
		return span{from, from}, nil // no value
	default:
		f.plain()
		to := f.at
		for to > from && strings.IndexByte(" \t\n\r", f.text[to-1]) >= 0 {
			to--
		}
		return span{from, to}, nil
	}
}

func (f *flow) quoted() error {
	quote := f.text[f.at]
	for f.at++; f.at < len(f.text); f.at++ {
		switch c := f.text[f.at]; {
		case quote == '"' && c == '\\':
			f.at++
		case c == quote && quote == '\'' && f.at+1 < len(f.text) && f.text[f.at+1] == quote:
			f.at++
		case c == quote:
			f.at++
			return nil
		}
	}
	return errFlow
}

func (f *flow) plain() {
	for f.at++; f.at < len(f.text); f.at++ {
		c := f.text[f.at]
		space := strings.IndexByte(" \t\n\r", f.text[f.at-1]) >= 0
		next := byte(' ')
		if f.at+1 < len(f.text) {
			next = f.text[f.at+1]
		}
		if strings.IndexByte(",{}[]", c) >= 0 || c == ':' && strings.IndexByte(" \t\n\r,}]", next) >= 0 || c == '#' && space ||
			c == '/' && space && (next == '/' || next == '*') {
			return
		}
	}
}

func mapping(text []byte, open int) (*braces, error) {
	if open >= len(text) || text[open] != '{' {
		return nil, errFlow
	}
	f := &flow{text: text, at: open + 1}
	b := &braces{open: open}
	for {
		f.blanks()
		if f.at >= len(text) {
			return nil, errFlow
		}
		if text[f.at] == '}' {
			b.close = f.at
			return b, nil
		}
		at, err := f.value()
		if err != nil || at.from == at.to {
			return nil, errFlow
		}
		it := item{at: at, separating: -1, key: unquote(text[at.from:at.to])}
		f.blanks()
		if f.at < len(text) && text[f.at] == ':' {
			f.at++
			f.blanks()
			if it.value, err = f.value(); err != nil {
				return nil, err
			}
		} else {
			it.value = span{at.to, at.to}
		}
		f.blanks()
		if f.at < len(text) && text[f.at] == ',' {
			it.separating = f.at
			f.at++
		}
		b.items = append(b.items, it)
	}
}

func (b *braces) find(key string) (at int) {
	for i := range b.items {
		if b.items[i].key == key {
			return i
		}
	}
	return -1
}

// without also removes the entry's line if it has its own.
func (b *braces) without(text []byte, at int) []byte {
	it := b.items[at]
	from, to := it.at.from, it.value.to
	switch {
	case it.separating >= 0:
		to = it.separating + 1
	case at > 0: // the last one: the comma before it becomes redundant
		from = b.items[at-1].separating
		if len(bytes.Trim(text[from+1:it.at.from], " ")) == 0 { // on the same line
			return append(bytes.Clone(text[:from]), text[to:]...)
		}
		return append(append(bytes.Clone(text[:from]), text[from+1:lineStart(text, it.at.from)]...), text[lineEnd(text, to):]...)
	}
	if start := lineStart(text, from); len(bytes.TrimSpace(text[start:from])) == 0 && lineEnd(text, to) > to {
		return append(bytes.Clone(text[:start]), text[lineEnd(text, to):]...)
	}
	for to < len(text) && text[to] == ' ' {
		to++
	}
	return append(bytes.Clone(text[:from]), text[to:]...)
}

// lineStart returns at if more than white space precedes it in the line.
func lineStart(text []byte, at int) int {
	start := bytes.LastIndexByte(text[:at], '\n') + 1
	if len(bytes.TrimSpace(text[start:at])) > 0 {
		return at
	}
	return start
}

// lineEnd returns at if more than white space follows it in the line.
func lineEnd(text []byte, at int) int {
	end := bytes.IndexByte(text[at:], '\n')
	if end < 0 {
		if len(bytes.TrimSpace(text[at:])) > 0 {
			return at
		}
		return len(text)
	}
	if len(bytes.TrimSpace(text[at:at+end])) > 0 {
		return at
	}
	return at + end + 1
}
