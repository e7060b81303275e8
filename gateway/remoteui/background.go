package remoteui

import (
	"strconv"
	"strings"
)

// queryBackground is xterm's OSC 11.
const queryBackground = "\x1b]11;?\x1b\\"

// isDark reports whether a color is dark. Terminals send rgb:R/G/B or rgba:R/G/B/A with 1
// to 4 hexadecimal digits each, or #RRGGBB.
func isDark(color string) (dark, ok bool) {
	var fields []string
	if spec, is := strings.CutPrefix(color, "#"); is && len(spec) == 6 {
		fields = []string{spec[:2], spec[2:4], spec[4:]}
	} else if kind, spec, is := strings.Cut(color, ":"); is && (kind == "rgb" || kind == "rgba") {
		fields = strings.Split(spec, "/")
	}
	if len(fields) != 3 && len(fields) != 4 {
		return false, false
	}
	luma := 0.0
	for i, weight := range []float64{0.299, 0.587, 0.114} { // ITU-R BT.601
		v, err := strconv.ParseUint(fields[i], 16, 16)
		if err != nil || len(fields[i]) > 4 {
			return false, false
		}
		most := uint64(1)<<(4*len(fields[i])) - 1
		luma += weight * float64(v) / float64(most)
	}
	return luma < 0.5, true
}

// parseColorFGBG parses COLORFGBG of rxvt: "foreground;background", numbers of the 16
// colors. It returns whether the background is dark, or nil.
func parseColorFGBG(colorfgbg string) *bool {
	n, err := strconv.Atoi(colorfgbg[strings.LastIndexByte(colorfgbg, ';')+1:])
	if err != nil || n < 0 || n > 15 {
		return nil
	}
	dark := n <= 6 || n == 8
	return &dark
}
