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

// maxExponent is how far a typed number is compared with the schema's bounds;
// what is beyond is no number that somebody meant.
const maxExponent = 400

var (
	errNumber  = errors.New("not a number")
	errInteger = errors.New("not a whole number")
)

// parseNumber reads a JSON number of any size.
func parseNumber(s string) (*big.Rat, error) {
	if s == "" || !strings.ContainsRune("-0123456789", rune(s[0])) || !json.Valid([]byte(s)) {
		return nil, errNumber
	}
	if at := strings.IndexAny(s, "eE"); at >= 0 {
		if e, err := strconv.Atoi(s[at+1:]); err != nil || e > maxExponent || e < -maxExponent {
			return nil, errors.New("its exponent is too large")
		}
	}
	v, ok := new(big.Rat).SetString(s)
	if !ok {
		return nil, errNumber
	}
	return v, nil
}

// checkNumber checks a typed number against the field.
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
		return fmt.Errorf("at least %s", formatNumber(*f.Min))
	case f.Max != nil && v.Cmp(new(big.Rat).SetFloat64(*f.Max)) > 0:
		return fmt.Errorf("at most %s", formatNumber(*f.Max))
	}
	return nil
}

func formatNumber(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// checkText checks a typed string against the field. The bounds of the length belong to the
// string only in a field of kind Text.
func (f *Field) checkText(s string, pattern *regexp.Regexp) error {
	if f.Kind == Text {
		if err := f.checkLength(utf8.RuneCountInString(s), "character"); err != nil {
			return err
		}
	}
	if err := checkFormat(f.Format, s); err != nil {
		return err
	}
	if pattern != nil && !pattern.MatchString(s) {
		if f.Means != "" {
			return errors.New("has to be " + f.Means)
		}
		return fmt.Errorf("does not match %s", f.Pattern)
	}
	return nil
}

// checkLength checks the number of characters, items or chosen values.
func (f *Field) checkLength(n int, what string) error {
	if f.MinLen != nil && n < *f.MinLen {
		return fmt.Errorf("at least %s, has %d", termtext.Count(*f.MinLen, what), n)
	}
	if f.MaxLen != nil && n > *f.MaxLen {
		return fmt.Errorf("at most %s, has %d", termtext.Count(*f.MaxLen, what), n)
	}
	return nil
}

// uuidPattern matches a UUID (RFC 9562).
var uuidPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
})

// checkFormat checks the formats that elicitation names, and some more. Other formats are
// annotations.
func checkFormat(name, s string) error {
	switch name {
	case "email":
		if a, err := mail.ParseAddress(s); err != nil || a.Address != s {
			return errors.New("not an email address")
		}
	case "uri":
		if u, err := url.Parse(s); err != nil || !u.IsAbs() {
			return errors.New("not a URI with a scheme, such as https://host/path")
		}
	case "date":
		if _, err := time.Parse(time.DateOnly, s); err != nil {
			return errors.New("not a date, such as 2026-01-31")
		}
	case "date-time":
		if _, err := time.Parse(time.RFC3339, strings.ToUpper(s)); err != nil {
			return errors.New("not a date with time and zone, such as 2026-01-31T12:00:00Z")
		}
	default:
		return checkOtherFormat(name, s)
	}
	return nil
}

func checkOtherFormat(name, s string) error {
	switch name {
	case "time":
		if _, err := time.Parse("15:04:05Z07:00", strings.ToUpper(s)); err != nil {
			return errors.New("not a time with zone, such as 12:00:00Z")
		}
	case "uuid":
		if !uuidPattern().MatchString(s) {
			return errors.New("not a UUID, such as " + examples["uuid"])
		}
	case "ipv4", "ipv6":
		if a, err := netip.ParseAddr(s); err != nil || a.Zone() != "" || a.Is4() != (name == "ipv4") {
			return errors.New("not an address, such as " + examples[name])
		}
	case "uri-reference":
		if _, err := url.Parse(s); err != nil {
			return errors.New("not a URI, nor the end of one")
		}
	}
	return nil
}
