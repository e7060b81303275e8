package cli

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"strings"
)

const (
	// buildIDHead is the part of an executable that holds Go's build ID, in bytes.
	buildIDHead = 64 << 10
	// shortBuildID is the length of a shown build ID, in bytes.
	shortBuildID = 12
	// shortRevision is the length of a revision before it, in bytes.
	shortRevision = 8
)

// buildID returns an identifier of this executable: the revision, if known, and a hash of
// its contents. It is the same for all paths, links and copies of one build. It returns ""
// if the linker wrote no build ID.
func buildID(revision string) string {
	f, err := openExecutable()
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, buildIDHead)
	n, _ := io.ReadFull(f, head) // a short file is no error
	id := goBuildID(head[:n])
	id = id[strings.LastIndexByte(id, '/')+1:] // the hash of the contents
	id = id[:min(len(id), shortBuildID)]
	if id == "" || revision == "" {
		return id
	}
	return revision[:min(len(revision), shortRevision)] + "-" + id
}

// openExecutable opens the file of this program. On Linux that works after another build
// has replaced the file.
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

// goBuildID finds the ID that "go tool buildid" prints. ELF files have it in a note, others
// at the start of their code. Reading it is much cheaper than hashing the file.
func goBuildID(head []byte) string {
	if !bytes.HasPrefix(head, []byte("\x7fELF")) {
		_, rest, _ := bytes.Cut(head, []byte("\xff Go build ID: \""))
		id, _, _ := bytes.Cut(rest, []byte(`"`))
		return string(id)
	}
	// The size of the ID, the type of the note (4) and the note's name precede the ID.
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
