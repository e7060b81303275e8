package meta

// Names are the tools' names, in the order of the documentation.
func Names() []string {
	names := make([]string, len(allTools))
	for i, t := range allTools {
		names[i] = t.name
	}
	return names
}
