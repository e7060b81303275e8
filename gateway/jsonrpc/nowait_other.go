//go:build !linux

package jsonrpc

import "errors"

func readNow(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }

func writeOnce(fd uintptr, p []byte) (int, error) { return writeWatched(fd, p) }
