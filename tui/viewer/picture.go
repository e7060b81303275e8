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

// Bounds of the images that are drawn: a decoder needs up to eight bytes a pixel.
const (
	maxImageBytes = 8 << 20 // bytes
	maxPixels     = 6 << 20
	maxImages     = 32  // images of one document
	pictureWide   = 100 // cells
	pictureHigh   = 32  // lines
	samples       = 4   // pixels of an image that make one of a line, each way
)

// dot is one cell of a picture of blocks.
type dot struct {
	style theme.Style
	char  string
}

// strip is one line of a picture: blocks, or a row of cells that the terminal fills.
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

// decoding lets one image at a time take the memory that it needs, of all screens.
var decoding sync.Mutex

// picture adds an image: as the terminal draws images, else as half blocks, two pixels a
// cell, or as shades where there are no colours. The error says why there is none to be
// seen, if it is one.
func (b *builder) picture(data []byte) error {
	f := formatOf(data)
	switch {
	case f == nil || b.lk.NoImages:
		return errNoImage
	case b.lineWidth < 4:
		return errors.New("there is no room for it")
	case b.d.images == maxImages:
		return fmt.Errorf("%d images of this are drawn, that is enough", maxImages)
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

// image adds one that the terminal draws.
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

// blocks adds an image as characters.
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
		red, green, blue, _ := scaled.At(x, y).RGBA() // premultiplied: on black
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

// format is one of images that are drawn.
type format struct {
	name   string
	is     func(data []byte) bool
	decode func(io.Reader) (image.Image, error)
	config func(io.Reader) (image.Config, error)
}

const pngHead = "\x89PNG\r\n\x1a\n"

// decodePNG decodes a PNG whose checksums may be wrong, as those of images are that were
// changed by hand; other programs do not look at them.
func decodePNG(r io.Reader) (image.Image, error) {
	data, err := io.ReadAll(r) // of what is in memory
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

// formatOf is the format of an image, nil for what is none.
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

// decoded is an image; the error says what is wrong with it, or too large.
func (f *format) decoded(data []byte) (img image.Image, err error) {
	if len(data) > maxImageBytes {
		return nil, fmt.Errorf("images of up to %s are drawn", formatBytes(maxImageBytes))
	}
	decoding.Lock()
	defer decoding.Unlock()
	defer func() {
		if recover() != nil { // a decoder at work on foreign input
			img, err = nil, errors.New("it is broken")
		}
	}()
	c, err := f.config(bytes.NewReader(data))
	switch {
	case err != nil:
		return nil, fmt.Errorf("it is broken: %w", err)
	case c.Width < 1 || c.Height < 1:
		return nil, errors.New("it has no pixels")
	case c.Width > maxPixels/c.Height:
		return nil, fmt.Errorf("it says that it has %d x %d pixels, up to %d are drawn", c.Width, c.Height, maxPixels)
	}
	img, err = f.decode(bytes.NewReader(data))
	switch {
	case err != nil:
		return nil, fmt.Errorf("it is broken: %w", err)
	case img.Bounds().Empty():
		return nil, errors.New("it has no pixels")
	}
	return img, nil
}

// dot draws two pixels, one above the other, in a cell.
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

// luminance is how light a colour is, up to 255 (ITU-R BT.601).
func luminance(c color.RGBA) int { return (299*int(c.R) + 587*int(c.G) + 114*int(c.B)) / 1000 }

// color256 returns the nearest of the 216 colours that all terminals with 256 colours have.
func color256(c color.RGBA) int {
	part := func(v uint8) int {
		if v < 48 {
			return 0
		}
		return min(max((int(v)-35)/40, 1), 5)
	}
	return 16 + 36*part(c.R) + 6*part(c.G) + part(c.B)
}

// picture draws a line of a picture in exactly room cells.
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
