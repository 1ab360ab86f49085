// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeClient
package import Proxy
internal import System

/// All counters and measurements at one moment, for `/metrics` and the status page.
package struct MetricsReport: Sendable {
    /// The state of logins, latches and upstreams.
    package var health: HealthReport
    /// The counters of the workers.
    package var proxy: ProxyReading
    /// The counters of logins.
    package var logins: LoginReading
    /// The counters of the replay of bodies; `nil` if no body is kept on disk.
    package var replay: ReplayReading?
    /// The resources of the process.
    package var process: ProcessReading
    /// The outcome of the last reload.
    package var reload: ReloadReading

    /// Makes a report.
    package init(
        health: HealthReport, proxy: ProxyReading, logins: LoginReading, replay: ReplayReading?,
        process: ProcessReading, reload: ReloadReading
    ) {
        self.health = health
        self.proxy = proxy
        self.logins = logins
        self.replay = replay
        self.process = process
        self.reload = reload
    }

    /// Returns the report as text.
    package func text(_ format: MetricsFormat) -> String {
        var text = MetricsText(format)
        writeDaemon(to: &text)
        writeUpstreams(to: &text)
        writeExchanges(to: &text)
        writeLogins(to: &text)
        writeSharing(to: &text)
        writeReplay(to: &text)
        writeConnections(to: &text)
        writeWorkers(to: &text)
        writeProcess(to: &text)
        text.finish()
        return text.text
    }
}

/// The outcome of the last reload of the configuration. The start counts as a successful reload.
package struct ReloadReading: Sendable {
    /// True if the last reload took effect.
    package var isSuccessful: Bool { refusal == nil }
    /// The reason why the last reload was refused; nil if it took effect.
    package private(set) var refusal: String?
    /// The time of the last reload that took effect, in milliseconds since 1970.
    package private(set) var lastSuccessAt: Int64
    /// The time of the last reload.
    package private(set) var endedAt: Int64

    /// Makes the outcome of a start.
    package init(startedAt: Int64) {
        lastSuccessAt = startedAt
        endedAt = startedAt
    }

    /// Records a reload that ended at `now`, in milliseconds since 1970.
    package mutating func record(refusal: String?, now: Int64) {
        self.refusal = refusal
        endedAt = now
        if refusal == nil { lastSuccessAt = now }
    }
}

/// The counters of the replay of requests' bodies.
package struct ReplayReading: Sendable {
    /// Bytes replayed from memory.
    package var fromMemory: Int
    /// Bytes replayed from disk.
    package var fromDisk: Int
    /// Bytes of replayed requests that came directly from the caller.
    package var fromCallers: Int
    /// Bytes on disk now.
    package var onDisk: Int
    /// The limit of bytes on disk.
    package var budget: Int
    /// Exchanges whose body was gone when it was needed again.
    package var notReplayable: Int

    /// Reads the counters of a spool.
    package init(_ spool: ReplaySpool) {
        fromMemory = spool.figures.bytesFromMemory
        fromDisk = spool.figures.bytesFromDisk
        fromCallers = spool.figures.bytesFromCallers
        onDisk = spool.figures.bytesInUse
        budget = spool.limit
        notReplayable = spool.figures.unreplayableExchanges
    }
}

// The metrics of the daemon, its upstreams' checks, the replay of bodies, and the process.
extension MetricsReport {
    func writeDaemon(to text: inout MetricsText) {
        text.family("build", .info, "The version of the program.")
        text.sample([("version", health.version)], 1)
        text.family("ready", .gauge, "1 if requests can be served, as /readyz says, else 0.")
        text.sample(health.isReady ? 1 : 0)
        text.family(
            "state_unwritten", .gauge,
            "Changes of the state that could not be written to the disk: rejected credentials, used one-time passwords, tokens and the like that a restart would lose."
        )
        text.sample(health.unwritten?.count ?? 0)
        text.family(
            "config_last_reload_successful", .gauge, "1 if the last reload of the configuration succeeded, else 0.")
        text.sample(reload.isSuccessful ? 1 : 0)
        text.family(
            "config_last_reload_success_timestamp_seconds", .gauge, unit: "seconds",
            "Unix time of the last successful reload of the configuration, or of the start.")
        text.sample(MetricsText.timestamp(milliseconds: reload.lastSuccessAt))
    }

    /// Writes the checks of upstreams with `check`.
    func writeUpstreams(to text: inout MetricsText) {
        let checks = health.checks.sorted { $0.key < $1.key }
        text.family(
            "upstream_up", .gauge,
            "1 if the last check of an upstream passed, 0 if it failed; no sample if unknown.")
        for (name, reading) in checks {
            switch reading.state {
            case .down: text.sample([("upstream", name)], 0)
            case .unknown: break
            case .up: text.sample([("upstream", name)], 1)
            }
        }
        text.family(
            "upstream_failing", .gauge,
            "1 if every request to an upstream failed in the last minute, and there were some; else 0.")
        for name in health.upstreams {
            text.sample([("upstream", name)], health.outages[name]?.isTotal(at: health.now) == true ? 1 : 0)
        }
        text.family("upstream_checks", .counter, "Checks of upstreams, by outcome: passed or failed.")
        for (name, reading) in checks {
            text.sample([("upstream", name), ("outcome", "passed")], reading.passed)
            text.sample([("upstream", name), ("outcome", "failed")], reading.failed)
        }
        text.family(
            "upstream_check_duration_seconds", .gauge, unit: "seconds",
            "Duration of the last check, including its login.")
        for (name, reading) in checks where reading.askedAt != nil {
            text.sample([("upstream", name)], MetricsText.seconds(nanoseconds: reading.nanoseconds))
        }
    }

    func writeReplay(to text: inout MetricsText) {
        guard let replay else { return }
        text.family(
            "replayed_bytes", .counter, unit: "bytes",
            "Bytes of request bodies that were replayed, by source: memory, disk, or stream (directly from the caller)."
        )
        text.sample([("tier", "memory")], replay.fromMemory)
        text.sample([("tier", "disk")], replay.fromDisk)
        text.sample([("tier", "stream")], replay.fromCallers)
        text.family("replay_disk_bytes", .gauge, unit: "bytes", "Bytes of request bodies on disk.")
        text.sample(replay.onDisk)
        text.family(
            "replay_disk_limit_bytes", .gauge, unit: "bytes", "Limit of the bytes on disk (limits.replay).")
        text.sample(replay.budget)
        text.family(
            "bodies_not_replayable", .counter,
            "Exchanges that ended with body-not-replayable: their body was gone when it was needed again.")
        text.sample(replay.notReplayable)
    }

    /// Writes the metrics that Prometheus' client libraries have for every process, under their names.
    func writeProcess(to text: inout MetricsText) {
        text.family("process_resident_memory_bytes", .gauge, unit: "bytes", "Resident memory size in bytes.")
        text.sample(process.residentBytes)
        text.family("process_virtual_memory_bytes", .gauge, unit: "bytes", "Virtual memory size in bytes.")
        text.sample(process.virtualBytes)
        text.family(
            "process_cpu_seconds", .counter, unit: "seconds", "Total user and system CPU time spent in seconds.")
        text.sample(MetricsText.seconds(nanoseconds: process.processorNanoseconds))
        if let open = process.openDescriptors {
            text.family("process_open_fds", .gauge, "Number of open file descriptors.")
            text.sample(open)
        }
        text.family("process_max_fds", .gauge, "Maximum number of open file descriptors.")
        text.sample(process.mostDescriptors)
        text.family(
            "process_start_time_seconds", .gauge, unit: "seconds",
            "Start time of the process since unix epoch in seconds."
        )
        text.sample(MetricsText.timestamp(milliseconds: process.startedAt))
    }
}

/// The resources of this process, as the kernel reports them.
package struct ProcessReading: Sendable {
    /// The resident memory, in bytes.
    package var residentBytes: Int
    /// The virtual memory, in bytes.
    package var virtualBytes: Int
    /// The CPU time in user and kernel mode, in nanoseconds.
    package var processorNanoseconds: UInt64
    /// The number of open descriptors; `nil` if unknown.
    package var openDescriptors: Int?
    /// The limit of open descriptors.
    package var mostDescriptors: UInt64
    /// The start of the process, in milliseconds since 1970.
    package var startedAt: Int64

    /// Reads the present resources. `startedAt` is in milliseconds since 1970.
    package static func now(startedAt: Int64) -> ProcessReading {
        let memory = ProcessUsage.memory()
        return ProcessReading(
            residentBytes: memory.resident, virtualBytes: memory.virtual,
            processorNanoseconds: ProcessUsage.processorNanoseconds(),
            openDescriptors: ProcessUsage.openDescriptors(), mostDescriptors: OpenFileLimit.current?.soft ?? 0,
            startedAt: startedAt)
    }
}

/// The last check of an upstream in the metrics that Prometheus' blackbox exporter has for a probe of HTTP, so that alerts and
/// dashboards made for that exporter show it.
struct ProbeReport {
    private let reading: CheckReading

    init(_ reading: CheckReading) { self.reading = reading }

    /// The metrics as `/probe` serves them, in Prometheus' text format.
    var text: String {
        var text = MetricsText(.prometheus)
        text.family("probe_success", .gauge, "Displays whether or not the probe was a success.")
        text.sample(reading.state == .up ? 1 : 0)
        text.family("probe_duration_seconds", .gauge, "How long the probe took to complete in seconds.")
        text.sample(MetricsText.seconds(nanoseconds: reading.nanoseconds))
        text.family("probe_http_status_code", .gauge, "Response HTTP status code; 0 without a response.")
        text.sample(reading.status ?? 0)
        text.family("probe_timestamp_seconds", .gauge, "The time of the probe; 0 if there was none yet.")
        text.sample(MetricsText.timestamp(milliseconds: reading.askedAt ?? 0))
        return text.text
    }
}
