package report

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// Levels of a [Finding], from worst to best, as SARIF spells them.
const (
	LevelError   = "error"
	LevelWarning = "warning"
	LevelNote    = "note"
)

// Finding is one result of a check for programs that read SARIF.
type Finding struct {
	Rule    string // id of the rule, such as "names/too-long"
	Level   string // LevelError, LevelWarning or LevelNote; "" is LevelWarning
	Text    string
	Subject string // what the finding is about, such as "tool x"; "" for the whole file
	File    string // path of the file to annotate, or ""
	Line    int    // in File, from 1; 0 for the whole file
}

// Rule describes a kind of findings.
type Rule struct {
	ID    string
	Level string // usual level of its findings; "" is LevelWarning
	Short string // one sentence
	Help  string // what to do, as plain text
	URL   string // a page about the rule, or ""
}

const (
	sarifVersion = "2.1.0"
	sarifSchema  = "https://json.schemastore.org/sarif-2.1.0.json"
)

type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID      string         `json:"id"`
		Short   *sarifMessage  `json:"shortDescription,omitempty"`
		Help    *sarifMessage  `json:"help,omitempty"`
		URL     string         `json:"helpUri,omitempty"`
		Default map[string]any `json:"defaultConfiguration,omitempty"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifMessage    `json:"message"`
		Locations []sarifLocation `json:"locations,omitempty"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
	}
)

// SARIF returns a log of findings in the Static Analysis Results Interchange Format 2.1.0,
// with a final line break. It keeps the order of findings. Rules of findings that rules
// does not describe are added with their ids only.
func SARIF(version string, findings []Finding, rules ...Rule) []byte {
	run := sarifRun{Tool: sarifTool{sarifDriver{Name: "goblin", Version: version, Rules: []sarifRule{}}}, Results: []sarifResult{}}
	driver := &run.Tool.Driver
	index := make(map[string]int, len(rules))
	for _, r := range rules {
		index[r.ID] = len(driver.Rules)
		one := sarifRule{ID: r.ID, Short: message(r.Short), Help: message(r.Help), URL: r.URL, Default: map[string]any{"level": level(r.Level)}}
		driver.Rules = append(driver.Rules, one)
	}
	for _, f := range findings {
		i, known := index[f.Rule]
		if !known {
			i = len(driver.Rules)
			index[f.Rule] = i
			driver.Rules = append(driver.Rules, sarifRule{ID: f.Rule})
		}
		run.Results = append(run.Results, sarifResult{RuleID: f.Rule, RuleIndex: i, Level: level(f.Level), Message: sarifMessage{f.Text}, Locations: locations(&f)})
	}
	text, err := json.MarshalIndent(sarifLog{sarifSchema, sarifVersion, []sarifRun{run}}, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("report: encode SARIF: %v", err)) // strings and numbers only
	}
	return append(text, '\n')
}

func message(text string) *sarifMessage {
	if text == "" {
		return nil
	}
	return &sarifMessage{text}
}

// level returns LevelWarning for levels that SARIF does not have.
func level(s string) string {
	if slices.Contains([]string{LevelError, LevelWarning, LevelNote}, s) {
		return s
	}
	return LevelWarning
}

func locations(f *Finding) []sarifLocation {
	var at sarifLocation
	if f.File != "" {
		at.Physical = &sarifPhysical{Artifact: sarifArtifact{fileURI(f.File)}}
		if f.Line > 0 {
			at.Physical.Region = &sarifRegion{f.Line}
		}
	}
	if f.Subject != "" {
		at.Logical = []sarifLogical{{f.Subject}}
	}
	if at.Physical == nil && at.Logical == nil {
		return nil
	}
	return []sarifLocation{at}
}

// fileURI returns a relative reference for a relative path, and a file URI otherwise.
func fileURI(path string) string {
	absolute := filepath.IsAbs(path)
	u := url.URL{Path: strings.ToValidUTF8(filepath.ToSlash(path), "\ufffd")}
	if absolute {
		u.Scheme = "file"
		if !strings.HasPrefix(u.Path, "/") { // a drive letter
			u.Path = "/" + u.Path
		}
	}
	return u.String()
}
