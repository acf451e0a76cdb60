package bdk

// Hook runs code of the author after events of sessions have been recorded. The file bot/hooks/audit/usage.go defines the hook audit/usage.
type Hook struct{}
