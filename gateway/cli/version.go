package cli

import (
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
)

// Version describes this build.
type Version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source
	Modified bool   `json:"modified,omitempty"` // the source had uncommitted changes
	Time     string `json:"time,omitempty"`     // of the revision
	// Build identifies a development build; "" for a release.
	Build string `json:"build,omitempty"`
	Go    string `json:"go"`
	OS    string `json:"os"`
	Arch  string `json:"arch"`
}

// Release is the version of this source. CHANGELOG.md has a section for it, and its tag is
// Release with a "v" in front.
const Release = "0.1.0"

// isPseudoVersion reports whether go build generated the version for an untagged
// revision.
func isPseudoVersion(version string) bool {
	return regexp.MustCompile(`\d{14}-[0-9a-f]{12}$`).MatchString(version)
}

// BuildVersion returns the version of this build: stamped, the version that the release
// process passed to the linker, or the tag, as for "go install MODULE@VERSION". All
// others are development builds of [Release].
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
	v.Version = strings.TrimPrefix(v.Version, "v")
	if stamped != "" {
		return v
	}
	untagged := v.Revision != "" && (v.Modified || isPseudoVersion(v.Version))
	if untagged || v.Version == "" || v.Version == "(devel)" {
		v.Version = Release
		v.Build = buildID(v.Revision)
	}
	return v
}

// Handshake returns the version that a daemon and its clients must share. A development build
// has another one than the release of the same version.
func (v Version) Handshake() string {
	if v.Build == "" {
		return v.Version
	}
	return v.Version + "-dev"
}
