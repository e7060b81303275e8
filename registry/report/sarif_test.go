package report_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"goblin/registry/report"
)

func TestSARIFFitsTheOfficialSchema(t *testing.T) {
	t.Parallel()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	schema, err := compiler.Compile("testdata/sarif-schema-2.1.0.json")
	require.NoError(t, err)
	rules := []report.Rule{{ID: "names/long", Level: report.LevelError, Short: "A name is too long.", Help: "Shorten it.", URL: "https://example.com/x"}, {ID: "unused"}}
	findings := []report.Finding{
		{Rule: "names/long", Level: report.LevelError, Text: "tool x: \x1b[31m\xff", Subject: "tool x", File: "saved/a b/ö%.yaml", Line: 3},
		{Rule: "other", Level: "fatal", Text: "y", File: "/srv/c:d.yaml"},
		{Rule: "other", Level: report.LevelNote, Text: "z"},
		{Rule: "other", Text: "", File: "x:y.yaml", Line: -1},
	}
	for _, log := range [][]byte{report.SARIF("v1", findings, rules...), report.SARIF("", nil)} {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(log))
		require.NoError(t, err)
		require.NoError(t, schema.Validate(v), "%s", log)
	}
	var got struct {
		Runs []struct {
			Tool struct {
				Driver struct {
					Rules []struct{ ID string }
				}
			}
			Results []struct {
				RuleID    string
				RuleIndex int
				Level     string
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
					LogicalLocations []struct{ FullyQualifiedName string }
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(report.SARIF("v1", findings, rules...), &got))
	run := got.Runs[0]
	var levels, files []string
	for _, r := range run.Results {
		require.Equal(t, r.RuleID, run.Tool.Driver.Rules[r.RuleIndex].ID)
		levels = append(levels, r.Level)
		for _, l := range r.Locations {
			files = append(files, l.PhysicalLocation.ArtifactLocation.URI)
		}
	}
	require.Equal(t, []string{"error", "warning", "note", "warning"}, levels)
	require.Equal(t, []string{"saved/a%20b/%C3%B6%25.yaml", "file:///srv/c:d.yaml", "./x:y.yaml"}, files)
	first := run.Results[0].Locations[0]
	require.Equal(t, 3, first.PhysicalLocation.Region.StartLine)
	require.Equal(t, "tool x", first.LogicalLocations[0].FullyQualifiedName)
	require.Empty(t, run.Results[2].Locations)
}
