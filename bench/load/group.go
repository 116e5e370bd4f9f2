package main

import (
	"fmt"
	"time"
)

// group measures how long a group takes from its first JoinGroup until its last member has its SyncGroup answer.
func group(args []string) error {
	flags, addr := options("group")
	count := flags.Int("members", 100, "members, each on a connection of its own")
	if err := flags.Parse(args); err != nil {
		return err
	}
	conns, err := dialAll(*addr, *count)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("group-%d", time.Now().UnixNano())
	if err := makeTopic(conns[0], groupTopic, 2**count); err != nil {
		return err
	}
	if err := awaitCoordinator(conns[0], name); err != nil {
		return err
	}
	began := time.Now()
	members, last, err := assemble(name, conns, 30*time.Second)
	if err != nil {
		return err
	}
	figures := map[string]any{"seconds": last.Sub(began).Seconds(), "generation": members[0].generation}
	if err := together(*count, func(number int) error { return members[number].leave(conns[number]) }); err != nil {
		return err
	}
	return print(figures)
}

func dialAll(addr string, count int) ([]*conn, error) {
	conns := make([]*conn, count)
	for number := range conns {
		connection, err := dial(addr)
		if err != nil {
			return nil, err
		}
		conns[number] = connection
	}
	return conns, nil
}
