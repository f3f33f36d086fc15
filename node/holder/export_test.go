package holder

// Claim is a claim on its way to another node.
type Claim = claim

// Receive answers a claim of another process.
func (h *Holder) Receive(q Claim) (any, error) { return h.records.answer(q) }
