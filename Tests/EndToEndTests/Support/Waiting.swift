// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import TestSupport

/// Waits for what another process does: a line of its log, its answer, its end, a file. Returns false where that takes five minutes.
func eventually(_ condition: () async throws -> Bool) async rethrows -> Bool {
    try await TestSupport.eventually(condition)
}

/// Has traffic go on, round after round, until what was to happen under it has happened.
func goingOn(
    until condition: () async throws -> Bool, _ round: (Int) async throws -> Void
) async rethrows -> Bool {
    try await TestSupport.goingOn(until: condition, round)
}
