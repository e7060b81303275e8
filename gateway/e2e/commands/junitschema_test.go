//go:build e2e

package commands

import (
	"encoding/xml"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// xsd is the part of XML Schema that testdata/junit.xsd of package calltest uses.
type xsd struct {
	Elements []struct {
		Name string `xml:"name,attr"`
		Type struct {
			Mixed    bool `xml:"mixed,attr"`
			Sequence struct {
				Parts []xsdPart `xml:"element"`
			} `xml:"sequence"`
			Choice struct {
				Parts []xsdPart `xml:"element"`
			} `xml:"choice"`
			Attributes []struct {
				Name string `xml:"name,attr"`
				Type string `xml:"type,attr"`
			} `xml:"attribute"` // all are required
		} `xml:"complexType"`
	} `xml:"element"`
}

type xsdPart struct {
	Ref string `xml:"ref,attr"`
	Min int    `xml:"minOccurs,attr"`
	Max string `xml:"maxOccurs,attr"`
}

type xmlNode struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Children []xmlNode  `xml:",any"`
	Text     string     `xml:",chardata"`
}

var xsdTypes = map[string]*regexp.Regexp{
	"xs:string":             regexp.MustCompile(`(?s).*`),
	"xs:decimal":            regexp.MustCompile(`^[0-9]+\.[0-9]+$`),
	"xs:nonNegativeInteger": regexp.MustCompile(`^[0-9]+$`),
	"xs:dateTime":           regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$`),
}

// validJUnit checks a file against the schema and returns its root.
func validJUnit(t *testing.T, path string) xmlNode {
	t.Helper()
	text, err := os.ReadFile("../../calltest/testdata/junit.xsd")
	require.NoError(t, err)
	var schema xsd
	require.NoError(t, xml.Unmarshal(text, &schema))
	require.Len(t, schema.Elements, 6)
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	var root xmlNode
	require.NoError(t, xml.Unmarshal(file, &root))
	require.Equal(t, "testsuites", root.XMLName.Local)
	schema.check(t, &root)
	return root
}

func (s *xsd) check(t *testing.T, n *xmlNode) {
	t.Helper()
	name, known := n.XMLName.Local, false
	for _, e := range s.Elements {
		if e.Name != name {
			continue
		}
		known = true
		require.Len(t, n.Attrs, len(e.Type.Attributes), name)
		for _, a := range e.Type.Attributes {
			require.Regexp(t, xsdTypes[a.Type], n.attr(t, a.Name), "%s of %s", a.Name, name)
		}
		if !e.Type.Mixed {
			require.Empty(t, strings.TrimSpace(n.Text), name)
		}
		counts := map[string]int{}
		for i := range n.Children {
			counts[n.Children[i].XMLName.Local]++
		}
		for _, part := range e.Type.Sequence.Parts {
			require.GreaterOrEqual(t, counts[part.Ref], part.Min, "%s in %s", part.Ref, name)
			delete(counts, part.Ref)
		}
		for _, part := range e.Type.Choice.Parts {
			require.LessOrEqual(t, len(n.Children), 1, "children of %s", name)
			delete(counts, part.Ref)
		}
		require.Empty(t, counts, "unknown children of %s", name)
	}
	require.True(t, known, "unknown element %s", name)
	for i := range n.Children {
		s.check(t, &n.Children[i])
	}
}

func (n *xmlNode) attr(t *testing.T, name string) string {
	t.Helper()
	for _, a := range n.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	t.Fatalf("%s has no attribute %s", n.XMLName.Local, name)
	return ""
}

func (n *xmlNode) number(t *testing.T, name string) int {
	t.Helper()
	v, err := strconv.Atoi(n.attr(t, name))
	require.NoError(t, err)
	return v
}

// testCase returns the test case of a file.
func (n *xmlNode) testCase(t *testing.T, name string) *xmlNode {
	t.Helper()
	for i := range n.Children {
		for j := range n.Children[i].Children {
			if c := &n.Children[i].Children[j]; c.attr(t, "name") == name {
				return c
			}
		}
	}
	t.Fatalf("no test case %s", name)
	return nil
}
