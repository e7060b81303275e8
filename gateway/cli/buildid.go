package cli

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"strings"
)

const (
	// buildIDHead is the size of the part of an executable that has Go's build ID, in
	// bytes.
	buildIDHead = 64 << 10
	// shortBuildID is in bytes.
	shortBuildID = 12
	// shortRevision is in bytes.
	shortRevision = 8
)

// buildID identifies this executable by its revision, if known, and a hash of its
// contents. All paths, links and copies of one build have the same ID. Without a linker's
// build ID it returns "".
func buildID(revision string) string {
	f, err := openExecutable()
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, buildIDHead)
	n, _ := io.ReadFull(f, head) // the file may be shorter
	id := goBuildID(head[:n])
	id = id[strings.LastIndexByte(id, '/')+1:] // the hash of the contents
	id = id[:min(len(id), shortBuildID)]
	if id == "" || revision == "" {
		return id
	}
	return revision[:min(len(revision), shortRevision)] + "-" + id
}

// openExecutable works on Linux even after another build replaced the file.
func openExecutable() (*os.File, error) {
	if f, err := os.Open("/proc/self/exe"); err == nil {
		return f, nil
	}
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// goBuildID returns the ID that "go tool buildid" prints. ELF files have it in a note,
// other formats at the start of the code. Hashing the file would take much longer.
func goBuildID(head []byte) string {
	if !bytes.HasPrefix(head, []byte("\x7fELF")) {
		_, rest, _ := bytes.Cut(head, []byte("\xff Go build ID: \""))
		id, _, _ := bytes.Cut(rest, []byte(`"`))
		return string(id)
	}
	// A note is the ID's size, the note's type (4), the name, and the ID.
	for _, order := range []interface {
		binary.ByteOrder
		binary.AppendByteOrder
	}{binary.LittleEndian, binary.BigEndian} {
		mark := append(order.AppendUint32(nil, 4), "Go\x00\x00"...)
		before, rest, ok := bytes.Cut(head, mark)
		if !ok || len(before) < 4 {
			continue
		}
		size := order.Uint32(before[len(before)-4:])
		return string(rest[:min(uint64(size), uint64(len(rest)))])
	}
	return ""
}
