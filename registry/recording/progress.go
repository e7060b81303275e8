package recording

import (
	"io"
	"os"
)

// Progress returns the bytes of the files that were read, and of all files. Both count
// compressed bytes.
func (r *Reader) Progress() (read, total int64) {
	for i, path := range r.files {
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		total += info.Size()
		switch {
		case i < r.next-1:
			read += info.Size()
		case i == r.next-1 && r.file == nil:
			read += info.Size()
		case i == r.next-1:
			at, err := r.file.Seek(0, io.SeekCurrent)
			if err == nil {
				read += at
			}
		}
	}
	return read, total
}
