package cli

import (
	"regexp"
	"runtime"
	"runtime/debug"
)

// Version describes this build.
type Version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source
	Modified bool   `json:"modified,omitempty"` // the source differed from it
	Time     string `json:"time,omitempty"`     // of the revision
	// Build identifies this build of a development version; "" for a release.
	Build string `json:"build,omitempty"`
	Go    string `json:"go"`
	OS    string `json:"os"`
	Arch  string `json:"arch"`
}

// development is the version of builds from a working tree that is not a tagged release.
const development = "dev"

// isPseudoVersion reports whether go build made the version up for an untagged revision.
func isPseudoVersion(version string) bool {
	return regexp.MustCompile(`\d{14}-[0-9a-f]{12}$`).MatchString(version)
}

// BuildVersion reads what the linker knows. stamped, if not empty, is the
// version that a release was given at its build.
func BuildVersion(stamped string) Version {
	v := Version{Version: stamped, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if ok {
		if v.Version == "" {
			v.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Revision = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			case "vcs.time":
				v.Time = s.Value
			}
		}
	}
	if stamped != "" {
		return v
	}
	untagged := v.Revision != "" && (v.Modified || isPseudoVersion(v.Version))
	if untagged || v.Version == "" || v.Version == "(devel)" {
		v.Version = development
		v.Build = buildID(v.Revision)
	}
	return v
}
