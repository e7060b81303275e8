package query

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// pattern tests the value of a Text field. Everything is folded.
type pattern struct {
	text  string   // part of the value, or the whole
	whole bool     // the value must equal text
	parts []string // between the *, or nil
}

// newPattern returns false for a lone =, which is still being typed.
func newPattern(value string, quoted bool) (p pattern, ok bool) {
	low, _ := fold(value)
	if rest, is := strings.CutPrefix(low, "="); is {
		return pattern{text: rest, whole: true}, rest != "" || quoted
	}
	if strings.Contains(low, "*") {
		return pattern{text: low, parts: strings.Split(low, "*")}, true
	}
	return pattern{text: low, whole: low == ""}, true
}

func (p *pattern) fits(low string) bool {
	switch {
	case p.parts != nil:
		return p.glob(low)
	case p.whole:
		return low == p.text
	}
	return strings.Contains(low, p.text)
}

func (p *pattern) glob(low string) bool {
	last := len(p.parts) - 1
	low, ok := strings.CutPrefix(low, p.parts[0])
	if !ok {
		return false
	}
	for _, part := range p.parts[1:last] {
		i := strings.Index(low, part)
		if i < 0 {
			return false
		}
		low = low[i+len(part):]
	}
	return strings.HasSuffix(low, p.parts[last])
}

// parseYesNo accepts any prefix of the words, so that the filter works while typing.
func parseYesNo(s string) (yes, ok bool) {
	s = strings.ToLower(s)
	switch {
	case s == "":
		return false, false
	case strings.HasPrefix("yes", s) || strings.HasPrefix("true", s):
		return true, true
	}
	return false, strings.HasPrefix("no", s) || strings.HasPrefix("false", s)
}

func operator(s string) (op, rest string) {
	for _, op := range []string{"<=", ">=", "<", ">", "="} {
		if rest, ok := strings.CutPrefix(s, op); ok {
			return op, rest
		}
	}
	return "", s
}

func decimal(s string) (n float64, rest string, ok bool) {
	i := 0
	for i < len(s) && (s[i] == '.' || '0' <= s[i] && s[i] <= '9') {
		i++
	}
	n, err := strconv.ParseFloat(s[:i], 64)
	return n, s[i:], err == nil
}

// ParseAge parses an age in s, m, h and d, such as 90s, 1h30m or 7d.
func ParseAge(s string) (age time.Duration, ok bool) { return parseAge(s) }

// parseAge parses 90s, 5m, 1h30m, 1.5d.
func parseAge(s string) (age time.Duration, ok bool) {
	var sum float64
	for s != "" {
		n, rest, ok := decimal(s)
		if !ok || rest == "" {
			return 0, false
		}
		switch rest[0] {
		case 's':
			sum += n * float64(time.Second)
		case 'm':
			sum += n * float64(time.Minute)
		case 'h':
			sum += n * float64(time.Hour)
		case 'd':
			sum += n * 24 * float64(time.Hour)
		default:
			return 0, false
		}
		s, age = rest[1:], 1
	}
	if age == 0 {
		return 0, false
	}
	if sum >= math.MaxInt64 {
		return math.MaxInt64, true
	}
	return time.Duration(sum), true
}

// testAge treats a missing operator as <, as in updated:5m.
func testAge(f *Field, op string, age time.Duration) test {
	return func(row int, now time.Time) bool {
		at := f.Time(row)
		if at.IsZero() {
			return false
		}
		is := now.Sub(at)
		switch op {
		case ">":
			return is > age
		case ">=":
			return is >= age
		case "<=":
			return is <= age
		}
		return is < age
	}
}

// the longest suffix first
var scales = []struct {
	suffix string
	by     float64
}{
	{"ki", 1 << 10},
	{"mi", 1 << 20},
	{"gi", 1 << 30},
	{"k", 1e3},
	{"m", 1e6},
	{"g", 1e9},
	{"", 1},
}

// parseNumber parses 500, -1, 1.5k, 2M, 1Gi, optionally followed by B.
func parseNumber(s string) (n float64, ok bool) {
	sign := 1.0
	if rest, minus := strings.CutPrefix(s, "-"); minus {
		sign, s = -1, rest
	}
	n, rest, ok := decimal(s)
	if !ok {
		return 0, false
	}
	rest = strings.TrimSuffix(strings.ToLower(rest), "b")
	for _, scale := range scales {
		if rest == scale.suffix {
			return sign * n * scale.by, true
		}
	}
	return 0, false
}

// durations are the units of parseDuration in milliseconds. k is for thousands, as in
// numbers.
var durations = map[string]float64{"": 1, "ms": 1, "k": 1e3, "s": 1e3, "m": 60e3, "h": 3600e3, "d": 24 * 3600e3}

// parseDuration parses 500, 1.5s, 1m30s. Without a unit, a number is in milliseconds.
func parseDuration(s string) (ms float64, ok bool) {
	parts := 0
	for ; s != ""; parts++ {
		n, rest, ok := decimal(s)
		end := 0
		for end < len(rest) && rest[end] != '.' && (rest[end] < '0' || rest[end] > '9') {
			end++
		}
		by, known := durations[strings.ToLower(rest[:end])]
		if !ok || !known || rest[:end] == "" && parts > 0 {
			return 0, false
		}
		ms += n * by
		s = rest[end:]
	}
	return ms, parts > 0
}

func testNumber(f *Field, op string, n float64) test {
	return func(row int, _ time.Time) bool {
		is := f.Number(row)
		switch op {
		case "<":
			return is < n
		case "<=":
			return is <= n
		case ">":
			return is > n
		case ">=":
			return is >= n
		}
		return is == n
	}
}
