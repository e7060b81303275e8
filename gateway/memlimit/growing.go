package memlimit

import "io"

// GrowingReservation is a [Reservation] of growing size. The zero value has no owner and
// no limit.
type GrowingReservation struct {
	Reservation
	size int64
}

// Grow adds n bytes, or returns [ErrFull].
func (r *GrowingReservation) Grow(n int) error {
	if !r.Resize(r.size + int64(n)) {
		return ErrFull
	}
	r.size += int64(n)
	return nil
}

// Release returns all bytes to the pool.
func (r *GrowingReservation) Release() {
	r.size = 0
	r.Resize(0)
}

// Reader returns a reader that reserves the bytes it reads.
func (r *GrowingReservation) Reader(from io.Reader) io.Reader { return reservedReader{from, r} }

type reservedReader struct {
	io.Reader
	reservation *GrowingReservation
}

func (r reservedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if full := r.reservation.Grow(n); full != nil {
		return 0, full
	}
	return n, err
}
