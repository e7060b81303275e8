package recording

import "strings"

// A placeholder replaces a secret in names and bodies: "[hidden]", or "[hidden:0a1b2c3d]"
// with a hash. Equal hashes in the files of one folder mean the same secret, in any
// spelling. The hash is keyed: it reveals nothing about the secret without the folder's
// key.
const (
	placeholderStart = "[hidden"
	placeholderHash  = 8 // hex digits
)

// Hidden is a placeholder without a hash.
const Hidden = placeholderStart + "]"

// Placeholder returns the position of the first placeholder in text, or -1 for both.
func Placeholder(text string) (start, end int) {
	for from := 0; ; from = start + 1 {
		start = strings.Index(text[from:], placeholderStart)
		if start < 0 {
			return -1, -1
		}
		start += from
		end = start + len(placeholderStart)
		if hash := end + 1 + placeholderHash; hash < len(text) && text[end] == ':' && isHex(text[end+1:hash]) {
			end = hash
		}
		if end < len(text) && text[end] == ']' {
			return start, end + 1
		}
	}
}

func isHex(s string) bool {
	return strings.Trim(s, "0123456789abcdef") == ""
}

// HasPlaceholder reports whether secrets are hidden in a recorded text.
func HasPlaceholder(text string) bool {
	start, _ := Placeholder(text)
	return start >= 0
}

// MatchesHidden reports whether text may be the original of a recorded text, or equals
// it. Each placeholder matches one or more bytes. Its time is at most proportional to the
// product of both lengths.
func MatchesHidden(recorded, text string) bool {
	start, end := Placeholder(recorded)
	if start < 0 || recorded == text {
		return recorded == text
	}
	if !strings.HasPrefix(text, recorded[:start]) {
		return false
	}
	text, recorded = text[start:], recorded[end:]
	for {
		next, after := Placeholder(recorded)
		if next < 0 {
			return len(text) > len(recorded) && strings.HasSuffix(text, recorded)
		}
		if text == "" {
			return false
		}
		at := strings.Index(text[1:], recorded[:next]) // the first match leaves most for the rest
		if at < 0 {
			return false
		}
		text, recorded = text[1+at+next:], recorded[after:]
	}
}
