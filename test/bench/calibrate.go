package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// calibration says how fast the machine is right now, in milliseconds.
type calibration struct {
	Flush float64 `json:"flush"` // to append 4 KiB to a file and have it on the disk
	CPU   float64 `json:"cpu"`   // for a fixed piece of work on every CPU at once
}

func calibrate(dir string) (calibration, error) {
	var flushes, works []time.Duration
	f, err := os.Create(filepath.Join(dir, "calibration"))
	if err != nil {
		return calibration{}, fmt.Errorf("calibrating: %w", err)
	}
	defer f.Close()
	block := bytes.Repeat([]byte{'x'}, 4096)
	for range 200 {
		began := time.Now()
		if _, err := f.Write(block); err != nil {
			return calibration{}, fmt.Errorf("calibrating: %w", err)
		}
		if err := f.Sync(); err != nil {
			return calibration{}, fmt.Errorf("calibrating: %w", err)
		}
		flushes = append(flushes, time.Since(began))
	}
	for range 50 {
		began := time.Now()
		var g errgroup.Group
		for range runtime.GOMAXPROCS(0) {
			g.Go(work)
		}
		if err := g.Wait(); err != nil {
			return calibration{}, fmt.Errorf("calibrating: %w", err)
		}
		works = append(works, time.Since(began))
	}
	return calibration{Flush: p50(flushes), CPU: p50(works)}, nil
}

// work does what a server does much of: JSON, small allocations, sorting.
func work() error {
	type item struct {
		Name string `json:"name"`
		N    int    `json:"n"`
	}
	items := make([]item, 2000)
	for i := range items {
		items[i] = item{Name: fmt.Sprint("item ", i*7919%2000), N: i}
	}
	slices.SortFunc(items, func(a, b item) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	data, err := json.Marshal(items)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, &items)
}
