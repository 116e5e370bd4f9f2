package main

import (
	"encoding/json"
	"os"
	"slices"
	"sync"
	"time"
)

// figures of what was done since they were told last.
type figures struct {
	Done     map[string]int `json:"done"`
	Refusals map[string]int `json:"refusals"`
	// Of commits, in ms.
	P50 float64 `json:"p50_ms"`
	P99 float64 `json:"p99_ms"`
	// Of requests that ask for nothing that takes time: how busy broker and machine are otherwise.
	Nothing50 float64 `json:"nothing_p50_ms"`
	Nothing99 float64 `json:"nothing_p99_ms"`
}

var (
	mu       sync.Mutex
	done     = map[string]int{}
	refusals = map[string]int{}
	took     []time.Duration
	nothing  []time.Duration
)

const idle = "requests for nothing"

func count(what string) {
	mu.Lock()
	defer mu.Unlock()
	done[what]++
}

func note(what string, long time.Duration, err error) {
	mu.Lock()
	defer mu.Unlock()
	if err != nil {
		refusals[what+": "+err.Error()]++
		return
	}
	done[what]++
	switch what {
	case "commits":
		took = append(took, long)
	case idle:
		nothing = append(nothing, long)
	}
}

func tell() {
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(took)
	slices.Sort(nothing)
	now := figures{
		Done: done, Refusals: refusals,
		P50: quantile(took, 0.5), P99: quantile(took, 0.99),
		Nothing50: quantile(nothing, 0.5), Nothing99: quantile(nothing, 0.99),
	}
	if err := json.NewEncoder(os.Stdout).Encode(now); err != nil {
		panic(err)
	}
	done, refusals, took, nothing = map[string]int{}, map[string]int{}, nil, nil
}

func quantile(sorted []time.Duration, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[int(share*float64(len(sorted)-1))].Microseconds()) / 1000
}
