"""`ssl.principal.mapping.rules`, with the examples of Kafka's documentation and of its SslPrincipalMapperTest."""

import pytest

from kohort.broker.security.principal_rules import PrincipalRules
from kohort.broker.setting_kinds import BadSetting

RULES = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/, "
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L, "
    "RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U, "
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U, "
    "DEFAULT"
)


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ("CN=Duke,OU=ServiceUsers,O=Org,C=US", "Duke"),
        ("CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        ("cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
        ("DN=duke,CN=sme.x,DC=mycp", "SME.X"),
        ("OU=JavaSoft,O=Sun Microsystems,C=US", "OU=JavaSoft,O=Sun Microsystems,C=US"),
    ],
)
def test_the_first_rule_counts_that_fits(subject: str, name: str) -> None:
    assert str(PrincipalRules(RULES).principal_of(subject)) == f"User:{name}"


def test_default_is_the_whole_subject() -> None:
    assert str(PrincipalRules("DEFAULT").principal_of("CN=a,OU=b")) == "User:CN=a,OU=b"


@pytest.mark.parametrize(
    ("rules", "subject", "name"),
    [
        (r"RULE:^CN=(.*)\/admin$/$1/", "CN=duke/admin", "duke"),
        (r"RULE:^CN=(.*)$/$1\/x/", "CN=duke", "duke/x"),
        ("RULE:^CN=(.*)$/$1$2/", "CN=duke", "duke$2"),  # a number without a group stays
        ("RULE:CN=(a)|OU=(b)/$1-$2/", "OU=b", "-b"),
        ("RULE:CN=.*/somebody/", "CN=duke", "somebody"),
    ],
)
def test_what_stands_in_a_rule_is_kept(rules: str, subject: str, name: str) -> None:
    assert PrincipalRules(rules).principal_of(subject).name == name


def test_a_pattern_must_fit_the_whole_subject() -> None:
    with pytest.raises(BadSetting, match="no rule"):
        PrincipalRules("RULE:CN=alice/boss/").principal_of("CN=alice2,OU=x")


@pytest.mark.parametrize(
    "rules",
    ["", "DEFAULT,", "DEFAULT DEFAULT", "default", "RULE:", "RULE:a/b", "RULE:a/b/X", "RULE:(/b/", "RULE:a/b/L/", "x"],
)
def test_what_is_no_rule_is_refused(rules: str) -> None:
    with pytest.raises(BadSetting):
        PrincipalRules(rules)
