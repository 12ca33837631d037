package agents

import "slices"

// The codes of the diagnostics of this package. They are stable: scripts and
// settings may name them.
const (
	CodeBadName         = "bad-name"
	CodeBadRestriction  = "bad-restriction"
	CodeBadSchema       = "bad-schema"
	CodeBadValue        = "bad-value"
	CodeBodyTwice       = "body-twice"
	CodeConvertedValue  = "converted-value"
	CodeDenialUnneeded  = "denial-unneeded"
	CodeDescCollision   = "description-collision"
	CodeDescCost        = "description-cost"
	CodeDescVague       = "description-vague"
	CodeDocFile         = "doc-file"
	CodeDuplicateField  = "duplicate-field"
	CodeDuplicateName   = "duplicate-name"
	CodeElsewhere       = "elsewhere"
	CodeEncoding        = "encoding"
	CodeFrontmatterOpen = "frontmatter-open"
	CodeFrontmatterTree = "frontmatter-complex"
	CodeFieldIgnored    = "field-ignored"
	CodeForeignField    = "foreign-field"
	CodeHiddenFile      = "hidden-file"
	CodeJSONForm        = "json-form"
	CodeJSONShape       = "json-shape"
	CodeJSONSyntax      = "json-syntax"
	CodeKeySpelling     = "key-spelling"
	CodeLeadingText     = "leading-text"
	CodeMissingBody     = "missing-body"
	CodeMissingDesc     = "missing-description"
	CodeMissingName     = "missing-name"
	CodeNameFromFile    = "name-from-file"
	CodeNameMismatch    = "name-mismatch"
	CodeNoFrontmatter   = "no-frontmatter"
	CodeNotAFile        = "not-a-file"
	CodeNotRunnable     = "not-runnable"
	CodeNarrowed        = "narrowed"
	CodeNotMapping      = "frontmatter-shape"
	CodeNotSaid         = "not-said"
	CodeNotWidened      = "not-widened"
	CodeOutsideRoot     = "outside-root"
	CodeProductAgent    = "product-agent"
	CodeRuleOverridden  = "rule-overridden"
	CodeShadowLost      = "shadow-lost"
	CodeStricter        = "stricter"
	CodeSymlinkLoop     = "symlink-loop"
	CodeTOMLSyntax      = "toml-syntax"
	CodeTooLarge        = "too-large"
	CodeToolUnknown     = "tool-unknown"
	CodeToolsMap        = "tools-map"
	CodeToolsShape      = "tools-shape"
	CodeUnknownField    = "unknown-field"
	CodeUnreadable      = "unreadable"
	CodeWidened         = "widened"
	CodeYAMLLenient     = "yaml-lenient"
	CodeYAMLTag         = "yaml-tag"
)

// A CodeInfo describes one diagnostic code.
type CodeInfo struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"` // the usual one
	About    string   `json:"about"`
}

var codeTable = []CodeInfo{
	{CodeBadName, Error, "The name holds “..”, a control character or an invisible one, or is longer than 64 characters."},
	{CodeBadRestriction, Error, "A field that restricts the agent has a value that can't be read, or a line looks like such a field and is none. A restriction that can't be read never becomes “everything”, so the definition is disabled."},
	{CodeBadSchema, Warn, "The output_schema is no JSON Schema, or its file can't be read. The field is dropped."},
	{CodeBadValue, Warn, "A field that restricts nothing has a value that can't be read. The field is dropped."},
	{CodeBodyTwice, Warn, "A Markdown file has both a body and the field system_prompt. The body is used."},
	{CodeConvertedValue, Warn, "A value has another type or letter case than its field and was converted."},
	{CodeDenialUnneeded, Warn, "disallowed_tools names a tool that tools does not list, so that denying it changes nothing."},
	{CodeDescCollision, Warn, "Two agents have nearly the same description, so that which of them is called is left to chance."},
	{CodeDescCost, Warn, "A description, or all of them together, take much of every prompt."},
	{CodeDescVague, Warn, "A description hardly says more than the name, so that nobody knows when to call the agent."},
	{CodeDocFile, Info, "README, CHANGELOG and the like, without frontmatter: passed over as documentation."},
	{CodeDuplicateField, Warn, "A field is set twice. The first one counts, a field's own name before its other spellings; denials add up. Two different permission maps are an error."},
	{CodeDuplicateName, Warn, "Two definitions of one layer have the same name. The first in byte order of the path counts."},
	{CodeElsewhere, Info, "Another product would refuse the file, or run its agent with all tools."},
	{CodeEncoding, Warn, "The file is UTF-16, or holds bytes that are not UTF-8, NUL characters or lone carriage returns. They were decoded or replaced."},
	{CodeFrontmatterOpen, Warn, "The frontmatter does not end in a line “---”. Its end was taken to be the last line that sets a known field. An error when a restricting field stands further down."},
	{CodeFrontmatterTree, Error, "The frontmatter has too many values or is nested too deeply to be read with little memory."},
	{CodeFieldIgnored, Warn, "A field of another product that has no counterpart here. Its value is kept and has no effect."},
	{CodeForeignField, Warn, "The file is another product's, and the field is ours. It counts here, and has no effect there."},
	{CodeHiddenFile, Info, "A file whose name begins with a dot is no definition."},
	{CodeJSONForm, Warn, "The JSON has another form than {\"agents\": {\"<name>\": {…}}}, whose meaning is clear."},
	{CodeJSONShape, Error, "The JSON is not {\"agents\": {\"<name>\": {…}}}."},
	{CodeJSONSyntax, Error, "The file is not valid JSON."},
	{CodeKeySpelling, Warn, "A key is a known field in another letter case or with other separators. It was read as that field."},
	{CodeLeadingText, Warn, "Blank lines, an HTML comment, a code fence or indentation stand before the frontmatter and were skipped."},
	{CodeMissingBody, Error, "The definition has no body, that is, no system prompt."},
	{CodeMissingDesc, Error, "The definition has no description."},
	{CodeMissingName, Error, "The definition has no name."},
	{CodeNameFromFile, Warn, "The definition has no name and goes by the name of its file."},
	{CodeNameMismatch, Warn, "In JSON, a definition's name differs from the key it stands under. The key counts."},
	{CodeNoFrontmatter, Error, "The file does not begin with frontmatter."},
	{CodeNotAFile, Error, "The path is not what is wanted: a directory, a pipe or a device in place of a file, or a file in place of a directory."},
	{CodeNotMapping, Error, "The frontmatter is not a map of fields."},
	{CodeNotRunnable, Error, "The agent runs outside of the product that its file is for: on a server, or in another program."},
	{CodeNotWidened, Warn, "The file asks for fewer questions or wider rights than the user's rules give. That is not followed."},
	{CodeNarrowed, Warn, "In the format that a definition is converted to, the agent can do less than before."},
	{CodeNotSaid, Warn, "The format that a definition is converted to can't say something that restricts nothing. It is left out."},
	{CodeOutsideRoot, Error, "A symlink leads out of the directory that is being read, and is not followed."},
	{CodeProductAgent, Info, "An entry that only sets up an agent which is part of another product: passed over."},
	{CodeRuleOverridden, Warn, "A permission rule never decides, as a later one is about all of its calls."},
	{CodeShadowLost, Warn, "A file that could not be loaded has the name of an agent of a lower layer, which now answers to that name."},
	{CodeStricter, Warn, "A restriction of another product can't be said here as it is there. The agent gets less than it would have there, never more."},
	{CodeSymlinkLoop, Error, "A symlink leads back to itself or to a directory that is being read."},
	{CodeTOMLSyntax, Error, "The file is not valid TOML."},
	{CodeTooLarge, Error, "The file is larger than 1 MiB."},
	{CodeToolUnknown, Warn, "A name means no tool here, and none that the file's own product has."},
	{CodeToolsMap, Warn, "tools is a map of names to true or false. The true ones are read as the list, the false ones as denials."},
	{CodeToolsShape, Warn, "tools has a shape that the format does not have, but whose meaning is clear."},
	{CodeUnknownField, Warn, "The key is not a field of a definition. Its value is kept and has no effect."},
	{CodeUnreadable, Error, "The file or directory can't be opened or read."},
	{CodeWidened, Error, "The format that a definition is converted to can't say a restriction, so that the agent could do more than before."},
	{CodeYAMLLenient, Warn, "The frontmatter is not valid YAML and was read leniently, field by field."},
	{CodeYAMLTag, Warn, "A value carries a YAML tag. Tags are not carried out; in text they are taken as text."},
}

// Codes lists every code that diagnostics of this package may have, in byte
// order, with a sentence each.
func Codes() []CodeInfo {
	list := slices.Clone(codeTable)
	slices.SortFunc(list, func(a, b CodeInfo) int {
		if a.Code < b.Code {
			return -1
		}
		return 1
	})
	return list
}
