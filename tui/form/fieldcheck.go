package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"goblin/registry/termtext"
)

// maxExponent limits numbers, and with that the cost of comparing them.
const maxExponent = 400

var (
	errNumber  = errors.New("not a number")
	errInteger = errors.New("not a whole number")
)

func parseNumber(s string) (*big.Rat, error) {
	if s == "" || !strings.ContainsRune("-0123456789", rune(s[0])) || !json.Valid([]byte(s)) {
		return nil, errNumber
	}
	if at := strings.IndexAny(s, "eE"); at >= 0 {
		if e, err := strconv.Atoi(s[at+1:]); err != nil || e > maxExponent || e < -maxExponent {
			return nil, errors.New("exponent too large")
		}
	}
	v, ok := new(big.Rat).SetString(s)
	if !ok {
		return nil, errNumber
	}
	return v, nil
}

func (f *Field) checkNumber(s string, whole bool) error {
	v, err := parseNumber(s)
	switch {
	case err != nil && whole && errors.Is(err, errNumber):
		return errInteger
	case err != nil:
		return err
	case whole && !v.IsInt():
		return errInteger
	case f.Min != nil && v.Cmp(new(big.Rat).SetFloat64(*f.Min)) < 0:
		return fmt.Errorf("must be at least %s", formatNumber(*f.Min))
	case f.Max != nil && v.Cmp(new(big.Rat).SetFloat64(*f.Max)) > 0:
		return fmt.Errorf("must be at most %s", formatNumber(*f.Max))
	}
	return nil
}

func formatNumber(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// checkText checks a typed string. Length limits apply only to fields of kind Text.
func (f *Field) checkText(s string, pattern *regexp.Regexp) error {
	if f.Kind == Text {
		if err := f.checkLength(utf8.RuneCountInString(s), "character"); err != nil {
			return err
		}
	}
	if format, known := formats[f.Format]; known && !format.isValid(s) {
		return errors.New(format.problem)
	}
	if pattern != nil && !pattern.MatchString(s) {
		if f.PatternHelp != "" {
			return errors.New("allowed: " + f.PatternHelp)
		}
		return fmt.Errorf("does not match %s", f.Pattern)
	}
	return nil
}

func (f *Field) checkLength(n int, what string) error {
	if f.MinLen != nil && n < *f.MinLen {
		return fmt.Errorf("must have at least %s, has %d", termtext.Count(*f.MinLen, what), n)
	}
	if f.MaxLen != nil && n > *f.MaxLen {
		return fmt.Errorf("must have at most %s, has %d", termtext.Count(*f.MaxLen, what), n)
	}
	return nil
}

// uuidPattern matches a UUID (RFC 9562).
var uuidPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
})

// formats are the checked formats; others are only annotations.
var formats = map[string]struct {
	isValid func(s string) bool
	example string
	problem string
}{
	"email":     {isEmail, "name@example.com", "not an email address"},
	"uri":       {isURI, "https://example.com/", "not a URI with a scheme, e.g. https://host/path"},
	"date":      {isTime(time.DateOnly), "2026-01-31", "not a date, e.g. 2026-01-31"},
	"date-time": {isTime(time.RFC3339), "2026-01-31T12:00:00Z", "not a date with time and zone, e.g. 2026-01-31T12:00:00Z"},
	"time":      {isTime("15:04:05Z07:00"), "12:00:00Z", "not a time with zone, e.g. 12:00:00Z"},
	"uuid":      {isUUID, "00000000-0000-4000-8000-000000000000", "not a UUID, e.g. 00000000-0000-4000-8000-000000000000"},
	"ipv4":      {isIPv4, "192.0.2.1", "not an IPv4 address, e.g. 192.0.2.1"},
	"ipv6":      {isIPv6, "2001:db8::1", "not an IPv6 address, e.g. 2001:db8::1"},

	"uri-reference": {isURIReference, "", "not a URI or relative reference"},
}

func isEmail(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s
}

func isURI(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.IsAbs()
}

func isURIReference(s string) bool {
	_, err := url.Parse(s)
	return err == nil
}

func isTime(layout string) func(s string) bool {
	return func(s string) bool {
		_, err := time.Parse(layout, strings.ToUpper(s))
		return err == nil
	}
}

func isUUID(s string) bool { return uuidPattern().MatchString(s) }

func isIPv4(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is4()
}

func isIPv6(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && !a.Is4() && a.Zone() == ""
}
