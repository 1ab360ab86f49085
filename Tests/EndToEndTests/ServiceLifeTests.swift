// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

/// What goes wrong with a service, under a real systemd.
@Suite("A service under a real systemd")
struct ServiceLifeTests {
    @Test("refuses a wrong configuration by status, journal and exit of a reload, and serves on by the old one")
    func reload() async throws {
        var scenario = SystemdScenario()
        scenario.files["/etc/systemd/system/extra.socket"] = """
            [Socket]
            FileDescriptorName=extra
            ListenStream=127.0.0.1:8085
            Service=countersign.service

            """
        try await scenario.run("reload")
    }

    @Test("is ended by the watchdog when a loop stands still, comes back, and drains within its time")
    func watchdog() async throws {
        var scenario = SystemdScenario()
        scenario.dropIn? += """
            WatchdogSec=2s
            RestartSec=100ms

            """
        scenario.files["/etc/countersign/slow.yaml"] = SystemdScenario.bank(listener: "127.0.0.1:8086")
        scenario.files["/usr/local/lib/hold.py"] = Repository.text(of: "Tests/Scenarios/systemd/hold.py")
        try await scenario.run("watchdog")
    }

    @Test("fails no request of 32 connections in a hundred reloads and twenty restarts")
    func steady() async throws {
        var scenario = SystemdScenario()
        scenario.dropIn? += """
            [Unit]
            StartLimitIntervalSec=0

            """
        scenario.limit = 150
        try await scenario.run("steady")
    }
}
