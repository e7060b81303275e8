package replay

import (
	"errors"
	"os"
	"path/filepath"

	"goblin/registry/recording"
)

// maxMemory is the size of the bodies that a store holds in memory, in bytes.
const maxMemory = 64 << 20

// store holds bodies of a recording: in memory, beyond maxMemory in a temporary file. It
// is safe for concurrent use after the last add.
type store struct {
	used int64
	file *os.File
	end  int64
}

// bodyRef locates a body: in memory, in the store's file, or in a file of the recording.
type bodyRef struct {
	text     []byte
	at, size int64
	folder   string
	body     *recording.Body
}

func (r *bodyRef) missing() bool { return r.text == nil && r.size == 0 && r.body == nil }

// add adds a body of a line of file. Nil has no bytes.
func (s *store) add(file string, b *recording.Body) (bodyRef, error) {
	switch {
	case b == nil || b.File == "" && len(b.JSON) == 0:
		return bodyRef{}, nil
	case b.File != "":
		return bodyRef{folder: filepath.Join(filepath.Dir(file), recording.BodyFolder), body: b}, nil
	}
	size := int64(len(b.JSON))
	if s.used+size <= maxMemory {
		s.used += size
		return bodyRef{text: b.JSON}, nil
	}
	if s.file == nil {
		f, err := os.CreateTemp("", "goblin-replay-*")
		if err != nil {
			return bodyRef{}, err
		}
		s.file = f
		_ = os.Remove(f.Name()) // Windows refuses; close tries again
	}
	if _, err := s.file.WriteAt(b.JSON, s.end); err != nil {
		return bodyRef{}, err
	}
	r := bodyRef{at: s.end, size: size}
	s.end += size
	return r, nil
}

// get returns a body. Callers must not modify it.
func (s *store) get(r bodyRef) ([]byte, error) {
	switch {
	case r.text != nil:
		return r.text, nil
	case r.body != nil:
		return recording.ReadBody(r.folder, r.body)
	case r.size == 0:
		return nil, nil
	}
	text := make([]byte, r.size)
	_, err := s.file.ReadAt(text, r.at)
	return text, err
}

func (s *store) close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if e := os.Remove(s.file.Name()); e != nil && !errors.Is(e, os.ErrNotExist) {
		err = errors.Join(err, e)
	}
	return err
}
