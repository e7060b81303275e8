package stderr

import (
	"regexp"
	"slices"
	"strings"
)

const maxNames = 8

var (
	// missingHint matches lines that may report something missing.
	missingHint = pattern(`(?i)\b(?:requires?|required|missing|not set|unset|undefined|unbound|empty|expected|needs?|needed|placeholder|KeyError|NotPresent` +
		`|not (?:been )?(?:found|defined|provided|configured|present|specified|given|set)|must|please|no value|environment variables?|env vars?)\b|process\.env|os\.environ`)
	// missingPattern matches lines that report a missing variable next to its name.
	missingPattern = pattern(`\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+['"\x60)\]]*:? (?i:(?:(?:environment |env )?var(?:iable)?s? )?(?:` +
		`(?:is |are |was |were |has |have |been )*(?:unset|missing|required|undefined|empty|parameter|unbound|NotPresent)` +
		`|(?:(?:is|are|was|were|has|have) )?(?:not|must|should|to|has to)(?: been| be)* (?:set|unset|provided|defined|configured|specified|supplied|present)))\b` +
		`|(?i:missing|requires?|required|set|provide|export|define|specify|needs?|supply|configure|without|no)\b(?:[^A-Za-z\n]+[a-z]+){0,5}[^A-Za-z\n]+[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b`)
	// schema matches lines of validators that name the variable on a nearby line.
	schema = pattern(`Field required|"message": ?"Required"|invalid_type`)
	// longName and shortName match names of variables. A name without "_" may be an
	// ordinary word.
	longName  = pattern(`\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b`)
	shortName = pattern(`\b[A-Z][A-Z0-9_]{2,}\b`)
	field     = pattern(`^[a-z][a-z0-9_]*$`)
	// named matches expressions that contain a variable's name, in any spelling, as a
	// group.
	named = pattern(`process\.env(?:\.|\[['"])([A-Za-z_][A-Za-z0-9_]*)` +
		`|(?:os\.environ|ENV)\[['"]([A-Za-z_][A-Za-z0-9_]*)` +
		`|getenv\(['"]([A-Za-z_][A-Za-z0-9_]*)` +
		`|KeyError: ['"]([A-Z_][A-Z0-9_]{2,})['"]` +
		`|(?i:environment variables?|env vars?)(?i: named| called)?[^A-Za-z0-9_]{1,3}([A-Z][A-Z0-9_]{2,})\b` +
		`|\b([A-Z][A-Z0-9_]{2,})['"\x60)]* (?i:environment variable|env var)` +
		`|\b([A-Z][A-Z0-9_]{2,}): (?:parameter |unbound variable|NotPresent)` +
		`|\$\{?([A-Z][A-Z0-9_]{2,})\b`)
	// constant matches error codes, which look like variables.
	constant = pattern(`^ERR_|NOT_FOUND$|_ERROR$|^ERROR_|^E[A-Z]+$|^HTTP_`)
)

// Variables returns the environment variables in lines. missing are reported as missing;
// mentioned are all that may be variables.
func Variables(lines []string) (missing, mentioned []string) {
	add := func(list *[]string, names ...string) {
		for _, name := range names {
			if name != "" && !constant().MatchString(name) && !slices.Contains(*list, name) && len(*list) < maxNames {
				*list = append(*list, name)
			}
		}
	}
	weights := weighAll(lines)
	failed := slices.Max(append(weights, isNoise)) >= isGeneral // then warnings are not the error
	for i, line := range lines {
		if schema().MatchString(line) {
			for _, near := range lines[max(0, i-4):min(len(lines), i+5)] {
				add(&missing, longName().FindAllString(near, -1)...)
				if field().MatchString(near) {
					add(&mentioned, strings.ToUpper(near))
				}
			}
		}
		switch reports := groups(named(), line); {
		case weights[i] == isNoise, failed && mild().MatchString(line):
		case len(reports) > 0 && missingHint().MatchString(line), missingPattern().MatchString(line):
			add(&missing, reports...)
			add(&missing, longName().FindAllString(line, -1)...)
		case missingHint().MatchString(line):
			add(&mentioned, shortName().FindAllString(line, -1)...)
		default:
			add(&mentioned, longName().FindAllString(line, -1)...)
		}
	}
	return missing, mentioned
}

func groups(re *regexp.Regexp, line string) (found []string) {
	for _, m := range re.FindAllStringSubmatch(line, -1) {
		found = append(found, m[1:]...)
	}
	return found
}
