package viewer

import (
	"strings"

	"goblin/tui/theme"
)

// Marks of emphasis, longest first.
var emphasis = [...]struct {
	mark string
	ink  ink
}{{"**", inkBold}, {"__", inkBold}, {"*", inkEm}, {"_", inkEm}}

// inliner formats one paragraph in linear time: failed searches for a closing mark are
// not repeated, successful ones are cached.
type inliner struct {
	b        *builder
	s        string
	i        int
	base     ink
	ends     [len(emphasis)]int // offset of the closing mark, 0 if none is open
	unclosed [len(emphasis)]bool
	ticks    [4]bool // no run of that many backticks follows
	places   [3]int  // of the next "]", ")" and ">"
}

func (b *builder) inline(s string, base ink) {
	in := inliner{b: b, s: s, base: base}
	plain := 0 // start of plain text
	for in.i < len(s) {
		at := in.i
		switch s[at] {
		case '\\', '`', '*', '_', '[', '!', '<', '&':
		default:
			in.i++
			continue
		}
		b.put(s[plain:at])
		if !in.special(s[at]) {
			in.i = at + 1
			b.put(s[at:in.i])
		}
		plain = in.i
	}
	b.put(s[plain:])
}

// special formats the construct at i, or returns false.
func (in *inliner) special(c byte) bool {
	switch c {
	case '\\':
		if rest := in.s[in.i+1:]; rest != "" && strings.IndexByte("\\`*_{}[]()#+-.!|<>~&", rest[0]) >= 0 {
			in.b.put(rest[:1])
			in.i += 2
			return true
		}
	case '`':
		return in.code()
	case '*', '_':
		return in.emphasis()
	case '[':
		return in.link(in.i, "")
	case '!':
		return strings.HasPrefix(in.s[in.i:], "![") && in.link(in.i+1, "image: ")
	case '<':
		end := in.index(2, '>')
		if end > 0 && isURL(in.s[in.i+1:end]) {
			in.show(inkLink, in.s[in.i+1:end])
			in.i = end + 1
			return true
		}
	case '&':
		for _, e := range [...][2]string{{"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", `"`}, {"&#39;", "'"}, {"&nbsp;", " "}} {
			if strings.HasPrefix(in.s[in.i:], e[0]) {
				in.b.put(e[1])
				in.i += len(e[0])
				return true
			}
		}
	}
	return false
}

func isURL(s string) bool {
	scheme, _, ok := strings.Cut(s, ":")
	return ok && !strings.ContainsAny(s, " <") && (scheme == "http" || scheme == "https" || scheme == "mailto")
}

func (in *inliner) ink() ink {
	for k, end := range in.ends {
		if end > in.i {
			return emphasis[k].ink
		}
	}
	return in.base
}

func (in *inliner) show(i ink, s string) {
	in.b.setInk(i)
	in.b.put(s)
	in.b.setInk(in.ink())
}

func (in *inliner) index(slot int, c byte) int { return in.indexFrom(slot, c, in.i) }

func (in *inliner) indexFrom(slot int, c byte, i int) int {
	if at := in.places[slot]; at < 0 || at >= i && at > 0 {
		return at
	}
	at := strings.IndexByte(in.s[i:], c)
	if at >= 0 {
		at += i
	}
	in.places[slot] = at
	return at
}

func (in *inliner) code() bool {
	rest := in.s[in.i:]
	n := len(rest) - len(strings.TrimLeft(rest, "`"))
	if n >= len(in.ticks) {
		in.b.put(rest[:n])
		in.i += n
		return true
	}
	if in.ticks[n] {
		return false
	}
	end := strings.Index(rest[n:], rest[:n])
	if end < 0 {
		in.ticks[n] = true
		return false
	}
	text := rest[n : n+end]
	if t := strings.TrimSpace(text); n > 1 && t != "" {
		text = t
	}
	if in.b.lk.Code == "" {
		text = "`" + text + "`"
	}
	in.i += n + end + n
	in.show(inkCode, text)
	return true
}

func (in *inliner) emphasis() bool {
	for k, e := range emphasis {
		if !strings.HasPrefix(in.s[in.i:], e.mark) {
			continue
		}
		n := len(e.mark)
		if in.i > 0 && in.ends[k] == in.i {
			in.ends[k] = 0
			in.putMark(e.ink, e.mark)
			in.i += n
			in.b.setInk(in.ink())
			return true
		}
		if in.ends[k] > in.i || !in.opens(n) || in.unclosed[k] {
			continue
		}
		if in.ends[k] = in.closingMark(e.mark); in.ends[k] == 0 {
			in.unclosed[k] = true
			continue
		}
		in.i += n
		in.b.setInk(in.ink())
		in.putMark(e.ink, e.mark)
		return true
	}
	return false
}

// putMark writes a mark of emphasis if the theme has no style for it.
func (in *inliner) putMark(i ink, mark string) {
	style := in.b.lk.Underline
	if i == inkBold {
		style = in.b.lk.Bold
	}
	if style == theme.Style("") {
		in.b.put(mark)
	}
}

func (in *inliner) opens(n int) bool {
	if in.i+n >= len(in.s) || in.s[in.i+n] == ' ' {
		return false
	}
	return in.s[in.i] == '*' || in.i == 0 || !wordByte(in.s[in.i-1])
}

// closingMark returns the offset of the mark that closes the one at i, or 0.
func (in *inliner) closingMark(mark string) int {
	c := mark[0]
	for at := in.i + len(mark) + 1; ; {
		k := strings.Index(in.s[min(at, len(in.s)):], mark)
		if k < 0 {
			return 0
		}
		at += k
		end := at + len(mark)
		run := end
		for run < len(in.s) && in.s[run] == c {
			run++
		}
		switch {
		case in.s[at-1] == ' ', in.s[at-1] == c,
			c == '_' && run < len(in.s) && wordByte(in.s[run]),
			len(mark) == 1 && run-at == 2:
			at = run
		case len(mark) == 1:
			return at // of three marks, the outer two close the surrounding emphasis
		default:
			return run - len(mark)
		}
	}
}

func wordByte(c byte) bool {
	return c >= 0x80 || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// link shows [text](url) as the text, followed by the URL if it differs.
func (in *inliner) link(at int, what string) bool {
	end := in.indexFrom(0, ']', at)
	if end < 0 || end+1 >= len(in.s) || in.s[end+1] != '(' {
		return false
	}
	last := in.indexFrom(1, ')', end)
	if last < 0 {
		return false
	}
	text := strings.Trim(in.s[at+1:end], "*_`")
	url, _, _ := strings.Cut(strings.TrimSpace(in.s[end+2:last]), " ")
	url = strings.Trim(url, "<>")
	in.i = last + 1
	if text == "" {
		text, url = url, ""
	}
	in.b.put(what)
	in.show(inkLink, text)
	if url != "" && url != text {
		in.b.setInk(inkDim)
		in.b.put(" (" + url + ")")
		in.b.setInk(in.ink())
	}
	return true
}
