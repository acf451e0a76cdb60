//go:build !linux

package awsloop

import "os/exec"

const mark = "BDK_AWSLOOP="

func separate(*exec.Cmd) {}

func killGroup(*exec.Cmd) {}

// Kill does nothing: [Start] skips on this system.
func (l *Loop) Kill(string) int { return 0 }

func (l *Loop) processes(string) []int { return nil }
