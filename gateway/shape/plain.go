package shape

import (
	"bytes"

	"goblin/registry/rawjson"
)

var plainText = []byte(`{"type":"text","text":"`)

// isPlain reports whether a tool result has the most frequent healthy shape: plain text
// blocks and other members of the right type. It reads each byte at most once. False does
// not mean that repairs are needed.
func (f *fixer) isPlain(result []byte) bool {
	listed := false
	i := rawjson.AfterSpace(result, 0)
	for i = rawjson.AfterSpace(result, i+1); i < len(result) && result[i] == '"'; i = rawjson.AfterSpace(result, i+1) {
		end := rawjson.AfterString(result, i)
		name := memberOf(rawjson.Key(result[i:end]))
		i = rawjson.AfterSpace(result, rawjson.AfterSpace(result, end)+1)
		if i >= len(result) {
			return false
		}
		first := result[i]
		switch name {
		case content:
			if end = afterPlain(result, i); end < 0 || listed {
				return false
			}
			listed = true
		case structuredContent, meta:
			if first != '{' {
				return false
			}
			end = f.shape.After(result, i)
		case isError:
			if first != 't' && first != 'f' {
				return false
			}
			end = f.shape.After(result, i)
		case task, resultType, toolResult:
			return false
		default:
			end = f.shape.After(result, i)
		}
		if i = rawjson.AfterSpace(result, end); i >= len(result) || result[i] != ',' {
			break
		}
	}
	return listed
}

// afterPlain returns the offset after a list of plain text blocks at i, or -1.
func afterPlain(b []byte, i int) int {
	if b[i] != '[' {
		return -1
	}
	for i++; i < len(b) && b[i] != ']'; {
		if !bytes.HasPrefix(b[i:], plainText) {
			return -1
		}
		i = rawjson.AfterString(b, i+len(plainText)-1)
		if i+1 >= len(b) || b[i] != '}' {
			return -1
		}
		if i++; b[i] == ',' {
			i++
		}
	}
	return i + 1
}
