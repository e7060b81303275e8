package savedcall

// Folder is a folder of saved calls, with those below it.
type Folder struct {
	Path    string // of the folder
	Files   []File // in the order of their names
	Problem string // why files are missing, or ""
}

// File is a file of a [Folder].
type File struct {
	Name string // below the folder, with slashes
	// Call is nil if the file has mistakes. Its path leads to the file.
	Call *Call
	// Mistakes are lines as "path:line: what", or "".
	Mistakes string
	// HasAnswer reports whether an answer is stored beside the file.
	HasAnswer bool
}
