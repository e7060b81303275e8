package memlimit

import "io"

// Lease is a [Claim] of what grows piece by piece, and ends at once: the answer that
// is being read. The zero Lease counts nothing.
type Lease struct {
	claim Claim
	held  int64
}

// Of makes the lease, which is zero, the party's.
func (l *Lease) Of(p *Party) { l.claim.Of(p) }

// Take asks for n bytes more; [ErrFull] when there are not so many.
func (l *Lease) Take(n int) error {
	if !l.claim.Resize(l.held + int64(n)) {
		return ErrFull
	}
	l.held += int64(n)
	return nil
}

// End gives back what was taken.
func (l *Lease) End() {
	l.held = 0
	l.claim.Resize(0)
}

// Reader is r, whose bytes take room as they are read: answers of one process come one
// after another, those over HTTP side by side, each up to limits.frame.
func (l *Lease) Reader(r io.Reader) io.Reader { return leasedReader{r, l} }

type leasedReader struct {
	io.Reader
	lease *Lease
}

func (r leasedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if full := r.lease.Take(n); full != nil {
		return 0, full
	}
	return n, err
}
