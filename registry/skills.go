package registry

import (
	"errors"
	"fmt"
	"strings"

	"goblin/registry/names"
	"goblin/registry/rawjson"
)

// skillFile ends the URI of each skill (SEP-2640). What stands before it is the skill's
// folder, in which all of its files are.
const skillFile = "/SKILL.md"

// maxFolders is how many folders above a file are looked at for the skill that has it.
const maxFolders = 64

// CheckSkill says what is wrong with the entry of a skill: where it is and where its
// files are. Digests, sizes and frontmatter are for hosts to judge.
func CheckSkill(entry []byte) error {
	_, err := skillLinks(entry)
	return err
}

// skillLinks are the URIs in a skill's entry but for its own, in the order of the text.
func skillLinks(entry []byte) (links []definitionLink, err error) {
	uri := rawjson.GetString(entry, "uri")
	folder, ok := strings.CutSuffix(uri, skillFile)
	switch {
	case !ok || folder == "":
		return nil, fmt.Errorf("its uri does not end in %s", skillFile)
	case names.HasDotDot(uri):
		return nil, fmt.Errorf("its uri climbs out of its folder")
	}
	for file := range rawjson.Elements(rawjson.Get(entry, "resources")) {
		value := rawjson.Get(file, "uri")
		own, ok := rawjson.String(value)
		if !ok || len(own) > MaxURI || !strings.HasPrefix(own, folder+"/") || names.HasDotDot(own) {
			return nil, fmt.Errorf("its file %q is not in its folder", clip(own))
		}
		links = append(links, definitionLink{value, own})
	}
	return links, nil
}

// ServesSkills reports whether a server serves skills, whether it lists any or not.
func (r *Registry) ServesSkills(server string, serves bool) {
	r.changeTable(server, func(t *table) { t.skills = serves })
}

// inSkill reports whether a URI is that of a skill which the server lists, of a folder
// of its, or of what may be a file there.
func (t *table) inSkill(uri string) bool {
	run := t.runs[Skill]
	if run == nil || names.HasDotDot(uri) {
		return false
	}
	for folder, n := uri, 0; n < maxFolders; n++ {
		file := folder + skillFile
		if run.name(hashKey(file), file) != nil {
			return true
		}
		at := strings.LastIndexByte(folder, '/')
		if at <= 0 {
			return false
		}
		folder = folder[:at]
	}
	return false
}

// mayHave reports whether a URI may be one of the server's skills, or in one: those that
// it does not list are known to itself alone.
func (t *table) mayHave(uri string) bool {
	return t.inSkill(uri) || t.skills && strings.HasPrefix(uri, names.SkillScheme) && !names.HasDotDot(uri)
}

// ResolveSkill finds the skill, or the folder, that a client means by a URI: of a server
// named in it, listed or not; else that of exactly one server. Errors as
// [Registry.ResolveTool].
func (s *Snapshot) ResolveSkill(uri string) (Target, error) {
	if len(uri) > MaxURI {
		return Target{}, nameTooLong(Skill, uri, MaxURI)
	}
	unknown := &NotFoundError{Kind: Skill, Name: uri, Reason: ReasonNotFound}
	t, _, rest, _, bare := s.located(uri)
	if t == nil {
		h := resolution{s: s, kind: Skill, name: uri}
		for _, t := range s.tables[1:] {
			if t.inSkill(uri) && !s.isUnapprovedSkill(t.name, uri) {
				h.add(s.skill(t, uri))
			}
		}
		if target, ok, err := h.result(); ok {
			return target, err
		}
		return s.directory(uri, unknown)
	}
	unknown.Owner = t.name
	own := rest
	switch decoded := names.UnescapeURI(rest); {
	case t.inSkill(rest):
	case decoded != rest && t.inSkill(decoded):
		own = decoded
	case bare && t.inSkill(uri):
		own = uri
	case !t.mayHave(rest):
		return s.directory(uri, unknown)
	}
	if t.rule == nil || s.isUnapprovedSkill(t.name, own) || !s.IsVisible(t.name, Skill, own) {
		return Target{}, unknown
	}
	return s.skill(t, own), nil
}

// directory finds a folder that is in no skill: it is a resource like others.
func (s *Snapshot) directory(uri string, unknown *NotFoundError) (Target, error) {
	t, err := s.ResolveResource(uri)
	var several *AmbiguousError
	if err == nil && t.Local == nil || errors.As(err, &several) {
		return t, err
	}
	return Target{}, unknown
}

// skill is the target for a URI in a skill of a server.
func (s *Snapshot) skill(t *table, uri string) Target {
	if e := t.runs[Skill].name(hashKey(uri), uri); e != nil {
		return s.target(e)
	}
	return Target{Server: t.name, Name: uri, Listed: names.NamespacedURI(t.name, uri)}
}

// isUnapprovedSkill reports whether a URI is that of a hidden unapproved skill, or below one.
func (s *Snapshot) isUnapprovedSkill(server, uri string) bool {
	for _, p := range s.pinned.forServer(server) {
		if folder, ok := strings.CutSuffix(p.Name, skillFile); ok && p.Hidden && (uri == folder || strings.HasPrefix(uri, folder+"/")) {
			return true
		}
	}
	return false
}
