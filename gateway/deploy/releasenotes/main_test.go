package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSectionOfAVersion(t *testing.T) {
	const changelog = `# Changelog

## [Unreleased]

### Added

- Not yet.

## [1.1.0] - 2026-12-01

### Fixed

- A bug.

## [1.0.0] - 2026-11-27

- First.

## [0.9.0] - 2026-11-01

[Unreleased]: https://example.com/compare/v1.1.0...HEAD
`
	for version, want := range map[string]string{
		"":      "### Fixed\n\n- A bug.\n",
		"1.1.0": "### Fixed\n\n- A bug.\n",
		"1.0.0": "- First.\n",
	} {
		got, err := section(changelog, version)
		require.NoError(t, err, version)
		require.Equal(t, want, got, version)
	}
	for version, want := range map[string]string{
		"0.9.0":      "the section of version 0.9.0 is empty",
		"Unreleased": "no dated section of version Unreleased",
		"1.0":        "no dated section of version 1.0",
	} {
		_, err := section(changelog, version)
		require.ErrorContains(t, err, want)
	}
	_, err := section("# Changelog\n\n## Unreleased\n\n- A.\n", "")
	require.ErrorContains(t, err, "no section with a version and a date")
}
