//go:build !unix

package jsonrpc

// writeOnce leaves all writing to the goroutine.
func writeOnce(uintptr, []byte) (int, error) { return 0, nil }
