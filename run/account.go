package run

import (
	"fmt"
	"sync"
	"time"

	"github.com/synapse-agents/synapse"
)

// An account counts what a run and everything below it has used against its
// limits. All accounts of a trace share one lock: a charge goes up the chain.
type account struct {
	mu     *sync.Mutex
	parent *account
	agent  string
	limits synapse.Limits

	own       synapse.Usage // of this run alone
	usage     synapse.Usage
	toolCalls int
	spawns    int
}

// child opens the account of a sub-agent.
func (a *account) child(agent string) *account {
	return &account{mu: a.mu, parent: a, agent: agent}
}

// restore sets what a run had used when it was cut off. The accounts above have
// theirs from the same events.
func (a *account) restore(p *Progress) {
	a.own = p.Usage
	a.usage, a.toolCalls, a.spawns = p.Spent.Usage, p.Spent.ToolCalls, p.Spent.Spawns
}

// charge adds a reply's usage to this run and to every one above it.
func (a *account) charge(u synapse.Usage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.own = a.own.Add(u)
	for ; a != nil; a = a.parent {
		a.usage = a.usage.Add(u)
	}
}

// sums returns what this run has used, alone and with everything below it.
func (a *account) sums() (own, total synapse.Usage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.own, a.usage
}

// admitModel reports whether another model request is within the limits of this
// run and of every one above it.
func (a *account) admitModel() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for ; a != nil; a = a.parent {
		if l := a.limits.Tokens; l > 0 && a.usage.Tokens() >= l {
			return &LimitError{Limit: "tokens", Agent: a.agent, Cause: fmt.Sprintf("the token limit of %s is reached (%d of %d)", a.agent, a.usage.Tokens(), l)}
		}
		if a.limits.Tokens > 0 && a.usage.Requests > 0 && a.usage.Tokens() == 0 && a.usage.CostUSD == nil {
			return &LimitError{Limit: "tokens", Agent: a.agent, Cause: fmt.Sprintf("the token limit of %s can't be kept: the provider doesn't count tokens", a.agent)}
		}
		if l := a.limits.CostUSD; l > 0 && a.usage.Requests > 0 {
			if a.usage.CostUSD == nil {
				return &LimitError{Limit: "cost_usd", Agent: a.agent, Cause: fmt.Sprintf("the cost limit of %s can't be kept: the price of the model is unknown", a.agent)}
			}
			if *a.usage.CostUSD >= l {
				return &LimitError{Limit: "cost_usd", Agent: a.agent, Cause: fmt.Sprintf("the cost limit of %s is reached ($%.4f of $%.4f)", a.agent, *a.usage.CostUSD, l)}
			}
		}
	}
	return nil
}

// admitTool counts a tool call, unless a limit leaves no room for it.
func (a *account) admitTool() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for b := a; b != nil; b = b.parent {
		if l := b.limits.ToolCalls; l > 0 && b.toolCalls >= l {
			return &LimitError{Limit: "tool_calls", Agent: b.agent, Cause: fmt.Sprintf("%s may make no more than %d tool calls", b.agent, l)}
		}
	}
	for b := a; b != nil; b = b.parent {
		b.toolCalls++
	}
	return nil
}

// admitSpawn counts a sub-agent, unless a limit leaves no room for it.
func (a *account) admitSpawn() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for b := a; b != nil; b = b.parent {
		if l := b.limits.Spawns; l > 0 && b.spawns >= l {
			return &LimitError{Limit: "spawns", Agent: b.agent, Cause: fmt.Sprintf("%s may start no more than %d sub-agents: do the rest yourself", b.agent, l)}
		}
	}
	for b := a; b != nil; b = b.parent {
		b.spawns++
	}
	return nil
}

// left returns what this run's limits leave for a child. A limit that is used up
// stays a limit, of the least there is.
func (a *account) left() synapse.Limits {
	a.mu.Lock()
	defer a.mu.Unlock()
	var left synapse.Limits
	for b := a; b != nil; b = b.parent {
		l := synapse.Limits{}
		if b.limits.Tokens > 0 {
			l.Tokens = max(b.limits.Tokens-b.usage.Tokens(), 1)
		}
		if b.limits.CostUSD > 0 {
			l.CostUSD = b.limits.CostUSD
			if b.usage.CostUSD != nil {
				l.CostUSD = max(b.limits.CostUSD-*b.usage.CostUSD, 1e-9)
			}
		}
		if b.limits.ToolCalls > 0 {
			l.ToolCalls = max(b.limits.ToolCalls-b.toolCalls, 1)
		}
		if b.limits.Spawns > 0 {
			l.Spawns = max(b.limits.Spawns-b.spawns, 1)
		}
		left = left.Min(l)
	}
	return left
}

// deadlineOf returns the earlier of the parent's deadline and now plus the limit.
func deadlineOf(parent time.Time, limit synapse.Duration, now time.Time) time.Time {
	if limit <= 0 {
		return parent
	}
	own := now.Add(time.Duration(limit))
	if parent.IsZero() || own.Before(parent) {
		return own
	}
	return parent
}
