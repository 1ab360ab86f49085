// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import TestSupport

@testable import Credentials

/// In place of files, for a state thread.
extension MemoryStore: StateFiles {}
