package synapse

// Usage counts what model requests have consumed. Token counts are the
// provider's own; the cache and reasoning counts are parts of the input and
// output counts, not additions to them.
type Usage struct {
	Requests         int64 `json:"requests"`
	InputTokens      int64 `json:"input_tokens"`
	OutputTokens     int64 `json:"output_tokens"`
	CacheReadTokens  int64 `json:"cache_read_tokens,omitempty"`
	CacheWriteTokens int64 `json:"cache_write_tokens,omitempty"`
	ReasoningTokens  int64 `json:"reasoning_tokens,omitempty"`
	// CostUSD is nil when the price of any part is unknown: an unknown price
	// is never counted as nothing.
	CostUSD *float64 `json:"cost_usd"`
}

// Tokens returns input plus output tokens, the measure of token limits.
func (u Usage) Tokens() int64 { return u.InputTokens + u.OutputTokens }

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	cost := addCost(u, v)
	return Usage{
		Requests:         u.Requests + v.Requests,
		InputTokens:      u.InputTokens + v.InputTokens,
		OutputTokens:     u.OutputTokens + v.OutputTokens,
		CacheReadTokens:  u.CacheReadTokens + v.CacheReadTokens,
		CacheWriteTokens: u.CacheWriteTokens + v.CacheWriteTokens,
		ReasoningTokens:  u.ReasoningTokens + v.ReasoningTokens,
		CostUSD:          cost,
	}
}

// addCost adds two costs. Where nothing was asked there is nothing to pay,
// whatever CostUSD says: otherwise the zero value would make every sum unknown.
// A request whose provider counts no tokens is not for free because of that.
func addCost(u, v Usage) *float64 {
	switch {
	case u.CostUSD == nil && u.Requests == 0 && u.Tokens() == 0:
		return v.CostUSD
	case v.CostUSD == nil && v.Requests == 0 && v.Tokens() == 0:
		return u.CostUSD
	case u.CostUSD == nil || v.CostUSD == nil:
		return nil
	}
	sum := *u.CostUSD + *v.CostUSD
	return &sum
}
