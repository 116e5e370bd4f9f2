package main

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	groupPrefix    = "bench-"
	forbiddenGroup = "not-for-bench"
	forbiddenTopic = "not-for-bench"
)

// permit makes the topic of the commits as somebody who may do everything, and makes a user. He is allowed what
// committing takes and nothing more: to read the groups of the measurement, by the prefix of their names, and its topic.
func permit(args []string) error {
	flags, addr := options("permit")
	admin := securityFlags(flags)
	user := *admin
	flags.StringVar(&user.user, "to", "", "who is to be allowed")
	flags.StringVar(&user.passwordFile, "to-password-file", "", "where the password of that user is")
	hasACLs := flags.Bool("acls", true, "whether the broker asks who may do what")
	if err := flags.Parse(args); err != nil {
		return err
	}
	connection, err := admin.dial(*addr)
	if err != nil {
		return err
	}
	defer connection.Close()
	for _, topic := range []string{commitTopic, forbiddenTopic} {
		if err := makeTopic(connection, topic, commitPartitions); err != nil {
			return err
		}
	}
	for _, group := range []string{commitGroup(0), forbiddenGroup} {
		if err := awaitCoordinator(connection, group); err != nil {
			return err
		}
	}
	user.authority, user.mechanism = admin.authority, scramSHA512
	if err := makeUser(connection, &user); err != nil {
		return err
	}
	if *hasACLs {
		if err := allow(connection, user.user); err != nil {
			return err
		}
	}
	return print(map[string]any{})
}

func allow(connection *conn, user string) error {
	allowed := kmsg.NewPtrCreateACLsRequest()
	allowed.Version = 2
	allowed.Creations = []kmsg.CreateACLsRequestCreation{
		mayRead(user, kmsg.ACLResourceTypeGroup, groupPrefix, kmsg.ACLResourcePatternTypePrefixed),
		mayRead(user, kmsg.ACLResourceTypeTopic, commitTopic, kmsg.ACLResourcePatternTypeLiteral),
	}
	answer, err := connection.ask(allowed)
	if err != nil {
		return err
	}
	for _, result := range answer.(*kmsg.CreateACLsResponse).Results {
		if result.ErrorCode != noError {
			return fmt.Errorf("CreateAcls: error %d", result.ErrorCode)
		}
	}
	return nil
}

func mayRead(
	user string, kind kmsg.ACLResourceType, name string, pattern kmsg.ACLResourcePatternType,
) kmsg.CreateACLsRequestCreation {
	creation := kmsg.NewCreateACLsRequestCreation()
	creation.ResourceType, creation.ResourceName, creation.ResourcePatternType = kind, name, pattern
	creation.Principal, creation.Host = "User:"+user, "*"
	creation.Operation, creation.PermissionType = kmsg.ACLOperationRead, kmsg.ACLPermissionTypeAllow
	return creation
}

// refused shows that the permissions are looked at: it waits until the user may commit what is allowed, and then wants
// to be refused for another group and for another topic. It tells what is spoken on the connection.
func refused(args []string) error {
	flags, addr := options("refused")
	user := securityFlags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	connection, err := user.dial(*addr)
	if err != nil {
		return err
	}
	defer connection.Close()
	err = untilReady("OffsetCommit", func() (int16, error) {
		code, err := commitOnce(connection, commitGroup(0), commitTopic)
		if code == groupAuthorizationFailed || code == topicAuthorizationFailed {
			code = coordinatorNotAvailable // what is allowed is not known everywhere yet
		}
		return code, err
	})
	if err != nil {
		return err
	}
	for _, forbidden := range []struct {
		group, topic string
		code         int16
	}{
		{forbiddenGroup, commitTopic, groupAuthorizationFailed},
		{commitGroup(0), forbiddenTopic, topicAuthorizationFailed},
	} {
		code, err := commitOnce(connection, forbidden.group, forbidden.topic)
		if err != nil {
			return err
		}
		if code != forbidden.code {
			return fmt.Errorf("OffsetCommit of %s in %s: error %d where %d is due",
				forbidden.topic, forbidden.group, code, forbidden.code)
		}
	}
	return print(map[string]any{"speaks": spoken(connection.Conn)})
}

// commitOnce returns the error code of the first partition.
func commitOnce(c *conn, group, topic string) (int16, error) {
	request := commitRequest(group)
	request.Topics[0].Topic = topic
	answer, err := c.ask(request)
	if err != nil {
		return noError, err
	}
	return answer.(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode, nil
}
