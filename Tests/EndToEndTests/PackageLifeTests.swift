// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

/// The Debian package on a machine of its own, under a real systemd.
@Suite("The installed package")
struct PackageLifeTests {
    @Test(
        "starts nothing by itself, serves system, instances and users, is upgraded in traffic, and leaves nothing running"
    )
    func life() async throws {
        var scenario = SystemdScenario()
        scenario.package = (try await DebianPackage(), "/srv/countersign.deb")
        // Everything is given as an administrator would, after the installation.
        scenario.configuration = ""
        scenario.dropIn = nil
        scenario.files = [
            "/srv/bank.yaml": SystemdScenario.bank,
            "/home/ann/.config/systemd/user/countersign.service.d/pin.conf":
                "[Service]\nEnvironment=COUNTERSIGN_BANK_PIN__PIN=1234\n",
        ]
        try await scenario.run("package")
    }

    @Test("is upgraded from the version before, and taken back, without a question and without a loss")
    func upgrade() async throws {
        var scenario = SystemdScenario()
        scenario.package = (try await DebianPackage(), "/srv/countersign.deb")
        scenario.configuration = ""
        scenario.dropIn = nil
        scenario.files = ["/srv/bank.yaml": SystemdScenario.bank]
        try await scenario.run("upgrade")
    }
}
