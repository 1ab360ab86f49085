// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient

// The daemon as a whole, what it keeps of bodies, and its process.
extension MetricsReport {
    func writeDaemon(to text: inout MetricsText) {
        text.family("build", .info, "The version of the program.")
        text.sample([("version", health.version)], 1)
        text.family("ready", .gauge, "Whether requests can be expected to be served: what /readyz says.")
        text.sample(health.isReady ? 1 : 0)
    }

    /// Only of those that are asked, by `upstreams.NAME.check`.
    func writeUpstreams(to text: inout MetricsText) {
        let checks = health.checks.sorted { $0.key < $1.key }
        text.family(
            "upstream_up", .gauge,
            "Whether the last answer to the check of an upstream was good; none where that is not known.")
        for (name, reading) in checks {
            switch reading.state {
            case .down: text.sample([("upstream", name)], 0)
            case .unknown: break
            case .up: text.sample([("upstream", name)], 1)
            }
        }
        text.family("upstream_checks", .counter, "Checks of upstreams, by outcome: passed or failed.")
        for (name, reading) in checks {
            text.sample([("upstream", name), ("outcome", "passed")], reading.passed)
            text.sample([("upstream", name), ("outcome", "failed")], reading.failed)
        }
        text.family(
            "upstream_check_duration_seconds", .gauge, unit: "seconds",
            "How long the last check took, its login included.")
        for (name, reading) in checks where reading.askedAt != nil {
            text.sample([("upstream", name)], MetricsText.seconds(nanoseconds: reading.nanoseconds))
        }
    }

    func writeReplay(to text: inout MetricsText) {
        guard let replay else { return }
        text.family(
            "replayed_bytes", .counter, unit: "bytes",
            "Bytes of requests' bodies that were sent again, by where they came from: memory, disk, or stream, straight from the caller."
        )
        text.sample([("tier", "memory")], replay.fromMemory)
        text.sample([("tier", "disk")], replay.fromDisk)
        text.sample([("tier", "stream")], replay.fromCallers)
        text.family("replay_disk_bytes", .gauge, unit: "bytes", "Bytes of requests' bodies that are kept on disk now.")
        text.sample(replay.onDisk)
        text.family(
            "replay_disk_limit_bytes", .gauge, unit: "bytes", "How many bytes may be kept on disk (limits.replay).")
        text.sample(replay.budget)
        text.family(
            "bodies_not_replayable", .counter,
            "Exchanges that ended with body-not-replayable: their body was gone when it was to be sent again.")
        text.sample(replay.notReplayable)
    }

    func writeProcess(to text: inout MetricsText) {
        text.family("process_resident_memory_bytes", .gauge, unit: "bytes", "Memory of the process.")
        text.sample(process.residentBytes)
        text.family("process_virtual_memory_bytes", .gauge, unit: "bytes", "Address space of the process.")
        text.sample(process.virtualBytes)
        text.family("process_cpu_seconds", .counter, unit: "seconds", "Time of the processor that the process took.")
        text.sample(MetricsText.seconds(nanoseconds: process.processorNanoseconds))
        if let open = process.openDescriptors {
            text.family("process_open_fds", .gauge, "File descriptors that are open.")
            text.sample(open)
        }
        text.family("process_max_fds", .gauge, "How many file descriptors may be open.")
        text.sample(process.mostDescriptors)
        text.family(
            "process_start_time_seconds", .gauge, unit: "seconds", "When the process was started, since 1970.")
        let started = UInt64(clamping: process.startedAt)
        text.sample("\(started / 1000).\(String(started % 1000 + 1000).dropFirst())")
    }
}
