package images

import (
	"bytes"
	"image"
	"image/color"
	"strconv"
)

// Levels of red, green and blue in the palette. It is the same for all parts of an image,
// so that they match.
const reds, greens, blues = 6, 7, 6

// index of pixels that show the terminal's background
const transparent = reds * greens * blues

func (e *entry) sixel(b *bytes.Buffer, r image.Rectangle) {
	if e.pal == nil {
		e.pal = dither(e.decoded())
	}
	// The 1 keeps pixels without a color unchanged.
	b.WriteString("\x1bP0;1;0q\"1;1;" + strconv.Itoa(r.Dx()) + ";" + strconv.Itoa(r.Dy()))
	var used [transparent]bool
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for _, c := range e.pal.Pix[e.pal.PixOffset(r.Min.X, y):e.pal.PixOffset(r.Max.X, y)] {
			if c != transparent && !used[c] {
				used[c] = true
				rgb := e.pal.Palette[c].(color.NRGBA)
				b.WriteString("#" + strconv.Itoa(int(c)) + ";2;" + percent(rgb.R) + ";" + percent(rgb.G) + ";" + percent(rgb.B))
			}
		}
	}
	for y := r.Min.Y; y < r.Max.Y; y += 6 {
		if y > r.Min.Y {
			b.WriteByte('-')
		}
		e.band(b, image.Rect(r.Min.X, y, r.Max.X, min(y+6, r.Max.Y)))
	}
	b.WriteString("\x1b\\")
}

func percent(v uint8) string { return strconv.Itoa((int(v)*100 + 127) / 255) }

// band writes up to six lines of pixels, color by color.
func (e *entry) band(b *bytes.Buffer, r image.Rectangle) {
	var in [transparent]bool
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for _, c := range e.pal.Pix[e.pal.PixOffset(r.Min.X, y):e.pal.PixOffset(r.Max.X, y)] {
			if c != transparent {
				in[c] = true
			}
		}
	}
	first := true
	for c := range in {
		if !in[c] {
			continue
		}
		if !first {
			b.WriteByte('$')
		}
		first = false
		b.WriteString("#" + strconv.Itoa(c))
		last, n := byte(0), 0
		for x := r.Min.X; x < r.Max.X; x++ {
			bits := byte(0)
			for y := r.Min.Y; y < r.Max.Y; y++ {
				if e.pal.Pix[y*e.pal.Stride+x] == uint8(c) {
					bits |= 1 << (y - r.Min.Y)
				}
			}
			if char := bits + '?'; char != last {
				writeRun(b, last, n)
				last, n = char, 0
			}
			n++
		}
		writeRun(b, last, n)
	}
}

func writeRun(b *bytes.Buffer, char byte, n int) {
	if n > 3 {
		b.WriteString("!" + strconv.Itoa(n))
		n = 1
	}
	for range n {
		b.WriteByte(char)
	}
}

// dither converts an image to the palette (Floyd and Steinberg).
func dither(img *image.NRGBA) *image.Paletted {
	w, h := img.Rect.Dx(), img.Rect.Dy()
	out := image.NewPaletted(image.Rect(0, 0, w, h), palette())
	levels := [3]int{reds, greens, blues}
	row, next := make([][3]int, w+2), make([][3]int, w+2) // in sixteenths
	for y := range h {
		for x := range w {
			p := img.Pix[y*img.Stride+4*x:]
			if p[3] < 128 {
				out.Pix[y*out.Stride+x] = transparent
				continue
			}
			index := 0
			for c, n := range levels {
				v := min(max(int(p[c])+(row[x+1][c]+8)>>4, 0), 255)
				at := (v*(n-1) + 127) / 255
				index = index*n + at
				off := v - at*255/(n-1)
				row[x+2][c] += 7 * off
				next[x][c] += 3 * off
				next[x+1][c] += 5 * off
				next[x+2][c] += off
			}
			out.Pix[y*out.Stride+x] = uint8(index)
		}
		row, next = next, row
		clear(next)
	}
	return out
}

func palette() color.Palette {
	p := make(color.Palette, 0, transparent+1)
	for r := range reds {
		for g := range greens {
			for b := range blues {
				p = append(p, color.NRGBA{uint8(r * 255 / (reds - 1)), uint8(g * 255 / (greens - 1)), uint8(b * 255 / (blues - 1)), 255})
			}
		}
	}
	return append(p, color.NRGBA{})
}
