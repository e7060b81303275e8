package demo

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"sync"
)

// encoderBuffers reuses buffers: allocating one takes ten times as long as encoding a
// cover.
type encoderBuffers struct{ sync.Pool }

var buffers encoderBuffers

// Get implements [png.EncoderBufferPool].
func (p *encoderBuffers) Get() *png.EncoderBuffer {
	b, _ := p.Pool.Get().(*png.EncoderBuffer)
	return b
}

// Put implements [png.EncoderBufferPool].
func (p *encoderBuffers) Put(b *png.EncoderBuffer) { p.Pool.Put(b) }

// coverPNG paints two bands, a moon and a spine, in colors that depend on the number.
func coverPNG(number int) []byte {
	const w, h = 48, 64
	r := rng(uint64(number) * 49979687)
	base := r.intn(6)
	shade := func(level uint8) color.RGBA {
		c := color.RGBA{R: level / 2, G: level / 2, B: level / 2, A: 255}
		switch base {
		case 0:
			c.R = level
		case 1:
			c.G = level
		case 2:
			c.B = level
		case 3:
			c.R, c.G = level, level
		case 4:
			c.G, c.B = level, level
		default:
			c.R, c.B = level, level
		}
		return c
	}
	img := image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{shade(110), shade(150), shade(70), shade(230)})
	horizon := 24 + r.intn(24)
	mx, my, mr := 14+r.intn(22), 10+r.intn(12), 4+r.intn(6)
	for y := range h {
		for x := range w {
			var c uint8
			switch {
			case x < 4:
				c = 2
			case (x-mx)*(x-mx)+(y-my)*(y-my) <= mr*mr:
				c = 3
			case y > horizon+(x%7)/3:
				c = 1
			}
			img.SetColorIndex(x, y, c)
		}
	}
	var out bytes.Buffer
	enc := png.Encoder{CompressionLevel: png.BestSpeed, BufferPool: &buffers}
	_ = enc.Encode(&out, img) // a bytes.Buffer doesn't fail
	return out.Bytes()
}
