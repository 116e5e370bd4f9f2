// load is the load client of `make bench` and `make load`: it speaks to any broker of Kafka's protocol.
//
// It writes and reads frames itself, on plain connections, so that "64 connections with 1 request in flight" means just
// that, and so that it costs little beside the server that is measured on the same machine. Each command prints its
// figures as one JSON object and ends with status 1 if anything but the expected answer came.
//
//	load commit    -addr HOST:PORT -conns 64 -depth 1 -lead 1s -for 4s
//	load permit    -addr HOST:PORT -authority FILE -user ADMIN -password-file FILE -mechanism PLAIN
//	               -to USER -to-password-file FILE
//	load refused   -addr HOST:PORT -authority FILE -user USER -password-file FILE
//	load group     -addr HOST:PORT -members 100
//	load heartbeat -addr HOST:PORT -conns 2000 -groups 1000 -members 3 -for 60s
//	load produce   -addr HOST:PORT -topic T -partitions 4 -acks 1 -mib 400
//	load fetch     -addr HOST:PORT -topic T -partitions 4
//	load nothing   -addr HOST:PORT
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const clockTicks = 100 // a second, in /proc

var commands = map[string]func(args []string) error{
	"commit":    commit,
	"permit":    permit,
	"refused":   refused,
	"group":     group,
	"heartbeat": heartbeat,
	"produce":   produce,
	"fetch":     fetch,
	"nothing":   nothing,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: load commit|permit|refused|group|heartbeat|produce|fetch|nothing [flags]")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// options are the flags of one command; every command has -addr.
func options(name string) (*flag.FlagSet, *string) {
	set := flag.NewFlagSet(name, flag.ExitOnError)
	return set, set.String("addr", "127.0.0.1:9092", "the broker")
}

func print(figures map[string]any) error {
	return json.NewEncoder(os.Stdout).Encode(figures)
}

// processorSeconds is what this process has used so far, on all cores together.
func processorSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// processorSecondsOf is the same of another process of this machine; nothing if there is none of that number.
func processorSecondsOf(process int) float64 {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if err != nil {
		return 0
	}
	// Behind the name, which may hold anything, user and system time are the 12th and the 13th field.
	fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / clockTicks
}

// together runs work for each number below count, all at the same time, and returns what went wrong.
func together(count int, work func(number int) error) error {
	failures := make(chan error, count)
	for number := range count {
		go func() { failures <- work(number) }()
	}
	var all []error
	for range count {
		if err := <-failures; err != nil && len(all) < 5 {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}
