package bdk

// Schedule has something done again and again. The file bot/schedules/heartbeat.go defines the schedule heartbeat.
type Schedule struct{}
