package tool_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/synapse-agents/synapse/tool"
)

func TestLoadSkills(t *testing.T) {
	project, user := t.TempDir(), t.TempDir()
	for name, content := range map[string]string{
		"skills/review/SKILL.md":      "---\nname: review\ndescription: >\n  Reviews a change\n  with care.\n---\n\n# Review\n\nLook twice.\n",
		"skills/lenient/SKILL.md":     "\ufeff---\r\ndescription: Use when: anything breaks\r\n---\r\nFix it.\r\n",
		"skills/plain/SKILL.md":       "# Title\n\nThe first line says what it is for.\nMore.\n",
		"skills/both/SKILL.md":        "of the project\n",
		"skills/open/SKILL.md":        "---\nnever closed\n",
		"skills/empty/SKILL.md":       "---\ndescription: nothing in it\n---\n",
		"skills/binary/SKILL.md":      "\x00\x01",
		"skills/noskill/README.md":    "x",
		"skills/stray.md":             "x",
		"skills/dir/SKILL.md/x":       "x",
		"skills/review/extra/file.md": "x",
	} {
		put(t, filepath.Join(project, name), content)
	}
	put(t, filepath.Join(user, "skills/both/SKILL.md"), "of the user\n")
	put(t, filepath.Join(user, "skills/mine/SKILL.md"), "only of the user\n")
	put(t, filepath.Join(user, "elsewhere/SKILL.md"), "linked within\n")
	if err := os.Symlink("../elsewhere", filepath.Join(user, "skills/linked")); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	put(t, secret, "secret\n")
	put(t, filepath.Join(project, "skills/thief/x"), "")
	if err := os.Symlink(secret, filepath.Join(project, "skills/thief/SKILL.md")); err != nil {
		t.Fatal(err)
	}
	skills, errs := tool.LoadSkills(project, filepath.Join(project, "nope"), user)
	at := func(dir, name string) string { return filepath.Join(dir, "skills", name) }
	want := []tool.Skill{
		{Name: "both", Description: "of the project", Body: "of the project", Dir: at(project, "both")},
		{Name: "lenient", Description: "Use when: anything breaks", Body: "Fix it.", Dir: at(project, "lenient")},
		{Name: "linked", Description: "linked within", Body: "linked within", Dir: at(user, "linked")},
		{Name: "mine", Description: "only of the user", Body: "only of the user", Dir: at(user, "mine")},
		{Name: "open", Description: "never closed", Body: "---\nnever closed", Dir: at(project, "open")},
		{Name: "plain", Description: "The first line says what it is for.", Body: "# Title\n\nThe first line says what it is for.\nMore.", Dir: at(project, "plain")},
		{Name: "review", Description: "Reviews a change with care.", Body: "# Review\n\nLook twice.", Dir: at(project, "review")},
	}
	if diff := cmp.Diff(want, skills); diff != "" {
		t.Errorf("skills (-want +got):\n%s", diff)
	}
	var messages []string
	for _, err := range errs {
		messages = append(messages, err.Error())
	}
	wantErrs := []string{
		"skill in " + project + ": skills/binary/SKILL.md is a binary file",
		"skill in " + project + ": skills/dir/SKILL.md is a directory",
		"skill in " + project + ": skills/empty/SKILL.md holds no instructions",
		"skill in " + project + ": skills/thief/SKILL.md: the path leads out of the workspace",
	}
	if diff := cmp.Diff(wantErrs, messages); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

func TestSkillTool(t *testing.T) {
	user := t.TempDir()
	put(t, filepath.Join(user, "skills/pdf-forms/SKILL.md"), "---\ndescription: Fills PDF forms.\n---\nRun fill.py.\n")
	put(t, filepath.Join(user, "skills/pdf-forms/fill.py"), "print(1)\n")
	skills, errs := tool.LoadSkills(user)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	dir := t.TempDir()
	put(t, filepath.Join(dir, ".synapse/skills/own/SKILL.md"), "Own way.\n")
	own, errs := tool.LoadSkills(filepath.Join(dir, ".synapse"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	w, err := tool.Open(dir, tool.Options{Skills: append(skills, own...)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	b := &bench{t, dir, w}
	if d := b.tool("skill").Description; !strings.HasSuffix(d, "\n- pdf-forms: Fills PDF forms.\n- own: Own way.") {
		t.Errorf("description %q", d)
	}
	if got := b.ok("skill", args{"name": "PDF forms"}); got != "[Skill pdf-forms. Its files are in .synapse/skills/pdf-forms; paths in it start there.]\n\nRun fill.py." {
		t.Errorf("got %q", got)
	}
	if got := b.ok("read_file", args{"path": ".synapse/skills/pdf-forms/fill.py"}); got != "1\tprint(1)" {
		t.Errorf("a file beside the skill: %q", got)
	}
	b.fails("write_file", args{"path": ".synapse/skills/pdf-forms/fill.py", "content": "x"}, "only for reading")
	if got := b.ok("skill", args{"name": "own"}); !strings.Contains(got, "in .synapse/skills/own;") {
		t.Errorf("got %q", got)
	}
	b.fails("skill", args{"name": "nope"}, `no skill "nope"; there are pdf-forms, own`)
	in := invocation(t, args{"name": "OWN"})
	in.Permits = func(s string) bool { return s != "own" }
	if r := b.call("skill", in); !r.IsError || !strings.Contains(r.Text, "permission denied") {
		t.Errorf("another spelling got around a rule: %q", r.Text)
	}
	none := open(t, tool.Options{}, nil)
	none.fails("skill", args{"name": "x"}, "none is installed")
}

// However many skills there are, the description stays small and names all.
func TestSkillListIsBounded(t *testing.T) {
	var skills []tool.Skill
	for i := range 60 {
		skills = append(skills, tool.Skill{Name: "skill-" + string(rune('a'+i%26)) + strings.Repeat("x", i/26), Description: strings.Repeat("long words ", 100), Body: "b"})
	}
	b := open(t, tool.Options{Skills: skills}, nil)
	d := b.tool("skill").Description
	if len(d) > 2200 {
		t.Errorf("%d bytes", len(d))
	}
	for _, s := range skills {
		if !strings.Contains(d, "- "+s.Name) {
			t.Errorf("%s is not named", s.Name)
		}
	}
}

func FuzzSkill(f *testing.F) {
	f.Add([]byte("---\ndescription: x\n---\nbody"))
	f.Add([]byte("---\na: b: c\n---\n"))
	f.Add([]byte("\xff\xfe-\x00"))
	f.Add([]byte("---\n---"))
	f.Add([]byte("---\ndescription: [1\n---\nx"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content []byte) {
		put(t, filepath.Join(dir, "skills/s/SKILL.md"), string(content))
		skills, errs := tool.LoadSkills(dir)
		if len(skills)+len(errs) != 1 {
			t.Fatalf("%d skills, %d errors", len(skills), len(errs))
		}
		if len(skills) == 1 && (strings.TrimSpace(skills[0].Body) == "" || strings.Contains(skills[0].Description, "\n")) {
			t.Errorf("%+v", skills[0])
		}
	})
}
