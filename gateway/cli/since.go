package cli

import "time"

// SinceTime parses a duration before now, or a time in RFC 3339.
func SinceTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(-d), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, Fail(CodeUsage, "--since must be a duration such as 2h, or a time such as 2026-03-01T02:00:00Z, not %q", text)
	}
	return at, nil
}
