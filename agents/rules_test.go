package agents_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse/agents"
)

// checkFile reads a file as it is read where it lies, and lints it.
func checkFile(t *testing.T, file, text string) []string {
	t.Helper()
	root := tree(t, map[string]string{file: text})
	layer := agents.LoadFile(filepath.Join(root, file), agents.LayerProject, agents.LoadOptions{Detect: true})
	var codes []string
	for _, d := range slices.Concat(layer.Diagnostics, agents.Lint(layer.Defs, agents.LintOptions{})) {
		codes = append(codes, d.Code)
	}
	return codes
}

// TestRuleExamples: what a rule shows as bad is found, and what it shows as good
// is not. What is said to be mended is.
func TestRuleExamples(t *testing.T) {
	for _, r := range agents.Rules() {
		if r.About == "" || r.Severity == "" {
			t.Errorf("%s says nothing", r.Code)
		}
		if r.Bad == "" {
			continue
		}
		if got := checkFile(t, r.File, r.Bad); !slices.Contains(got, r.Code) {
			t.Errorf("%s is not found in its example: %q", r.Code, got)
		}
		if got := checkFile(t, r.File, r.Good); slices.Contains(got, r.Code) {
			t.Errorf("%s is found in the file that shows how it should be: %q", r.Code, got)
		}
		fixed, applied := agents.Fix(r.File, []byte(r.Bad), agents.ProductOf(r.File))
		if r.Fix == "" {
			continue
		}
		if len(applied) == 0 || applied[0].Code != r.Code || strings.Contains(string(fixed), r.Bad) {
			t.Errorf("%s is not mended: %v", r.Code, applied)
		}
	}
}

// TestRulesWithoutExample lists the rules that are no matter of one file.
func TestRulesWithoutExample(t *testing.T) {
	var got []string
	for _, r := range agents.Rules() {
		if r.Bad == "" {
			got = append(got, r.Code)
		}
	}
	want := []string{
		agents.CodeDescCollision, agents.CodeDescCost, agents.CodeDocFile, agents.CodeDuplicateName, agents.CodeElsewhere,
		agents.CodeFrontmatterTree, agents.CodeHiddenFile, agents.CodeNotAFile, agents.CodeOutsideRoot, agents.CodeShadowLost,
		agents.CodeSymlinkLoop, agents.CodeTooLarge, agents.CodeUnreadable,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDetectPath(t *testing.T) {
	for _, tt := range []struct {
		file, origin string
		stem         bool
		root, below  string
	}{
		{"w/.claude/agents/team/x.md", "claude", true, "w", "team/x.md"},
		{".claude/agents/x.md", "claude", true, ".", "x.md"},
		{"/.claude/agents/x.md", "claude", true, "/", "x.md"},
		{"/w/a b/.github/agents/x.md", "copilot", true, "/w/a b", "x.md"},
		{"w/x.agent.md", "copilot", true, "", "x.agent.md"},
		{"w/opencode.json", "opencode", true, "w", "opencode.json"},
		{"w/.opencode/agents/a/x.md", "opencode", true, "w", "a/x.md"},
		{"w/x.toml", "codex", true, "", "x.toml"},
		{"w/.synapse/agents/x.md", "", false, "w", "x.md"},
		{"w/.claude/agents/x.toml", "codex", true, "", "x.toml"},
		{"w/agents/x.md", "", false, "", "x.md"},
		{"w/subagents/custom.json", "", false, "w", "custom.json"},
		{"w/.other/agents/x.md", "", true, "", "x.md"},
	} {
		if origin, stem := agents.Detect(tt.file); origin != tt.origin || stem != tt.stem {
			t.Errorf("Detect(%q) = %q, %t", tt.file, origin, stem)
		}
		if root := agents.PlaceRoot(tt.file); root != tt.root {
			t.Errorf("PlaceRoot(%q) = %q, want %q", tt.file, root, tt.root)
		}
		if below := agents.PathInPlace(tt.file); below != tt.below {
			t.Errorf("PathInPlace(%q) = %q, want %q", tt.file, below, tt.below)
		}
	}
}
