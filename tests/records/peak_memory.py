"""How much memory a process of a test has had at most.

Linux hands the figure of `getrusage` on from parent to child, so a test runner that is large itself would be measured
instead; that in `/proc` starts anew with each program.
"""

PEAK_MIB = """
def peak_mib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM:"))
"""
"""Source for the script of a child process."""
