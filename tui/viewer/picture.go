package viewer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"sync"

	"golang.org/x/image/webp"

	"goblin/tui/images"
	"goblin/tui/theme"
)

// Limits of drawn images. A decoder needs up to eight bytes per pixel.
const (
	maxImageBytes = 8 << 20
	maxPixels     = 6 << 20
	maxImages     = 32  // images per document
	pictureWide   = 100 // cells
	pictureHigh   = 32  // lines
	samples       = 4   // image pixels per block pixel, each way
)

type dot struct {
	style theme.Style
	char  string
}

// strip is one line of a picture, drawn as blocks or by the terminal.
type strip struct {
	dots  []dot
	image *images.Image
	row   int
}

func (s strip) cells() int {
	if s.image != nil {
		return s.image.Cols
	}
	return len(s.dots)
}

// decoding serializes decoders across all UIs to limit memory.
var decoding sync.Mutex

// picture adds an image with the terminal's protocol, or as half blocks, or as shades
// without colours. It returns errNoImage for other data, or the reason why it draws
// nothing.
func (b *builder) picture(data []byte) error {
	f := formatOf(data)
	switch {
	case f == nil || b.lk.NoImages:
		return errNoImage
	case b.lineWidth < 4:
		return errors.New("not enough space")
	case b.d.images == maxImages:
		return fmt.Errorf("the limit of %d images is reached", maxImages)
	}
	img, err := f.decoded(data)
	if err != nil {
		return err
	}
	if b.lk.Images.Protocol() != images.None {
		err = b.image(img)
	} else {
		b.blocks(img)
	}
	if err == nil {
		b.d.images++
	}
	return err
}

var errNoImage = errors.New("no image")

func (b *builder) image(img image.Image) error {
	g, size := b.lk.Images, img.Bounds()
	cols, rows := g.Size(size.Dx(), size.Dy(), min(b.lineWidth, pictureWide), pictureHigh)
	m, err := g.Image(img, cols, rows)
	if err != nil {
		return err
	}
	for row := range m.Rows {
		b.strip(strip{image: m, row: row})
	}
	return nil
}

func (b *builder) blocks(img image.Image) {
	size := img.Bounds()
	cols := min(size.Dx(), b.lineWidth, pictureWide)
	lines := max((size.Dy()*cols/max(size.Dx(), 1)+1)/2, 1)
	if lines > pictureHigh {
		lines = pictureHigh
		cols = max(min(size.Dx()*lines*2/max(size.Dy(), 1), cols), 1)
	}
	scaled := images.Scale(img, cols, lines*2)
	pixel := func(x, y int) color.RGBA {
		red, green, blue, _ := scaled.At(x, y).RGBA() // premultiplied, so transparent becomes black
		return color.RGBA{uint8(red >> 8), uint8(green >> 8), uint8(blue >> 8), 255}
	}
	for y := range lines {
		row := make([]dot, cols)
		for x := range cols {
			row[x] = b.dot(pixel(x, 2*y), pixel(x, 2*y+1))
		}
		b.strip(strip{dots: row})
	}
}

func (b *builder) strip(s strip) {
	b.d.pictures = append(b.d.pictures, s)
	b.add(line{off: uint32(b.pos()), ink: inkPlain, flags: pictured, arg: uint32(len(b.d.pictures) - 1)})
	b.d.longest = max(b.d.longest, s.cells())
}

type format struct {
	name   string
	is     func(data []byte) bool
	decode func(io.Reader) (image.Image, error)
	config func(io.Reader) (image.Config, error)
}

const pngHead = "\x89PNG\r\n\x1a\n"

// decodePNG ignores wrong checksums, which are common in images edited by hand.
func decodePNG(r io.Reader) (image.Image, error) {
	data, err := io.ReadAll(r) // reads from memory
	if err != nil {
		return nil, err
	}
	for at := len(pngHead); at+12 <= len(data); {
		n := int64(binary.BigEndian.Uint32(data[at:]))
		end := int64(at) + 8 + n
		if end+4 > int64(len(data)) {
			break
		}
		binary.BigEndian.PutUint32(data[end:], crc32.ChecksumIEEE(data[at+4:end]))
		at = int(end) + 4
	}
	return png.Decode(bytes.NewReader(data))
}

func hasPrefix(with string) func([]byte) bool {
	return func(data []byte) bool { return bytes.HasPrefix(data, []byte(with)) }
}

func formatOf(data []byte) *format {
	for _, f := range []format{
		{"png", hasPrefix(pngHead), decodePNG, png.DecodeConfig},
		{"gif", hasPrefix("GIF8"), gif.Decode, gif.DecodeConfig},
		{"jpeg", hasPrefix("\xff\xd8\xff"), jpeg.Decode, jpeg.DecodeConfig},
		{"webp", func(d []byte) bool { return len(d) >= 12 && string(d[:4]) == "RIFF" && string(d[8:12]) == "WEBP" }, webp.Decode, webp.DecodeConfig},
	} {
		if f.is(data) {
			return &f
		}
	}
	return nil
}

func (f *format) decoded(data []byte) (img image.Image, err error) {
	if len(data) > maxImageBytes {
		return nil, fmt.Errorf("it is larger than %s", formatBytes(maxImageBytes))
	}
	decoding.Lock()
	defer decoding.Unlock()
	defer func() {
		if recover() != nil { // a decoder may panic on untrusted input
			img, err = nil, errors.New("invalid image")
		}
	}()
	c, err := f.config(bytes.NewReader(data))
	switch {
	case err != nil:
		return nil, fmt.Errorf("invalid image: %w", err)
	case c.Width < 1 || c.Height < 1:
		return nil, errors.New("no pixels")
	case c.Width > maxPixels/c.Height:
		return nil, fmt.Errorf("%d x %d pixels exceed the limit of %d", c.Width, c.Height, maxPixels)
	}
	img, err = f.decode(bytes.NewReader(data))
	switch {
	case err != nil:
		return nil, fmt.Errorf("invalid image: %w", err)
	case img.Bounds().Empty():
		return nil, errors.New("no pixels")
	}
	return img, nil
}

// dot draws two pixels, one above the other.
func (b *builder) dot(upper, lower color.RGBA) dot {
	if b.lk.Colours < 256 || b.lk.ASCII {
		shades := []string{" ", "░", "▒", "▓", "█"}
		if b.lk.ASCII {
			shades = []string{" ", ".", ":", "-", "=", "+", "*", "#", "%", "@"}
		}
		light := (luminance(upper) + luminance(lower)) / 2
		return dot{char: shades[light*(len(shades)-1)/255]}
	}
	if b.lk.Colours == 256 {
		return dot{theme.Style(fmt.Sprintf("\x1b[38;5;%d;48;5;%dm", color256(upper), color256(lower))), "▀"}
	}
	return dot{theme.Style(fmt.Sprintf("\x1b[38;2;%d;%d;%d;48;2;%d;%d;%dm", upper.R, upper.G, upper.B, lower.R, lower.G, lower.B)), "▀"}
}

// luminance returns the brightness of a colour, from 0 to 255 (ITU-R BT.601).
func luminance(c color.RGBA) int { return (299*int(c.R) + 587*int(c.G) + 114*int(c.B)) / 1000 }

func color256(c color.RGBA) int {
	part := func(v uint8) int {
		if v < 48 {
			return 0
		}
		return min(max((int(v)-35)/40, 1), 5)
	}
	return 16 + 36*part(c.R) + 6*part(c.G) + part(c.B)
}

func (v *View) picture(l line, room int) {
	p, s := &v.writer, v.doc.pictures[l.arg]
	from := min(v.left, s.cells())
	to := min(s.cells(), from+room)
	if s.image != nil {
		p.setStyle("")
		p.writeString(v.lk.Images.Row(s.image, s.row, from, to))
	} else {
		for _, d := range s.dots[from:to] {
			p.setStyle(d.style)
			p.writeString(d.char)
		}
		p.setStyle("")
	}
	p.writeString(theme.Spaces(room - (to - from)))
}
