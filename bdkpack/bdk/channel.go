package bdk

// Channel is a surface where people, or other programs, talk with the agent. The file bot/channels/review.go defines the channel review.
type Channel struct{}
