package wire

import (
	"math"
	"strconv"

	"goblin/registry/rawjson"
)

// IsErrorObject reports whether an object is a JSON-RPC 2.0 error (section 5.1).
func IsErrorObject(object []byte) bool {
	_, code := rawjson.Int(rawjson.Get(object, "code"))
	return code && rawjson.IsString(rawjson.Get(object, "message"))
}

// Integer parses a JSON number with an integer value, such as -32601.0.
func Integer(v []byte) (int64, bool) {
	if n, ok := rawjson.Int(v); ok {
		return n, true
	}
	n, err := strconv.ParseFloat(string(v), 64)
	return int64(n), err == nil && n == math.Trunc(n) && math.Abs(n) < 1<<53
}

// ErrorCode parses an error code, also from a string.
func ErrorCode(v []byte) (int64, bool) {
	if text, ok := rawjson.String(v); ok {
		v = []byte(text)
	}
	return Integer(v)
}

// Truncate limits a text from a server, in bytes.
func Truncate(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && s[limit]&0xC0 == 0x80 {
		limit--
	}
	return s[:limit] + "…"
}
