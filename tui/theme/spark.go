package theme

import "strings"

// the lowest first, which means zero
var (
	levels      = []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}
	asciiLevels = []string{"_", ".", ":", "-", "=", "+", "*", "#"}
)

// Spark draws one cell per value, scaled to the largest one. Values must be at least 0.
// It returns "" if all of them are 0.
func (l *Theme) Spark(values []float64) string {
	most := 0.0
	for _, v := range values {
		most = max(most, v)
	}
	if most <= 0 {
		return ""
	}
	marks := levels
	if l.ASCII {
		marks = asciiLevels
	}
	var b strings.Builder
	for _, v := range values {
		at := 0
		if v > 0 { // distinguish small values from 0
			at = max(1, int(v/most*float64(len(marks)-1)+0.5))
		}
		b.WriteString(marks[at])
	}
	return b.String()
}
