package agents

// A Rule is something that checking definition files can find, with an example
// of it.
type Rule struct {
	CodeInfo
	// Fix says what [Fix] does about it, "" where nothing can be done safely.
	Fix string `json:"fix,omitempty"`
	// Bad and Good are the text of a file in which it is found, and of one in
	// which it is not, "" where it is no matter of a single file. File is where
	// such a file may lie: that tells whose it is.
	File string `json:"file,omitempty"`
	Bad  string `json:"bad,omitempty"`
	Good string `json:"good,omitempty"`
}

// Rules lists what can be found in definition files, in byte order of the codes.
func Rules() []Rule {
	var list []Rule
	for _, c := range Codes() {
		if c.Code == CodeNarrowed || c.Code == CodeNotSaid || c.Code == CodeWidened {
			continue // of converting
		}
		r := Rule{CodeInfo: c, Fix: fixes[c.Code]}
		if e, ok := ruleExamples[c.Code]; ok {
			r.File, r.Bad, r.Good = e.file, e.bad, e.good
			if r.File == "" {
				r.File = nativeDir + "/reviewer.md"
			}
		}
		list = append(list, r)
	}
	return list
}

var fixes = map[string]string{
	CodeYAMLLenient:    "puts the value in quotes",
	CodeKeySpelling:    "writes the key as it is documented",
	CodeDuplicateField: "removes the field that has no effect",
	CodeToolUnknown:    "writes the tool's name as it is, where only letter case, - or _ differ",
}

type ruleExample struct{ file, bad, good string }

// reviewFile makes a file of the lines between the rules.
func reviewFile(lines string) string { return "---\n" + lines + "---\nYou review changes.\n" }

const (
	exampleName = "name: reviewer\n"
	exampleHead = exampleName + "description: Use after a change, to find its faults.\n"
	claudeFile  = ".claude/agents/reviewer.md"
)

// ruleExamples holds an example for each rule about a single file. A test reads
// them all.
var ruleExamples = map[string]ruleExample{
	CodeBadName:         {bad: reviewFile("name: ../reviewer\ndescription: Use after a change, to find its faults.\n"), good: reviewFile(exampleHead)},
	CodeBadRestriction:  {bad: reviewFile(exampleHead + "max_turns: many\n"), good: reviewFile(exampleHead + "max_turns: 15\n")},
	CodeBadSchema:       {bad: reviewFile(exampleHead + "output_schema: {type: 5}\n"), good: reviewFile(exampleHead + "output_schema: {type: object}\n")},
	CodeBadValue:        {bad: reviewFile(exampleHead + "temperature: warm\n"), good: reviewFile(exampleHead + "temperature: 0.3\n")},
	CodeBodyTwice:       {bad: reviewFile(exampleHead + "system_prompt: You review.\n"), good: reviewFile(exampleHead)},
	CodeConvertedValue:  {bad: reviewFile(exampleHead + "mode: Subagent\n"), good: reviewFile(exampleHead + "mode: subagent\n")},
	CodeDenialUnneeded:  {bad: reviewFile(exampleHead + "tools: [read_file]\ndisallowed_tools: [execute]\n"), good: reviewFile(exampleHead + "tools: [read_file]\n")},
	CodeDescVague:       {bad: reviewFile(exampleName + "description: A reviewer.\n"), good: reviewFile(exampleHead)},
	CodeDuplicateField:  {bad: reviewFile(exampleHead + "max_turns: 15\nmax_turns: 20\n"), good: reviewFile(exampleHead + "max_turns: 15\n")},
	CodeEncoding:        {bad: reviewFile(exampleHead) + "caf\xe9\n", good: reviewFile(exampleHead) + "café\n"},
	CodeFieldIgnored:    {file: claudeFile, bad: reviewFile(exampleHead + "memory: project\n"), good: reviewFile(exampleHead)},
	CodeForeignField:    {file: claudeFile, bad: reviewFile(exampleHead + "max_turns: 15\n"), good: reviewFile(exampleHead + "maxTurns: 15\n")},
	CodeFrontmatterOpen: {bad: "---\n" + exampleHead + "\nYou review changes.\n", good: reviewFile(exampleHead)},
	CodeJSONForm:        {file: "subagents/custom.json", bad: "{\"name\": \"reviewer\", \"description\": \"Use after a change.\", \"system_prompt\": \"You review.\"}\n", good: "{\"agents\": {\"reviewer\": {\"description\": \"Use after a change.\", \"system_prompt\": \"You review.\"}}}\n"},
	CodeJSONShape:       {file: "subagents/custom.json", bad: "[1, 2]\n", good: "{\"agents\": {}}\n"},
	CodeJSONSyntax:      {file: "subagents/custom.json", bad: "{\"agents\": {}\n", good: "{\"agents\": {}}\n"},
	CodeKeySpelling:     {bad: reviewFile(exampleHead + "Max-Turns: 15\n"), good: reviewFile(exampleHead + "max_turns: 15\n")},
	CodeLeadingText:     {bad: "<!-- ours -->\n" + reviewFile(exampleHead), good: reviewFile(exampleHead)},
	CodeMissingBody:     {bad: "---\n" + exampleHead + "---\n", good: reviewFile(exampleHead)},
	CodeMissingDesc:     {bad: reviewFile(exampleName), good: reviewFile(exampleHead)},
	CodeMissingName:     {bad: reviewFile("description: Use after a change, to find its faults.\n"), good: reviewFile(exampleHead)},
	CodeNameFromFile:    {file: claudeFile, bad: reviewFile("description: Use after a change, to find its faults.\n"), good: reviewFile(exampleHead)},
	CodeNameMismatch:    {file: "subagents/custom.json", bad: "{\"agents\": {\"reviewer\": {\"name\": \"critic\", \"description\": \"Use after a change.\", \"system_prompt\": \"You review.\"}}}\n", good: "{\"agents\": {\"reviewer\": {\"description\": \"Use after a change.\", \"system_prompt\": \"You review.\"}}}\n"},
	CodeNoFrontmatter:   {bad: "You review changes.\n", good: reviewFile(exampleHead)},
	CodeNotMapping:      {bad: reviewFile("- name\n- description\n"), good: reviewFile(exampleHead)},
	CodeNotRunnable:     {file: ".gemini/agents/reviewer.md", bad: reviewFile(exampleHead + "kind: remote\n"), good: reviewFile(exampleHead + "kind: local\n")},
	CodeNotWidened:      {file: claudeFile, bad: reviewFile(exampleHead + "permissionMode: acceptEdits\n"), good: reviewFile(exampleHead)},
	CodeProductAgent:    {file: "opencode.json", bad: "{\"agent\": {\"build\": {\"model\": \"anthropic/claude-sonnet-4-5\"}}}\n", good: "{\"agent\": {\"reviewer\": {\"description\": \"Use after a change.\", \"prompt\": \"You review.\"}}}\n"},
	CodeRuleOverridden:  {bad: reviewFile(exampleHead + "permissions:\n  execute:\n    git *: allow\n    \"*\": ask\n"), good: reviewFile(exampleHead + "permissions:\n  execute:\n    \"*\": ask\n    git *: allow\n")},
	CodeStricter:        {file: claudeFile, bad: reviewFile(exampleHead + "permissionMode: plan\n"), good: reviewFile(exampleHead + "tools: Read, Grep\n")},
	CodeTOMLSyntax:      {file: ".codex/agents/reviewer.toml", bad: "name = reviewer\n", good: "name = \"reviewer\"\ndescription = \"Use after a change, to find its faults.\"\ndeveloper_instructions = \"You review.\"\n"},
	CodeToolUnknown:     {bad: reviewFile(exampleHead + "tools: [Read_File, serach]\n"), good: reviewFile(exampleHead + "tools: [read_file, search_files]\n")},
	CodeToolsMap:        {bad: reviewFile(exampleHead + "tools: {read_file: true, execute: false}\n"), good: reviewFile(exampleHead + "tools: [read_file]\n")},
	CodeToolsShape:      {bad: reviewFile(exampleHead + "tools: read_file search_files\n"), good: reviewFile(exampleHead + "tools: [read_file, search_files]\n")},
	CodeUnknownField:    {bad: reviewFile(exampleHead + "tone: friendly\n"), good: reviewFile(exampleHead)},
	CodeYAMLLenient:     {bad: reviewFile(exampleName + "description: Use it: after each change\n"), good: reviewFile(exampleName + "description: 'Use it: after each change'\n")},
	CodeYAMLTag:         {bad: reviewFile(exampleName + "description: !text Use after a change, to find its faults.\n"), good: reviewFile(exampleHead)},
}
