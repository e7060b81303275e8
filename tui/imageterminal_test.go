package tui

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/kitty"
	"github.com/charmbracelet/x/ansi/sixel"
	"github.com/stretchr/testify/require"
)

// modelCell is the content of one cell of a modelTerminal.
type modelCell struct {
	text     string
	of       *modelImage // the image and its cell
	row, col int
}

// modelImage is an image that a modelTerminal holds.
type modelImage struct {
	img        image.Image
	cols, rows int
}

// at returns the colour in the middle of a cell.
func (d *modelImage) at(row, col int) color.Color {
	b := d.img.Bounds()
	return d.img.At(b.Min.X+(2*col+1)*b.Dx()/(2*d.cols), b.Min.Y+(2*row+1)*b.Dy()/(2*d.rows))
}

// modelTerminal models a terminal that supports all three image protocols. Text written
// over a part of an image replaces it.
type modelTerminal struct {
	t      testing.TB
	w, h   int
	cells  [][]modelCell
	x, y   int
	colour int
	kept   map[int]*modelImage // kitty's, by id
	loads  int                 // images that were transmitted
	chunks []byte              // of an image in transmission
	keys   map[string]string
}

func newModelTerminal(t testing.TB, w, h int) *modelTerminal {
	m := &modelTerminal{t: t, w: w, h: h, kept: map[int]*modelImage{}}
	m.clear()
	return m
}

func (m *modelTerminal) clear() {
	m.cells = make([][]modelCell, m.h)
	for y := range m.cells {
		m.cells[y] = make([]modelCell, m.w)
	}
}

const (
	cellWide = 8
	cellHigh = 18 // not a multiple of six, which is sixel's unit
)

// Write interprets the output of the UI.
func (m *modelTerminal) Write(p []byte) (int, error) {
	s := string(p)
	for s != "" {
		switch {
		case strings.HasPrefix(s, "\x1bPtmux;"):
			end := strings.Index(s, "\x1b\\\x1b\\")
			require.GreaterOrEqual(m.t, end, 0)
			inner := strings.ReplaceAll(s[len("\x1bPtmux;"):end+2], "\x1b\x1b", "\x1b")
			_, _ = m.Write([]byte(inner + "\\"))
			s = s[end+4:]
		case strings.HasPrefix(s, "\x1b_G"):
			body, rest, ok := strings.Cut(s[3:], "\x1b\\")
			require.True(m.t, ok, "unterminated APC")
			m.kitty(body)
			s = rest
		case strings.HasPrefix(s, "\x1bP"):
			body, rest, ok := strings.Cut(s[2:], "\x1b\\")
			require.True(m.t, ok, "unterminated DCS")
			m.sixel(body)
			s = rest
		case strings.HasPrefix(s, "\x1b]1337;"):
			body, rest, ok := strings.Cut(s[len("\x1b]1337;"):], "\a")
			require.True(m.t, ok, "unterminated OSC")
			m.inline(body)
			s = rest
		case strings.HasPrefix(s, "\x1b["):
			end := 2
			for s[end] < 0x40 {
				end++
			}
			m.control(s[2:end], s[end])
			s = s[end+1:]
		default:
			cluster, w := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
			m.put(cluster, w)
			s = s[len(cluster):]
		}
	}
	return len(p), nil
}

func (m *modelTerminal) control(params string, end byte) {
	var n []int
	for f := range strings.SplitSeq(params, ";") {
		v, _ := strconv.Atoi(f)
		n = append(n, v)
	}
	switch end {
	case 'H':
		m.y, m.x = n[0]-1, n[1]-1
	case 'C':
		m.x += n[0]
	case 'm':
		if len(n) == 3 && n[0] == 38 && n[1] == 5 {
			m.colour = n[2]
		} else if n[0] == 0 || n[0] == 39 {
			m.colour = 0
		}
	case 'h', 'l':
	default:
		m.t.Fatalf("CSI %s%c", params, end)
	}
}

func (m *modelTerminal) put(cluster string, w int) {
	require.Less(m.t, m.y, m.h)
	if w == 0 || m.x >= m.w {
		return
	}
	cell := modelCell{text: cluster}
	if rest, is := strings.CutPrefix(cluster, string(kitty.Placeholder)); is {
		var marks []int
		for _, r := range rest {
			for i := range 297 {
				if kitty.Diacritic(i) == r {
					marks = append(marks, i)
					break
				}
			}
		}
		require.Len(m.t, marks, 3, "a placeholder must have three marks")
		of := m.kept[marks[2]<<24|m.colour]
		require.NotNil(m.t, of, "kitty must have the drawn image")
		require.Less(m.t, marks[0], of.rows)
		require.Less(m.t, marks[1], of.cols)
		cell = modelCell{of: of, row: marks[0], col: marks[1]}
	}
	m.cells[m.y][m.x] = cell
	for i := 1; i < w && m.x+i < m.w; i++ {
		m.cells[m.y][m.x+i] = modelCell{}
	}
	m.x += w
}

func (m *modelTerminal) kitty(body string) {
	head, data, _ := strings.Cut(body, ";")
	keys := map[string]string{}
	for f := range strings.SplitSeq(head, ",") {
		k, v, _ := strings.Cut(f, "=")
		keys[k] = v
	}
	require.Equal(m.t, "2", keys["q"], "kitty must not answer")
	id, _ := strconv.Atoi(keys["i"])
	if keys["a"] == "d" {
		require.Equal(m.t, "I", keys["d"], "the data must be complete")
		require.Contains(m.t, m.kept, id)
		delete(m.kept, id)
		return
	}
	if m.chunks == nil {
		m.keys = keys
	}
	require.LessOrEqual(m.t, len(data), kitty.MaxChunkSize)
	m.chunks = append(m.chunks, data...)
	if keys["m"] == "1" {
		return
	}
	raw, err := base64.StdEncoding.DecodeString(string(m.chunks))
	require.NoError(m.t, err)
	m.chunks = nil
	require.Equal(m.t, "T 1 100", m.keys["a"]+" "+m.keys["U"]+" "+m.keys["f"])
	id, _ = strconv.Atoi(m.keys["i"])
	require.NotContains(m.t, m.kept, id)
	m.kept[id] = m.picture(raw, m.keys["c"], m.keys["r"])
	m.loads++
}

func (m *modelTerminal) picture(raw []byte, cols, rows string) *modelImage {
	img, err := png.Decode(bytes.NewReader(raw))
	require.NoError(m.t, err)
	d := &modelImage{img: img}
	d.cols, _ = strconv.Atoi(cols)
	d.rows, _ = strconv.Atoi(rows)
	return d
}

func (m *modelTerminal) inline(body string) {
	found := regexp.MustCompile(`^File=inline=1;size=(\d+);width=(\d+);height=(\d+);preserveAspectRatio=0;doNotMoveCursor=1:(.*)$`).FindStringSubmatch(body)
	require.NotNil(m.t, found, "%.100q", body)
	raw, err := base64.StdEncoding.DecodeString(found[4])
	require.NoError(m.t, err)
	require.Equal(m.t, found[1], strconv.Itoa(len(raw)))
	m.loads++
	m.over(m.picture(raw, found[2], found[3]))
}

func (m *modelTerminal) sixel(body string) {
	data, ok := strings.CutPrefix(body, "0;1;0q")
	require.True(m.t, ok, "%.20q", body)
	img, err := (&sixel.Decoder{}).Decode(strings.NewReader(data))
	require.NoError(m.t, err)
	var w, h int
	_, err = fmt.Sscanf(data, "\"1;1;%d;%d", &w, &h)
	require.NoError(m.t, err)
	require.Zero(m.t, w%cellWide+h%cellHigh, "whole cells")
	m.loads++
	m.over(&modelImage{img: img, cols: w / cellWide, rows: h / cellHigh})
}

// over draws an image at the cursor.
func (m *modelTerminal) over(d *modelImage) {
	require.LessOrEqual(m.t, m.x+d.cols, m.w)
	require.Less(m.t, m.y+d.rows, m.h)
	for y := range d.rows {
		for x := range d.cols {
			require.Equal(m.t, " ", m.cells[m.y+y][m.x+x].text, "images must cover blanks")
			m.cells[m.y+y][m.x+x] = modelCell{text: " ", of: d, row: y, col: x}
		}
	}
}

// imaged returns the colour of each cell that shows an image, red or white, by x and y.
func (m *modelTerminal) imaged() map[[2]int]string {
	all := map[[2]int]string{}
	for y, line := range m.cells {
		for x, c := range line {
			if c.of == nil {
				continue
			}
			_, green, _, _ := c.of.at(c.row, c.col).RGBA()
			all[[2]int{x, y}] = map[bool]string{true: "white", false: "red"}[green > 0x8000]
		}
	}
	return all
}
