// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import FakeServers

/// A MobileFirst server with two checks, two resources, and a clock that the test moves.
func testServer(
    _ clock: ManualClock = ManualClock(), _ change: (inout MobileFirstRules) -> Void = { _ in }
) -> FakeMobileFirst {
    var rules = MobileFirstRules(checks: [.pinCodeAttempts(), .userLogin()])
    rules.scopeMapping = ["accessRestricted": ["PinCodeAttempts"], "both": ["PinCodeAttempts", "UserLogin"]]
    change(&rules)
    let balance = AdapterResource("bank/balance", scope: "accessRestricted") { _ in .json(200, ["balance": 1]) }
    let open = AdapterResource("bank/open") { _ in .json(200, ["open": true]) }
    return FakeMobileFirst(rules: rules, adapters: [balance, open], clock: clock.clock)
}
