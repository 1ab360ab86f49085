// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import CountersignDaemon
import InventedKind

// The line of the list.
Countersign.main(kinds: ChallengeKinds.all + [Sundial.self])
