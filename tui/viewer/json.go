package viewer

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"goblin/registry/rawjson"
	"goblin/registry/termtext"
)

// json shows JSON up to the limit. Other text stays unchanged below the syntax error.
func (b *builder) json(k *Section) {
	if len(k.Data) == 0 {
		b.empty()
		return
	}
	var fault *rawjson.SyntaxError
	if errors.As(rawjson.Valid(k.Data), &fault) {
		b.line(inkWarn, "not JSON: "+fault.Explain(k.Data), 0)
		b.blank()
		b.plain(string(k.Data))
		return
	}
	deep := countLevels(k.Data)
	b.d.levels = max(b.d.levels, deep)
	p := printer{b: b, src: k.Data, fold: foldDepth(deep, b.o), start: b.pos(), from: b.pos()}
	p.node = uint64(len(b.d.starts)) * fnvPrime // different nodes for each section
	p.space()
	p.value(0)
	shown := p.i
	if !p.full {
		p.end(0)
		shown = len(k.Data)
	}
	b.noteTruncation(shown, len(k.Data))
}

// countLevels returns the number of nested non-empty containers below the outermost
// value.
func countLevels(src []byte) int {
	depth, deep, fresh := 0, 0, false
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case ' ', '\n', '\r', '\t':
			continue
		case '{', '[':
			depth++
			fresh = true
			continue
		case '}', ']':
			depth--
			fresh = false
			continue
		case '"':
			for i++; i < len(src) && src[i] != '"'; i++ {
				if src[i] == '\\' {
					i++
				}
			}
		}
		if fresh {
			deep, fresh = max(deep, depth), false
		}
	}
	return max(deep-1, 0)
}

// foldDepth limits the depth to the existing levels, so each press of the fold key
// changes something.
func foldDepth(deep int, o Options) int {
	if o.Depth < 0 {
		return -1
	}
	return max(0, min(o.Depth, deep)-o.Fold)
}

// printer lays out JSON token by token, exactly as in the source except for escapes of
// printable characters. It stops at the output limit, so memory is bounded. The source is
// valid.
type printer struct {
	b     *builder
	src   []byte
	i     int
	fold  int
	start int // start of the output in the arena
	from  int // start of the open line in the arena
	ink   ink
	full  bool
	node  uint64 // of the current value
}

// Hash constants for node ids. An id depends on the path of a node, so newer documents
// keep it.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func childID(node uint64, name []byte) uint64 {
	node ^= fnvOffset
	for _, c := range name {
		node = (node ^ uint64(c)) * fnvPrime
	}
	return node * fnvPrime
}

func (p *printer) space() { p.i = rawjson.AfterSpace(p.src, p.i) }

// scan returns the index after the next value.
func (p *printer) scan() int {
	end, _ := rawjson.Scan(p.src, p.i)
	return end
}

func (p *printer) peek() byte { return p.src[p.i] }

func (p *printer) end(depth int) {
	p.b.wrap(p.from, line{ink: inkPlain, indent: uint16(min(2*depth, p.b.lineWidth/2))}, 2)
	p.from, p.ink = p.b.pos(), inkPlain
	if p.from-p.start >= p.b.o.MaxBytes || p.b.err != nil {
		p.full = true
	}
}

func (p *printer) put(i ink, s string) {
	if p.ink != i {
		p.b.setInk(i)
		p.ink = i
	}
	p.b.put(s)
}

// slack is the longest token that is completed beyond the output limit, in bytes.
const slack = 256

// token writes the scalar before end, cut at the limit.
func (p *printer) token(i ink, end, depth int) {
	raw := p.src[p.i:end]
	if !p.b.o.Raw && len(raw) > briefFrom && bytes.HasPrefix(raw, []byte(`"data:`)) {
		if s, ok := rawjson.String(raw); ok {
			raw = rawjson.Quote(shortenDataURI(s))
		}
	}
	room := p.b.o.MaxBytes - (p.b.pos() - p.start)
	if len(raw) > max(room, slack) {
		s, _ := truncate(string(raw[:max(room, 0)]), max(room-1, 0))
		p.put(i, termtext.Line(s)+p.b.lk.Ellipsis)
		p.i += len(s)
		p.end(depth)
		p.full = true
		return
	}
	p.i = end
	if raw[0] == '"' && bytes.Contains(raw, []byte(`\u`)) {
		raw = decodeEscapes(raw)
	}
	for _, c := range raw {
		if c < ' ' || c > '~' {
			p.put(i, termtext.Line(string(raw)))
			return
		}
	}
	p.put(i, "")
	p.b.d.arena = append(p.b.d.arena, raw...)
}

func decodeEscapes(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		if raw[i] != '\\' || i+1 == len(raw) {
			out = append(out, raw[i])
			i++
			continue
		}
		r, n := decodeEscape(raw[i:])
		if r < 0xa1 || termtext.Line(string(r)) != string(r) {
			out = append(out, raw[i:i+n]...)
		} else {
			out = utf8.AppendRune(out, r)
		}
		i += n
	}
	return out
}

// decodeEscape returns the character of the numeric escape at the start of s, or 0, and
// the escape's length.
func decodeEscape(s []byte) (r rune, n int) {
	unit := func(s []byte) (rune, bool) {
		if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
			return 0, false
		}
		v, err := strconv.ParseUint(string(s[2:6]), 16, 16)
		return rune(v), err == nil
	}
	r, ok := unit(s)
	if !ok {
		return 0, 2
	}
	if utf16.IsSurrogate(r) {
		low, _ := unit(s[6:])
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			return 0, 6
		}
		return r, 12
	}
	return r, 6
}

func (p *printer) value(depth int) {
	switch p.peek() {
	case '{':
		p.container(depth, '}', "member")
		return
	case '[':
		p.container(depth, ']', "item")
		return
	}
	i := inkWord
	switch c := p.peek(); {
	case c == '"':
		i = inkString
	case c == '-' || c >= '0' && c <= '9':
		i = inkNumber
	}
	p.token(i, p.scan(), depth)
}

func (p *printer) container(depth int, closer byte, what string) {
	start := p.i
	opener := string(p.src[start])
	p.i++
	p.space()
	if p.peek() == closer {
		p.i++
		p.put(inkPunct, opener+string(closer))
		return
	}
	node := p.node
	defer func() { p.node = node }()
	shut := (p.fold >= 0 && depth > p.fold) != p.b.o.Toggled[node]
	p.b.d.nodes = append(p.b.d.nodes, docNode{line: len(p.b.d.lines), id: node, folded: shut})
	if shut {
		p.i = start
		p.putFolded(opener, string(closer), what)
		return
	}
	p.put(inkPunct, opener)
	p.end(depth)
	for n := 0; !p.full; n++ {
		p.node = childID(node, strconv.AppendInt(nil, int64(n), 10))
		if closer == '}' {
			from := p.i
			p.name(depth + 1)
			if p.full {
				return
			}
			p.node = childID(node, p.src[from:p.i])
		}
		p.value(depth + 1)
		if p.full {
			return
		}
		p.space()
		switch p.peek() {
		case ',':
			p.i++
			p.put(inkPunct, ",")
			p.end(depth + 1)
			p.space()
		case closer:
			p.i++
			p.end(depth + 1)
			p.put(inkPunct, string(closer))
			return
		}
	}
}

func (p *printer) name(depth int) {
	p.token(inkName, p.scan(), depth)
	if p.full {
		return
	}
	p.space()
	p.i++ // the colon
	p.space()
	p.put(inkPunct, ": ")
}

func (p *printer) putFolded(opener, closer, what string) {
	end := p.scan()
	raw, n := p.src[p.i:end], 0
	for range rawjson.Members(raw) {
		n++
	}
	for range rawjson.Elements(raw) {
		n++
	}
	if n != 1 {
		what += "s"
	}
	p.put(inkPunct, opener)
	p.put(inkDim, fmt.Sprintf("%s %d %s", p.b.lk.Folded, n, what))
	p.put(inkPunct, closer)
	p.i = end
}
