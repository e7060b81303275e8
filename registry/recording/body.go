package recording

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"goblin/registry/termtext"
)

// ErrBodyOmitted is the cause of an error about a body that was too large to record.
var ErrBodyOmitted = errors.New("not recorded, because it is over 16 MiB")

// maxBody is the largest body in a file, in bytes. Recorders omit bodies over 16 MiB, and
// placeholders of secrets may triple the rest.
const maxBody = 48 << 20

// ErrBodyMissing is the cause of an error about a body whose file does not exist.
var ErrBodyMissing = errors.New("its file is missing")

// Body returns a body, from its file if necessary. nil has no bytes.
func (r *Reader) Body(b *Body) ([]byte, error) {
	if b == nil {
		return nil, nil
	}
	if b.File == "" {
		return b.JSON, nil
	}
	return ReadBody(filepath.Join(filepath.Dir(r.path), BodyFolder), b)
}

// ReadBody reads a body from a folder of bodies and checks its size and hash. It reads no
// file outside of the folder, except by symbolic links in it. Errors do not contain paths.
func ReadBody(folder string, b *Body) ([]byte, error) {
	if b.File == Omitted {
		return nil, fmt.Errorf("body of %s: %w", termtext.Size(int64(max(b.Size, 0))), ErrBodyOmitted)
	}
	sum, err := hex.DecodeString(b.File)
	if err != nil || len(sum) != sha256.Size || b.File != strings.ToLower(b.File) || b.Size < 0 || b.Size > maxBody {
		return nil, fmt.Errorf("invalid reference to a body: %.70q, %d bytes", b.File, b.Size)
	}
	failed := func(err error) ([]byte, error) { return nil, fmt.Errorf("body %s…: %w", b.File[:12], err) }
	f, err := openExactly(filepath.Join(folder, b.File[:2], b.File))
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return failed(ErrBodyMissing)
	case errors.As(err, &path):
		return failed(path.Err)
	case err != nil:
		return failed(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return failed(fmt.Errorf("its file is damaged: %w", err))
	}
	var text bytes.Buffer
	text.Grow(min(b.Size+bytes.MinRead, 1<<20))
	n, err := io.Copy(&text, io.LimitReader(z, int64(b.Size)+1))
	if err != nil {
		return failed(fmt.Errorf("its file is damaged: %w", err))
	}
	if found := sha256.Sum256(text.Bytes()); n != int64(b.Size) || !bytes.Equal(found[:], sum) {
		return failed(errors.New("its file contains something else"))
	}
	return text.Bytes(), nil
}
