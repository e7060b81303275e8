package meta

import "strings"

// mimeMatches reports whether a MIME type fits a pattern, in which * stands
// for any text. Case does not matter, nor do parameters that the pattern
// leaves out.
func mimeMatches(pattern, mime string) bool {
	pattern, mime = strings.ToLower(pattern), strings.ToLower(mime)
	if glob(pattern, mime) {
		return true
	}
	bare, _, found := strings.Cut(mime, ";")
	return found && glob(pattern, strings.TrimSpace(bare))
}

// glob takes each * as short as it can, which is enough: there is no other
// special character.
func glob(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	s, ok := strings.CutPrefix(s, parts[0])
	if !ok || len(parts) == 1 {
		return ok && s == ""
	}
	for _, part := range parts[1 : len(parts)-1] {
		if _, s, ok = strings.Cut(s, part); !ok {
			return false
		}
	}
	return strings.HasSuffix(s, parts[len(parts)-1])
}
