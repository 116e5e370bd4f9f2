"""`kohort completion`: what a shell needs in order to complete commands, options and files."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_KOHORT_COMPLETE"
"""Under this variable the command, run by a shell, answers with completions; click makes the name."""


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """A script that has a shell complete commands, options and files.

    \b
    Examples:
      eval "$(kohort completion bash)"                                  # in ~/.bashrc
      eval "$(kohort completion zsh)"                                   # in ~/.zshrc
      kohort completion fish > ~/.config/fish/completions/kohort.fish
    """
    made_for = get_completion_class(shell)
    assert made_for is not None  # click has these three
    click.echo(made_for(ctx.find_root().command, {}, "kohort", VARIABLE).source())
