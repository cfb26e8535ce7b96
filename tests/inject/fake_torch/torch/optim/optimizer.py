# SPDX-License-Identifier: Apache-2.0
before, after = [], []


def register_optimizer_step_pre_hook(hook):
    before.append(hook)


def register_optimizer_step_post_hook(hook):
    after.append(hook)


class Optimizer:
    """A step does what `work` does. As in torch, an error of it leaves out what comes after the step."""

    def step(self, work, *args, **kwargs):
        for hook in before:
            hook(self, (self, *args), kwargs)
        work()
        for hook in after:
            hook(self, (self, *args), kwargs)
