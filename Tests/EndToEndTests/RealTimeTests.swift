// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

/// Tests that let time pass, as what they are about is a matter of time itself; each suite says why. No other test does.
@Suite("Real time")
struct RealTimeTests {}

/// Lets so much time pass.
func pause(for time: Duration) async throws { try await Task.sleep(for: time) }
