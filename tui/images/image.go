package images

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"image"
	"image/draw"
	"image/png"
)

const (
	maxCols       = 250 // kitty's diacritics allow 296
	maxRows       = 250
	minCells      = 24 // smaller images get one cell per pixel
	maxCellHeight = 28 // in pixels, for terminals that scale
	samples       = 4  // source pixels per pixel, each way
)

// Image is an image that fills a rectangle of cells. It is immutable.
type Image struct {
	Cols, Rows int
	png        []byte // with a whole number of pixels per cell
	w, h       int    // of a cell, in pixels of png
	key        [sha256.Size]byte
}

// Size returns the cells for an image of w by h pixels, scaled down to fit cols by rows.
func (g *Renderer) Size(w, h, cols, rows int) (int, int) {
	cw, ch := g.cell()
	return size(w, h, cw, ch, min(cols, maxCols), min(rows, maxRows))
}

func size(w, h, cw, ch, cols, rows int) (int, int) {
	w, h = max(w, 1), max(h, 1)
	n := min(max((w+cw-1)/cw, min(w, minCells)), max(cols, 1))
	high := func(n int) int { return max((h*n*cw+w*ch/2)/(w*ch), 1) }
	for n > 1 && high(n) > rows {
		n = min(n-1, max(rows*w*ch/(h*cw), 1))
	}
	return n, min(high(n), max(rows, 1))
}

// Image returns an image of cols by rows cells.
func (g *Renderer) Image(img image.Image, cols, rows int) (*Image, error) {
	cw, ch := g.cell()
	if ch > maxCellHeight && g.Protocol() != Sixel {
		cw, ch = max(cw*maxCellHeight/ch, 1), maxCellHeight
	}
	cols, rows = min(max(cols, 1), maxCols), min(max(rows, 1), maxRows)
	var b bytes.Buffer
	if err := encoder.Encode(&b, Scale(img, cols*cw, rows*ch)); err != nil {
		return nil, err
	}
	m := &Image{Cols: cols, Rows: rows, png: b.Bytes(), w: cw, h: ch}
	h := sha256.New()
	_ = binary.Write(h, binary.LittleEndian, []uint32{uint32(cols), uint32(rows)})
	h.Write(m.png)
	h.Sum(m.key[:0])
	return m, nil
}

var encoder = png.Encoder{CompressionLevel: png.BestSpeed}

func (m *Image) pixels() *image.NRGBA {
	img, err := png.Decode(bytes.NewReader(m.png))
	if err != nil {
		return image.NewNRGBA(image.Rect(0, 0, m.Cols*m.w, m.Rows*m.h)) // unreachable
	}
	if n, is := img.(*image.NRGBA); is {
		return n
	}
	n := image.NewNRGBA(img.Bounds())
	draw.Draw(n, n.Rect, img, img.Bounds().Min, draw.Src)
	return n
}

// Scale returns an image of w by h pixels, each the average of its source pixels.
func Scale(img image.Image, w, h int) *image.NRGBA {
	r := img.Bounds()
	from := image.NewRGBA(image.Rect(0, 0, r.Dx(), r.Dy())) // premultiplied, as averages require
	draw.Draw(from, from.Rect, img, r.Min, draw.Src)
	to := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		y0 := r.Dy() * y / h
		y1 := max(r.Dy()*(y+1)/h, y0+1)
		for x := range w {
			x0 := r.Dx() * x / w
			x1 := max(r.Dx()*(x+1)/w, x0+1)
			var sum [4]uint32
			n := uint32(0)
			for py := y0; py < y1; py += max((y1-y0)/samples, 1) {
				for px := x0; px < x1; px += max((x1-x0)/samples, 1) {
					p := from.Pix[py*from.Stride+4*px:]
					sum[0] += uint32(p[0])
					sum[1] += uint32(p[1])
					sum[2] += uint32(p[2])
					sum[3] += uint32(p[3])
					n++
				}
			}
			p := to.Pix[y*to.Stride+4*x:]
			if sum[3] > 0 {
				for i := range 3 {
					p[i] = uint8(min(sum[i]*255/sum[3], 255))
				}
				p[3] = uint8(sum[3] / n)
			}
		}
	}
	return to
}
