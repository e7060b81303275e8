package calltest

import (
	"goblin/registry/report"
	"goblin/registry/savedcall"
)

var sarifRules = []report.Rule{
	{ID: "saved-call/definition", Level: report.LevelError, Short: "The definition of a tool differs from the saved one.", Help: `Review the tool. "goblin test --update" accepts its definition.`},
	{ID: "saved-call/schema", Level: report.LevelError, Short: "An answer does not fit the tool's outputSchema.", Help: "Fix the answer or the schema in the server."},
}

// SARIF returns the failures about definitions in SARIF: changed definitions and answers
// that do not fit the output schema.
func (r *Report) SARIF(version string) []byte {
	var findings []report.Finding
	for i := range r.Results {
		one := &r.Results[i]
		for _, f := range one.Failures() {
			if f.Check != savedcall.CheckDefinition && f.Check != savedcall.CheckSchema {
				continue
			}
			subject := one.Call.Name
			if one.Server != "" {
				subject = one.Server + "/" + subject
			}
			findings = append(findings, report.Finding{
				Rule: "saved-call/" + string(f.Check), Level: report.LevelError, Text: r.text(one.Call.Name + ": " + f.String()),
				Subject: r.text(subject), File: r.inRoot(f.Path), Line: f.Line,
			})
		}
	}
	return report.SARIF(version, findings, sarifRules...)
}
