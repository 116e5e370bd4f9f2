package main

import (
	"encoding/json"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// What became of a write. Of one that got no answer nobody knows.
const (
	ok      = "ok"
	failed  = "failed"
	unknown = "unknown"
)

// line is everything that a line can say; each says a few of these things. Times are seconds since the start.
type line struct {
	Event string `json:"event"`
	// ID joins the end of a write to its begin.
	ID         int64           `json:"id,omitempty"`
	Group      string          `json:"group,omitempty"`
	Member     string          `json:"member,omitempty"`
	Generation int32           `json:"generation,omitempty"`
	Partitions []int32         `json:"partitions,omitempty"`
	Offsets    map[int32]int64 `json:"offsets,omitempty"`
	Outcome    string          `json:"outcome,omitempty"`
	Began      float64         `json:"began"`
	Ended      float64         `json:"ended,omitempty"`
}

var (
	start    = time.Now()
	writes   atomic.Int64
	offsets  atomic.Int64
	telling  sync.Mutex
	toStdout = json.NewEncoder(os.Stdout)
)

func now() float64 { return time.Since(start).Seconds() }

// tell writes a line. Nobody who reads it any more is the end of all this.
func tell(said line) {
	telling.Lock()
	defer telling.Unlock()
	if err := toStdout.Encode(said); err != nil {
		panic(err)
	}
}

// write is a commit that was begun: each has offsets that no other has.
type write struct {
	id      int64
	group   string
	offsets map[int32]int64
	began   float64
}

func begin(group string, partitions []int32) write {
	begun := write{id: writes.Add(1), group: group, offsets: map[int32]int64{}, began: now()}
	for _, partition := range partitions {
		begun.offsets[partition] = offsets.Add(1)
	}
	tell(line{Event: "invoke", ID: begun.id, Group: group, Offsets: begun.offsets, Began: begun.began})
	return begun
}

// end tells the outcome, and of a commit of a member its generation.
func (w write) end(outcome string, generation int32) {
	tell(line{
		Event: "return", ID: w.id, Group: w.group, Outcome: outcome, Generation: generation, Began: w.began, Ended: now(),
	})
}
