//go:build !unix

package jsonrpc

// writeWatched leaves all writing to the goroutine.
func writeWatched(uintptr, []byte) (int, error) { return 0, nil }
