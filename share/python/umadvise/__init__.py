# SPDX-License-Identifier: Apache-2.0
"""What libumadvise knows of Python frameworks, for programs under `umadvise run`."""
