package viewer

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"goblin/tui/theme"
)

// flag returns an image, red above and white below.
func flag(w, h int) image.Image {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := color.RGBA{255, 0, 0, 255}
			if y >= h/2 {
				c = color.RGBA{255, 255, 255, 255}
			}
			img.Set(x, y, c)
		}
	}
	return img
}

func encodedAs(t testing.TB, format string, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	switch format {
	case "png":
		require.NoError(t, png.Encode(&b, img))
	case "gif":
		require.NoError(t, gif.Encode(&b, img, nil))
	default:
		require.NoError(t, jpeg.Encode(&b, img, nil))
	}
	return b.Bytes()
}

func TestImagesAreDrawnAsHalfBlocks(t *testing.T) {
	env := func(colours, lang string) *theme.Theme {
		return theme.New(theme.Options{Getenv: func(k string) string {
			return map[string]string{"TERM": "xterm-256color", "COLORTERM": colours, "LANG": lang, "NO_COLOR": map[bool]string{true: "1"}[colours == "none"]}[k]
		}})
	}
	lines := func(lk *theme.Theme, data []byte, w int) []string {
		doc, err := Build(t.Context(), lk, []Section{{Kind: Hex, Data: data, MIME: "image/png"}}, Options{Width: w})
		require.NoError(t, err)
		v := NewView(lk)
		v.Show(doc, false)
		out := v.Lines(w, 40)
		for _, l := range out {
			require.Equal(t, w, ansi.StringWidth(l))
		}
		return out
	}
	for kind, encoded := range map[string]string{
		"lossless": "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==",
		"lossy":    "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA",
	} {
		data, err := base64.StdEncoding.DecodeString(encoded)
		require.NoError(t, err)
		text := ansi.Strip(strings.Join(lines(env("truecolor", "C.UTF-8"), data, 60), "\n"))
		require.Contains(t, text, "webp, 1 x 1 pixels", kind)
		require.Contains(t, text, "\n ▀ ", kind)
	}
	wrong := encodedAs(t, "png", flag(8, 4))
	wrong[len(wrong)-1] ^= 1 // of the last checksum
	require.Contains(t, ansi.Strip(strings.Join(lines(env("truecolor", "C.UTF-8"), wrong, 60), "\n")), "\n ▀▀▀▀▀▀▀▀ ", "checksums may be wrong")
	for _, format := range []string{"png", "gif", "jpeg"} {
		text := strings.Join(lines(env("truecolor", "C.UTF-8"), encodedAs(t, format, flag(8, 4)), 60), "\n")
		require.Contains(t, ansi.Strip(text), format+", 8 x 4 pixels")
		require.Contains(t, ansi.Strip(text), "\n ▀▀▀▀▀▀▀▀ ", "two lines of two pixels each")
		require.NotContains(t, text, "00000000  ", "no dump of it")
	}
	text := strings.Join(lines(env("truecolor", "C.UTF-8"), encodedAs(t, "png", flag(8, 4)), 60), "\n")
	require.Contains(t, text, "\x1b[38;2;255;0;0;48;2;255;0;0m▀")
	require.Contains(t, text, "\x1b[38;2;255;255;255;48;2;255;255;255m▀")
	text = strings.Join(lines(env("", "C.UTF-8"), encodedAs(t, "png", flag(8, 4)), 60), "\n")
	require.Contains(t, text, "\x1b[38;5;196;48;5;196m▀")
	text = strings.Join(lines(env("none", "C.UTF-8"), encodedAs(t, "png", flag(8, 4)), 60), "\n")
	require.Contains(t, text, "████████", "as shades without colours")
	text = strings.Join(lines(env("none", "C"), encodedAs(t, "png", flag(8, 4)), 60), "\n")
	require.Contains(t, text, "@@@@@@@@")

	wide := lines(env("truecolor", "C.UTF-8"), encodedAs(t, "png", flag(2000, 500)), 60)
	count := 0
	for _, l := range wide {
		if strings.Contains(l, "▀") {
			count++
			require.Equal(t, 59, strings.Count(l, "▀"), "as wide as the window")
		}
	}
	require.InDelta(t, 59*500/2000/2, count, 1, "and in its proportions")
}

func TestImagesThatAreTooLargeOrBrokenAreDumped(t *testing.T) {
	bomb := encodedAs(t, "png", image.NewGray(image.Rect(0, 0, 1, 1)))
	copy(bomb[16:], []byte{0, 1, 0, 0, 0, 1, 0, 0}) // claims 65536 x 65536 pixels
	for name, data := range map[string][]byte{
		"what says that it is huge": bomb,
		"what ends":                 encodedAs(t, "png", flag(64, 64))[:60],
		"none":                      []byte("\x89PNG\r\n\x1a\nhello"),
		"a webp that is none":       []byte("RIFF....WEBPVP8 ................"),
		"another format":            []byte("....ftypavif"),
	} {
		doc, err := Build(t.Context(), theme.New(theme.Options{}), []Section{{Kind: Hex, Data: data, MIME: "image/x"}}, Options{Width: 90})
		require.NoError(t, err)
		v := NewView(theme.New(theme.Options{}))
		v.Show(doc, false)
		text := strings.Join(v.Lines(90, 30), "\n")
		require.Contains(t, text, "00000000  ", name)
		require.Regexp(t, `image/x, \d+ B, not drawn: \w`, text, name)
	}
}

func TestADumpUsesTheWidth(t *testing.T) {
	for w, per := range map[int]int{40: 6, 52: 8, 70: 12, 80: 16, 120: 24, 250: 56} {
		dump := document(t, build(t, Options{Width: w}, Section{Kind: Hex, Data: make([]byte, 100)}))
		first := regexp.MustCompile(`(?m)^00000000 .*\|$`).FindString(dump)
		require.Equal(t, per, strings.Count(first, " 00"), "%d cells", w)
	}
}

func FuzzPicture(f *testing.F) {
	for _, encoded := range []string{"UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==", "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA"} {
		data, _ := base64.StdEncoding.DecodeString(encoded)
		f.Add(data, 30)
	}
	for _, format := range []string{"png", "gif", "jpeg"} {
		f.Add(encodedAs(f, format, flag(9, 7)), 40)
	}
	tiny, _ := base64.StdEncoding.DecodeString("R0lGODlhAQABAAAAACwAAAAAAQABAAA=")
	f.Add(tiny, 3)
	f.Fuzz(func(t *testing.T, data []byte, w int) {
		w = min(max(w, 2), 200)
		lk := theme.New(theme.Options{})
		doc, err := Build(t.Context(), lk, []Section{{Kind: Hex, Data: data}}, Options{Width: w})
		require.NoError(t, err)
		v := NewView(lk)
		v.Show(doc, false)
		for _, l := range v.Lines(w, 60) {
			require.Equal(t, w, ansi.StringWidth(l))
		}
	})
}
