package content

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"goblin/tui/look"
)

const (
	hexShown  = 256       // bytes of a dump at least
	hexLines  = 16        // lines of a dump at least
	imageHead = 256 << 10 // bytes in which the dimensions of an image must stand
)

func (b *builder) hex(k *Block) {
	whole := max(k.Size, int64(len(k.Data)))
	facts := []Fact{{Label: "type", Value: k.MIME}, {Label: "size", Value: bytesOf(whole)}}
	if whole == int64(len(k.Data)) {
		facts = append(facts, Fact{Label: "sha256", Value: b.sum(k.Data)})
	}
	b.facts(append(facts, Fact{Label: "image", Value: dimensions(k.Data)}))
	if len(k.Data) == 0 {
		return
	}
	b.blank()
	if whole == int64(len(k.Data)) && b.picture(k.Data) {
		return
	}
	shown := k.Data[:min(len(k.Data), max(hexShown, hexLines*perLine(b.room)))]
	for s := range dump(shown, b.room) {
		from := b.at()
		b.put(s)
		b.asIs(from, line{ink: inkPlain})
	}
	if int64(len(shown)) < whole {
		b.blank()
		b.line(inkDim, fmt.Sprintf("first %d of %d bytes, e opens all", len(shown), whole), 0)
	}
}

// bytesOf is "5.2 MiB (5452595 bytes)".
func bytesOf(n int64) string {
	number, unit := size(n)
	if unit == "B" {
		return number + " B"
	}
	return fmt.Sprintf("%s %s (%d bytes)", number, unit, n)
}

func (b *builder) sum(data []byte) string {
	h := sha256.New()
	for len(data) > 0 && b.err == nil {
		n := min(len(data), 1<<20)
		h.Write(data[:n])
		data = data[n:]
		b.err = b.ctx.Err()
	}
	return hex.EncodeToString(h.Sum(nil))
}

// dump yields lines like those of hexdump -C, with as many bytes as fit.
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
			out = append(out, look.Blank(hexWidth(per)-per-2-len(out))...)
			out = append(append(append(out, '|'), text...), '|')
			if !yield(string(out)) {
				return
			}
		}
	}
}

// perLine is how many bytes of a dump a line of so many cells has.
func perLine(room int) int {
	per := 2
	for per < 64 && hexWidth(per+step(per)) <= room {
		per += step(per)
	}
	return per
}

// step is by how much a line grows: few bytes stand where there is room for few.
func step(per int) int {
	switch {
	case per < 8:
		return 2
	case per < 16:
		return 4
	}
	return 8
}

// hexWidth is how many cells a line of n bytes takes.
func hexWidth(n int) int { return 9 + (n+7)/8 + 3*n + 1 + n + 2 }

// dimensions is the format and size of an image in pixels, "" for what is none.
func dimensions(data []byte) string {
	data = data[:min(len(data), imageHead)]
	var (
		decode func(io.Reader) (image.Config, error)
		format string
	)
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		format, decode = "png", png.DecodeConfig
	case bytes.HasPrefix(data, []byte("GIF8")):
		format, decode = "gif", gif.DecodeConfig
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		format, decode = "jpeg", jpeg.DecodeConfig
	case len(data) >= 30 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		format, decode = "webp", func(io.Reader) (image.Config, error) { return webp(data[12:30]) }
	default:
		return ""
	}
	c, err := decode(bytes.NewReader(data))
	if err != nil {
		return format + ", dimensions unknown"
	}
	return fmt.Sprintf("%s, %d x %d", format, c.Width, c.Height)
}

// webp reads the first chunk's header and the beginning of its data:
// https://developers.google.com/speed/webp/docs/riff_container
func webp(chunk []byte) (c image.Config, err error) {
	data := chunk[8:]
	u16 := func(i int) int { return int(binary.LittleEndian.Uint16(data[i:])) }
	switch string(chunk[:4]) {
	case "VP8 ":
		c.Width, c.Height = u16(6)&0x3fff, u16(8)&0x3fff
	case "VP8L":
		bits := binary.LittleEndian.Uint32(data[1:])
		c.Width, c.Height = int(bits&0x3fff)+1, int(bits>>14&0x3fff)+1
	case "VP8X":
		c.Width = u16(4) | int(data[6])<<16
		c.Height = u16(7) | int(data[9])<<16
		c.Width, c.Height = c.Width+1, c.Height+1
	default:
		err = image.ErrFormat
	}
	return c, err
}
