// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeClient
package import Proxy

/// All that is counted and measured, at one moment: what `/metrics` writes, and a page may draw.
package struct MetricsReport: Sendable {
    /// How the logins, the latches and the upstreams stand.
    package var health: HealthReport
    /// What the workers have counted.
    package var proxy: ProxyReading
    /// What was counted of logins.
    package var logins: LoginReading
    /// What was kept of requests' bodies; `nil` where nothing is kept on disk.
    package var replay: ReplayReading?
    /// How the process stands.
    package var process: ProcessReading

    /// A report.
    package init(
        health: HealthReport, proxy: ProxyReading, logins: LoginReading, replay: ReplayReading?,
        process: ProcessReading
    ) {
        self.health = health
        self.proxy = proxy
        self.logins = logins
        self.replay = replay
        self.process = process
    }

    /// The report in one of the formats for metrics.
    package func text(_ format: MetricsFormat) -> String {
        var text = MetricsText(format)
        writeDaemon(to: &text)
        writeUpstreams(to: &text)
        writeExchanges(to: &text)
        writeLogins(to: &text)
        writeFleet(to: &text)
        writeReplay(to: &text)
        writeConnections(to: &text)
        writeWorkers(to: &text)
        writeProcess(to: &text)
        text.finish()
        return text.text
    }
}

/// What was kept of requests' bodies and sent again.
package struct ReplayReading: Sendable {
    /// Bytes sent again that were kept in memory.
    package var fromMemory: Int
    /// Bytes sent again that were kept on disk.
    package var fromDisk: Int
    /// Bytes of requests sent again that came straight from the caller.
    package var fromCallers: Int
    /// Bytes on disk now.
    package var onDisk: Int
    /// How many may be.
    package var budget: Int
    /// Exchanges whose body was gone when it was to be sent again.
    package var notReplayable: Int

    /// What the spool's figures say.
    package init(_ spool: ReplaySpool) {
        fromMemory = spool.figures.bytesFromMemory
        fromDisk = spool.figures.bytesFromDisk
        fromCallers = spool.figures.bytesFromCallers
        onDisk = spool.figures.bytesInUse
        budget = spool.limit
        notReplayable = spool.figures.unreplayableExchanges
    }
}
