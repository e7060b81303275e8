package meta

// Names are the tools' names, in the order of the documentation.
func Names() []string {
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.name
	}
	return names
}
