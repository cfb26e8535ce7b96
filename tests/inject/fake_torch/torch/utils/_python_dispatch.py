# SPDX-License-Identifier: Apache-2.0
modes = []


def _get_current_dispatch_mode():
    return modes[-1] if modes else None


class TorchDispatchMode:
    def __enter__(self):
        modes.append(self)
        return self

    def __exit__(self, kind, error, trace):
        modes.pop()
