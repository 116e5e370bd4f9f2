package main

import (
	"slices"
	"time"
)

// latencies of answers, and what is told of them.
type latencies []time.Duration

func merged(parts []latencies) latencies {
	all := slices.Concat(parts...)
	slices.Sort(all)
	return all
}

// at is the latency that this share of the answers did not exceed, in milliseconds; the latencies are sorted.
func (l latencies) at(share float64) float64 {
	if len(l) == 0 {
		return 0
	}
	place := min(int(share*float64(len(l))), len(l)-1)
	return float64(l[place].Nanoseconds()) / 1e6
}
