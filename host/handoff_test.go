package host_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/host"
	"github.com/synapse-agents/synapse/model/script"
)

// deskReply plays a triage desk: the desk hands refunds over, refunds looks and
// answers; asked to, the two pass a request on for ever.
func deskReply(_ int, req *synapse.Request) script.Turn {
	last := req.Messages[len(req.Messages)-1].Text()
	refunds := strings.Contains(req.System, "You do refunds")
	hand := func(to string) script.Turn {
		return script.Turn{Calls: []synapse.ToolCall{script.Call("transfer_to_"+to, map[string]any{"reason": "theirs", "intent": "x"})}}
	}
	refused := false
	handed := false
	for _, p := range req.Messages[len(req.Messages)-1].Parts {
		if p.Result != nil {
			refused = refused || p.Result.IsError
			handed = true
		}
	}
	switch {
	case refused:
		return script.Turn{Text: "enough"}
	case strings.Contains(script.FirstUser(req), "circle") && refunds:
		return hand("main")
	case strings.Contains(script.FirstUser(req), "circle"):
		return hand("refunds")
	case refunds && handed:
		return script.Turn{Text: "refunds took over"}
	case refunds:
		return script.Turn{Text: "refunds again: " + last}
	case handed:
		return script.Turn{Text: "unexpected"}
	}
	return hand("refunds")
}

func desk(t *testing.T, change func(*agents.Definition)) *host.Host {
	t.Helper()
	def := &agents.Definition{Name: "refunds", Description: "Gives money back.", Prompt: "You do refunds.", Ownership: agents.OwnershipHandoff}
	if change != nil {
		change(def)
	}
	h, err := host.Open(t.Context(), host.Options{
		Workspace: t.TempDir(), Agents: []*agents.Definition{def}, Models: map[string]synapse.Model{"script": script.Play(deskReply)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func send(t *testing.T, s *host.Session, prompt string) (answer string, owners []string) {
	t.Helper()
	for e, err := range s.Send(t.Context(), prompt) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case *synapse.HandedOff:
			owners = append(owners, fmt.Sprintf("%s→%s", b.From, b.To))
		case *synapse.Conclusion:
			answer = e.Agent + ": " + b.Content
		}
	}
	return answer, owners
}

func TestOwnershipOutlivesTheMessage(t *testing.T) {
	s := desk(t, nil).NewSession()
	answer, owners := send(t, s, "my money")
	if answer != "refunds: refunds took over" || !cmp.Equal(owners, []string{"main→refunds"}) {
		t.Errorf("first message: %q after %v", answer, owners)
	}
	answer, owners = send(t, s, "and now?")
	if answer != "refunds: refunds again: and now?" || owners != nil {
		t.Errorf("second message: %q after %v, want the owner's answer without another transfer", answer, owners)
	}
}

func TestHandoffsThatGoInCirclesEnd(t *testing.T) {
	answer, owners := send(t, desk(t, nil).NewSession(), "circle")
	if want := []string{"main→refunds", "refunds→main"}; !cmp.Equal(owners, want) || answer != "main: enough" {
		t.Errorf("%q after %v, want main's answer after %v", answer, owners, want)
	}
}

func TestHandoffHistory(t *testing.T) {
	for history, want := range map[synapse.HandoffHistory]int{"": 3, synapse.HistoryLast: 2, synapse.HistorySummary: 2} {
		h := desk(t, func(d *agents.Definition) { d.HandoffHistory = history })
		s := h.NewSession()
		send(t, s, "my money")
		messages := s.Messages()
		if got := len(messages) - 1; got != want { // without the answer
			t.Errorf("history %q: the owner began with %d messages, want %d", history, got, want)
		}
		if last := messages[len(messages)-2].Text(); history != "" && last != "my money" {
			t.Errorf("history %q: the last message before the answer is %q", history, last)
		}
	}
}

// A task child can't hand over its parent's conversation, and who may not is not
// offered to.
func TestOnlyOwnersHandOver(t *testing.T) {
	h := desk(t, func(d *agents.Definition) { d.Handoffs = []string{} })
	offered := map[string][]string{}
	for _, s := range h.Graph().Specs {
		for _, tool := range h.Offered(s.ID) {
			if strings.HasPrefix(tool.Name, "transfer_to_") {
				offered[s.ID] = append(offered[s.ID], tool.Name)
			}
		}
	}
	if want := map[string][]string{"main": {"transfer_to_refunds"}}; !cmp.Equal(offered, want) {
		t.Errorf("transfers on offer: %v, want %v", offered, want)
	}
}
