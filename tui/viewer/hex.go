package viewer

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"goblin/registry/termtext"
	"goblin/tui/theme"
)

const (
	hexShown  = 256       // minimum bytes of a dump
	hexLines  = 16        // minimum lines of a dump
	imageHead = 256 << 10 // bytes searched for the dimensions of an image
)

func (b *builder) hex(k *Section) {
	b.fields([]Field{
		{Label: "type", Value: k.MIME},
		{Label: "size", Value: formatBytes(int64(len(k.Data)))},
		{Label: "sha256", Value: b.sha256(k.Data)},
		{Label: "image", Value: dimensions(k.Data)},
	})
	if len(k.Data) == 0 {
		return
	}
	b.blank()
	err := b.picture(k.Data)
	if err == nil {
		return
	}
	b.noteUndrawn(k, err)
	shown := k.Data[:min(len(k.Data), max(hexShown, hexLines*perLine(b.lineWidth)))]
	for s := range dump(shown, b.lineWidth) {
		from := b.pos()
		b.put(s)
		b.addUnwrapped(from, line{ink: inkPlain})
	}
	if len(shown) < len(k.Data) {
		b.blank()
		b.line(inkDim, fmt.Sprintf("first %d of %d bytes%s", len(shown), len(k.Data), b.openHint()), 0)
	}
}

func (b *builder) noteUndrawn(k *Section, why error) {
	name := cmp.Or(k.MIME, "image")
	switch {
	case b.lk.NoImages:
		return
	case !errors.Is(why, errNoImage):
	case strings.HasPrefix(k.MIME, "image/"):
		why = errors.New("only png, jpeg, gif and webp are supported")
	default:
		return
	}
	b.line(inkWarn, termtext.Line(fmt.Sprintf("%s, %s, not drawn: %s", name, formatBytes(int64(len(k.Data))), why)), 0)
	b.blank()
}

// formatBytes returns a size such as "5.2 MB (5200000 bytes)".
func formatBytes(n int64) string {
	number, unit := splitSize(n)
	if unit == "B" {
		return number + " B"
	}
	return fmt.Sprintf("%s %s (%d bytes)", number, unit, n)
}

func (b *builder) sha256(data []byte) string {
	h := sha256.New()
	for len(data) > 0 && b.err == nil {
		n := min(len(data), 1<<20)
		h.Write(data[:n])
		data = data[n:]
		b.err = b.ctx.Err()
	}
	return hex.EncodeToString(h.Sum(nil))
}

// dump yields lines like those of hexdump -C, of at most room cells.
func dump(data []byte, room int) func(func(string) bool) {
	per := perLine(room)
	return func(yield func(string) bool) {
		for at := 0; at < len(data); at += per {
			row := data[at:min(at+per, len(data))]
			var out, text []byte
			out = fmt.Appendf(out, "%08x ", at)
			for i, c := range row {
				if i%8 == 0 {
					out = append(out, ' ')
				}
				out = fmt.Appendf(out, "%02x ", c)
				if c < ' ' || c > '~' {
					c = '.'
				}
				text = append(text, c)
			}
			out = append(out, theme.Spaces(hexWidth(per)-per-2-len(out))...)
			out = append(append(append(out, '|'), text...), '|')
			if !yield(string(out)) {
				return
			}
		}
	}
}

func perLine(room int) int {
	per := 2
	for per < 64 && hexWidth(per+step(per)) <= room {
		per += step(per)
	}
	return per
}

func step(per int) int {
	switch {
	case per < 8:
		return 2
	case per < 16:
		return 4
	}
	return 8
}

func hexWidth(n int) int { return 9 + (n+7)/8 + 3*n + 1 + n + 2 }

// dimensions returns the format and pixel size of an image, or "".
func dimensions(data []byte) string {
	data = data[:min(len(data), imageHead)]
	f := formatOf(data)
	if f == nil {
		return ""
	}
	c, err := f.config(bytes.NewReader(data))
	if err != nil {
		return f.name + ", dimensions unknown"
	}
	return fmt.Sprintf("%s, %d x %d pixels", f.name, c.Width, c.Height)
}
