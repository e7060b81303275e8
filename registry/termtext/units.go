package termtext

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// DurationPattern matches the durations that [ParseDuration] reads.
const DurationPattern = `^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+$`

// SizePattern matches the sizes that [ParseSize] reads.
const SizePattern = `^[0-9]+ ?(B|KiB|MiB|GiB|kB|MB|GB)$`

var (
	durationSyntax = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(DurationPattern) })
	sizeSyntax     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(SizePattern) })
	sizeUnits      = map[string]int64{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "kB": 1e3, "MB": 1e6, "GB": 1e9}
)

// ParseDuration parses a duration with its units and without a sign, such as "1m30s".
func ParseDuration(s string) (d time.Duration, ok bool) {
	d, err := time.ParseDuration(s)
	return d, err == nil && durationSyntax().MatchString(s)
}

// ParseSize parses a size with its unit, such as "64KiB" or "2 MB", and returns bytes.
func ParseSize(s string) (n int64, ok bool) {
	m := sizeSyntax().FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	v, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(s, m[1])), 10, 64)
	unit := sizeUnits[m[1]]
	return v * unit, err == nil && v <= math.MaxInt64/unit
}

// ExactSize formats n bytes as [ParseSize] reads them, without loss: 64KiB, 1500B.
func ExactSize(n int64) string {
	for _, u := range []string{"GiB", "MiB", "KiB"} {
		if unit := sizeUnits[u]; n >= unit && n%unit == 0 {
			return strconv.FormatInt(n/unit, 10) + u
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// ClosingBrace returns the index of the "}" that closes the "${" at the start of s, or
// -1.
func ClosingBrace(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "${"):
			depth++
			i++
		case s[i] == '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
