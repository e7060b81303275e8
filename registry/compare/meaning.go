package compare

// meaning describes a change of a definition.
func meaning(_ string, before, after []byte) (what []string) {
	r, err := Values(before, after, Options{})
	if err != nil {
		return nil
	}
	for _, d := range r.Differences {
		what = append(what, d.Path.Short()+" "+string(d.Op))
	}
	return what
}
