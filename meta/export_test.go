package meta

// Names returns the names of the tools, in the order of the documentation.
func Names() []string {
	names := make([]string, len(allTools))
	for i, t := range allTools {
		names[i] = t.name
	}
	return names
}
