package run_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// cases is an index: faults that other agent systems have had and that concern
// this package, as behaviours, with the tests that show them here.
var cases = []struct {
	section, behaviour string
	tests              []string
}{
	{"permissions", "a restriction set since holds for a child that is continued", []string{"TestContinueUnderNewRestrictions"}},
	{"permissions", "a background child's question reaches the user, or the child reports the denial", []string{"TestBackgroundQuestion", "TestNobodyToAsk"}},
	{"permissions", "the same rules hold in foreground and background", []string{"TestNobodyToAsk"}},
	{"permissions", "the list that is offered is the list that is enforced, delegation included", []string{"TestOfferedIsEnforced", "TestForgedCalls", "TestForgedCallsWithoutTools"}},
	{"permissions", "without someone to ask, a question is a denial", []string{"TestNobodyToAsk"}},
	{"permissions", "a search without a path is not denied by mistake", []string{"TestAbsentPathIsTheWorkspace"}},
	{"permissions", "arguments the rules have not seen don't reach the tool", []string{"TestArgumentsOfAnotherCase"}},
	{"permissions", "an approval is for what was asked about", []string{"TestPermitsAfterApproval"}},

	{"ends", "an idle stream ends as a failure, not never", []string{"TestRetries"}},
	{"ends", "a stalled provider is tried again, then fails", []string{"TestRetries"}},
	{"ends", "one hung child doesn't withhold its siblings' results or void a fan-out", []string{"TestHungToolDoesNotWithholdTheOthers", "TestHungGrandchild"}},
	{"ends", "a wait with a time limit returns", []string{"TestTaskOutputAndStop"}},
	{"ends", "the time limit covers the whole life of a child", []string{"TestTimeLimitCoversTheWholeLife", "TestOwnClock"}},
	{"ends", "a provider's error is no success", []string{"TestEnds"}},
	{"ends", "a rate-limited child returns what it has", []string{"TestRetryAfterPastTheDeadline"}},
	{"ends", "stopping at the turn limit is marked partial", []string{"TestEnds"}},
	{"ends", "a child's own limit is used, and the smaller of it and what is left", []string{"TestEnds", "TestSharedLimits", "TestInvariants"}},
	{"ends", "the status of a running child is what it is, never guessed", []string{"TestTaskOutputAndStop", "TestContinueAfterCrash"}},
	{"ends", "a run that is replaced is cancelled, not failed", []string{"TestCancelStartsNothing", "TestBreakWaits"}},
	{"ends", "what a dead child had started is told to stop", []string{"TestTimeLimitCoversTheWholeLife", "TestStoppedInATool"}},
	{"ends", "every started run has one end, whatever breaks", []string{"TestInvariants", "TestJournalFailsAnywhere", "TestBreakAnywhere", "TestReaderThatPanics", "TestLoopThatPanics", "TestToolThatEndsItsGoroutine"}},

	{"results", "the result is the final answer, not a transcript", []string{"TestReport"}},
	{"results", "a last message that is no assistant text doesn't crash", []string{"TestEnds"}},
	{"results", "parts that are no text are not dropped", []string{"TestPartsThatAreNoText"}},
	{"results", "an empty result is an error with a cause", []string{"TestEnds"}},
	{"results", "an output schema doesn't change other tools' arguments", []string{"TestOutputSchemaIsNobodyElses"}},
	{"results", "parallel structured results don't collide", []string{"TestOutputSchemaIsNobodyElses"}},
	{"results", "parallel children's results and counters don't collide", []string{"TestParallelChildren", "TestInvariants"}},
	{"results", "an errored tool call before the answer doesn't fail the child", []string{"TestEnds"}},
	{"results", "finished results are told once and survive until they are", []string{"TestBackground", "TestContinueAfterCrash"}},

	{"parallel", "beyond a limit children queue and are not refused", []string{"TestThrottle", "TestNestedParentsNeedNoSlot"}},
	{"parallel", "children of one message run side by side", []string{"TestParallelChildren"}},
	{"parallel", "a child that ends in plain text has answered", []string{"TestEnds"}},
	{"parallel", "schemas are prepared once, not at each request", []string{"BenchmarkLoop50"}},
	{"parallel", "twenty children and more all reach an end", []string{"TestThrottle", "TestParallelChildren"}},
	{"parallel", "a child is sent the tools it has and no others", []string{"TestFreshContext"}},
	{"parallel", "one failing child doesn't cancel its siblings", []string{"TestOneFailureTouchesNobodyElse"}},
	{"parallel", "one provider's small quota doesn't hold up another's children", []string{"TestThrottledProviderHoldsNobodyElseUp"}},
	{"parallel", "a stopped child can be continued", []string{"TestContinueAnyEnd"}},
	{"parallel", "no tool runs after a cancel", []string{"TestCancelStartsNothing", "TestInvariants"}},
	{"parallel", "cancelling a fan-out returns", []string{"TestCancelStartsNothing"}},
	{"parallel", "any failed or stalled child can be continued", []string{"TestContinueAnyEnd"}},
	{"parallel", "a run that is resumed brings its children back", []string{"TestContinueAfterCrash"}},
	{"parallel", "a continued child keeps its prompt, tools, model and depth", []string{"TestContinue"}},
	{"parallel", "a continued child is one conversation, of one parent", []string{"TestContinueTwice", "TestContinueElsewhere", "TestContinueOthersChild"}},
	{"parallel", "an idempotency key is never used for two calls", []string{"TestKeysOfAContinuedRun"}},
	{"parallel", "answering a child's question doesn't run its siblings' tools again", []string{"TestApprovals"}},
	{"parallel", "several open questions are told apart by id", []string{"TestApprovals", "TestQuestionOfACancelledRun"}},
	{"parallel", "rejecting works for a child's call", []string{"TestApprovals", "TestBackgroundQuestion"}},

	{"tokens", "tokens per child are in the result", []string{"TestReport"}},
	{"tokens", "counts are not inflated", []string{"TestInvariants"}},
	{"tokens", "each child's model, effort and tokens can be seen", []string{"TestReport"}},
	{"tokens", "150 definitions don't fill the prompt", []string{"TestDescriptionBudget"}},
	{"tokens", "totals include children", []string{"TestReport", "TestInvariants"}},
	{"tokens", "a money limit halts background children too", []string{"TestMoneyLimitHaltsBackgroundChildren"}},
	{"tokens", "depth 1 means no nesting", []string{"TestNesting"}},

	{"loop", "a tool's error never repeats the model request and the tools with it", []string{"TestRetryNeverRepeatsATool"}},
	{"loop", "a tool isn't started before its call is complete", []string{"TestTruncatedReply", "TestTruncatedBeforeItsArguments"}},
	{"loop", "a stream that breaks is tried again like a request that fails", []string{"TestRetries"}},
	{"loop", "a child can be stopped", []string{"TestTaskOutputAndStop"}},
	{"loop", "a reply that ends its turn and still carries calls has them run", []string{"TestCallsAtTheEndOfATurn"}},
	{"loop", "a child may have another model", []string{"TestFallbackModels", "TestThrottledProviderHoldsNobodyElseUp"}},
	{"loop", "a cancel reaches the model request", []string{"TestBreakWaits"}},
}

// TestCases keeps the index true: every test it names exists.
func TestCases(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	funcs := map[string]bool{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				funcs[fn.Name.Name] = true
			}
		}
	}
	seen := map[string]bool{}
	for _, c := range cases {
		if c.section == "" || seen[c.behaviour] || len(c.tests) == 0 {
			t.Errorf("the entry %q is empty or there twice", c.behaviour)
		}
		seen[c.behaviour] = true
		for _, name := range c.tests {
			if !funcs[name] {
				t.Errorf("%s: there is no %s", c.behaviour, name)
			}
		}
	}
}
