package content

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"sync"

	"goblin/tui/look"
)

// Bounds of the images that are drawn: a decoder needs up to eight bytes a pixel.
const (
	mostImage   = 8 << 20 // bytes
	mostPixels  = 6 << 20
	pictureWide = 100 // cells
	pictureHigh = 32  // lines
	samples     = 4   // pixels of an image that make one of a line, each way
)

// dot is one cell of a picture.
type dot struct {
	style look.Style
	char  string
}

// decoding lets one image at a time take the memory that it needs, of all screens.
var decoding sync.Mutex

// picture adds an image as half blocks, two pixels a cell, or as shades where there are no
// colours. It reports whether there is one to be seen.
func (b *builder) picture(data []byte) bool {
	img := decoded(data)
	if img == nil || b.room < 4 {
		return false
	}
	size := img.Bounds()
	cols := min(size.Dx(), b.room, pictureWide)
	lines := max((size.Dy()*cols/max(size.Dx(), 1)+1)/2, 1)
	if lines > pictureHigh {
		lines = pictureHigh
		cols = max(min(size.Dx()*lines*2/max(size.Dy(), 1), cols), 1)
	}
	pixel := func(x, y int) color.RGBA { return average(img, x, y, cols, lines*2) }
	for y := range lines {
		row := make([]dot, cols)
		for x := range cols {
			row[x] = b.dot(pixel(x, 2*y), pixel(x, 2*y+1))
		}
		b.d.pictures = append(b.d.pictures, row)
		b.add(line{off: uint32(b.at()), ink: inkPlain, flags: pictured, arg: uint32(len(b.d.pictures) - 1)})
	}
	b.d.longest = max(b.d.longest, cols)
	return true
}

// decoded is an image of a format that the standard library reads, nil for others, for
// what is too large, and for what is broken.
func decoded(data []byte) (img image.Image) {
	if len(data) > mostImage {
		return nil
	}
	var read func(io.Reader) (image.Image, error)
	var config func(io.Reader) (image.Config, error)
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		read, config = png.Decode, png.DecodeConfig
	case bytes.HasPrefix(data, []byte("GIF8")):
		read, config = gif.Decode, gif.DecodeConfig
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		read, config = jpeg.Decode, jpeg.DecodeConfig
	default:
		return nil
	}
	decoding.Lock()
	defer decoding.Unlock()
	defer func() {
		if recover() != nil { // a decoder at work on foreign input
			img = nil
		}
	}()
	c, err := config(bytes.NewReader(data))
	if err != nil || c.Width < 1 || c.Height < 1 || c.Width > mostPixels/c.Height {
		return nil
	}
	img, err = read(bytes.NewReader(data))
	if err != nil || img.Bounds().Empty() {
		return nil
	}
	return img
}

// average is the colour of a part of an image, one of cols times rows, on black.
func average(img image.Image, x, y, cols, rows int) color.RGBA {
	r := img.Bounds()
	x0, x1 := r.Dx()*x/cols, max(r.Dx()*(x+1)/cols, r.Dx()*x/cols+1)
	y0, y1 := r.Dy()*y/rows, max(r.Dy()*(y+1)/rows, r.Dy()*y/rows+1)
	var red, green, blue, n uint32
	for py := y0; py < min(y1, r.Dy()); py += max((y1-y0)/samples, 1) {
		for px := x0; px < min(x1, r.Dx()); px += max((x1-x0)/samples, 1) {
			pr, pg, pb, _ := img.At(r.Min.X+px, r.Min.Y+py).RGBA() // premultiplied: on black
			red, green, blue, n = red+pr>>8, green+pg>>8, blue+pb>>8, n+1
		}
	}
	n = max(n, 1)
	return color.RGBA{uint8(red / n), uint8(green / n), uint8(blue / n), 255}
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
		return dot{look.Style(fmt.Sprintf("\x1b[38;5;%d;48;5;%dm", cube(upper), cube(lower))), "▀"}
	}
	return dot{look.Style(fmt.Sprintf("\x1b[38;2;%d;%d;%d;48;2;%d;%d;%dm", upper.R, upper.G, upper.B, lower.R, lower.G, lower.B)), "▀"}
}

// luminance is how light a colour is, up to 255 (ITU-R BT.601).
func luminance(c color.RGBA) int { return (299*int(c.R) + 587*int(c.G) + 114*int(c.B)) / 1000 }

// cube is the nearest of the 216 colours that terminals with 256 have for sure.
func cube(c color.RGBA) int {
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
	p, row := &v.out, v.doc.pictures[l.arg]
	row = row[min(v.left, len(row)):]
	row = row[:min(len(row), room)]
	for _, d := range row {
		p.set(d.style)
		p.string(d.char)
	}
	p.set("")
	p.string(look.Blank(room - len(row)))
}
