// Package lines reads commands from stdin and writes answers and events to stdout, one JSON object a line.
package lines

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

// Command is everything that a command can say; each says a few of these things.
type Command struct {
	ID int    `json:"id"`
	Do string `json:"do"`
	// Name is that of a member, a producer or a transformer.
	Name            string            `json:"name"`
	Group           string            `json:"group"`
	Topic           string            `json:"topic"`
	Topics          []string          `json:"topics"`
	Pattern         string            `json:"pattern"`
	Instance        string            `json:"instance"`
	Assignor        string            `json:"assignor"`
	Isolation       string            `json:"isolation"`
	AutoCommit      bool              `json:"auto_commit"`
	SessionMs       int               `json:"session_ms"`
	Metadata        string            `json:"metadata"`
	Partition       int32             `json:"partition"`
	Partitions      int32             `json:"partitions"`
	Offset          int64             `json:"offset"`
	Values          []string          `json:"values"`
	Settings        map[string]string `json:"settings"`
	Compression     string            `json:"compression"`
	TransactionalID string            `json:"transactional_id"`
	TransactionMs   int               `json:"transaction_ms"`
	Commit          bool              `json:"commit"`
	Source          string            `json:"source"`
	Target          string            `json:"target"`
}

// ReadCommitted tells whether only what was committed is to be seen.
func (c Command) ReadCommitted() bool { return c.Isolation == "read_committed" }

// Session is how long a member may be silent.
func (c Command) Session() time.Duration { return time.Duration(c.SessionMs) * time.Millisecond }

// Transaction is how long a transaction may take.
func (c Command) Transaction() time.Duration {
	return time.Duration(c.TransactionMs) * time.Millisecond
}

// Partition of a topic, written as a list of two.
type Partition struct {
	Topic  string
	Number int32
}

// MarshalJSON writes ["topic", 0].
func (p Partition) MarshalJSON() ([]byte, error) { return json.Marshal([]any{p.Topic, p.Number}) }

// Record as a member got it: topic, partition, offset, value.
type Record [4]any

var writing sync.Mutex

func write(line any) {
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	writing.Lock()
	defer writing.Unlock()
	os.Stdout.Write(append(text, '\n'))
}

// Owns tells that a member has another assignment, or another generation.
func Owns(name string, generation int32, partitions []Partition) {
	if partitions == nil {
		partitions = []Partition{}
	}
	write(map[string]any{"event": "owns", "name": name, "generation": generation, "partitions": partitions})
}

// Records tells what a member got.
func Records(name string, records ...Record) {
	write(map[string]any{"event": "records", "name": name, "records": records})
}

// Sent tells that a transaction has sent everything and not ended.
func Sent(name string) { write(map[string]any{"event": "sent", "name": name}) }

// Transformed tells how many records have been transformed in transactions that committed.
func Transformed(name string, count int) {
	write(map[string]any{"event": "transformed", "name": name, "count": count})
}

// Failed tells that a member has come to its end.
func Failed(name string, err error) {
	write(map[string]any{"event": "failed", "name": name, "error": err.Error()})
}

// Serve has each command done in a goroutine of its own until stdin ends, and those begun come to their end.
func Serve(do func(Command) (any, error)) error {
	var running sync.WaitGroup
	defer running.Wait()
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 16<<20)
	for input.Scan() {
		var command Command
		if err := json.Unmarshal(input.Bytes(), &command); err != nil {
			return fmt.Errorf("%s: %w", input.Text(), err)
		}
		running.Go(func() {
			result, err := do(command)
			if err != nil {
				write(map[string]any{"id": command.ID, "error": err.Error()})
				return
			}
			write(map[string]any{"id": command.ID, "result": result})
		})
	}
	return input.Err()
}
