package memory

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
